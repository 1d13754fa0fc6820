"""The main job: from kubectl apply to Succeeded, and to a refusal."""

from demo.scene import NAMESPACE, Scene, say


def play(scene: Scene) -> None:
    """Install, submit, open the gate, and follow both DispatchStarts to their ends."""
    say("Installing a dispatch-ready runtime and a backend that allows it")
    scene.apply("runtimes/torch-dispatch.yaml", "samples/backend.yaml")
    with scene.operator("--namespace", NAMESPACE):
        scene.until_proven()
        say("Applying a two-node start, its gate closed, and one that is wrong in many ways")
        scene.apply("samples/start.yaml", "samples/refused.yaml")
        scene.until(llama_s1="Gated", refused="Refused")
        say("What came of the first: a copy of the runtime, and a TrainJob that waits")
        scene.show("trainjobs", "trainingruntimes")
        say("Why the second was refused, every problem at once:  kubectl describe dispatchstart refused")
        print(*(f"  - {problem}" for problem in scene.message("refused", "RequestValid").split("; ")), sep="\n")
        scene.set_gate("llama-s1", "Open")
        scene.until(llama_s1="Succeeded", refused="Refused")
        say("Its Events:")
        print(scene.kubectl("events", "--for=dispatchstart/llama-s1", "--no-headers"), end="")
