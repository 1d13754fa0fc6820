"""The main job: from kubectl apply to Succeeded, and to a refusal."""

from demo.scene import Scene, say


def play(scene: Scene) -> None:
    """Submit, open the gate, and follow both DispatchStarts to their ends."""
    say("The runtime torch-dispatch is there; a backend allows it")
    scene.apply("samples/backend.yaml")
    with scene.operator("--namespace", scene.namespace):
        scene.until_proven()
        say("Applying a two-node start, its gate closed, and one that is wrong in many ways")
        scene.apply("samples/hello.yaml", "samples/refused.yaml")
        scene.until(hello="Gated", refused="Refused")
        say("What came of the first: a copy of the runtime, and a TrainJob that waits")
        scene.show("trainjobs", "trainingruntimes")
        say("Why the second was refused, every problem at once:  kubectl describe dispatchstart refused")
        print(*(f"  - {problem}" for problem in scene.message("refused", "RequestValid").split("; ")), sep="\n")
        scene.set_gate("hello", "Open")
        scene.until(hello="Succeeded", refused="Refused")
        say("Its Events:")
        print(scene.kubectl("events", "--for=dispatchstart/hello", "--no-headers"), end="")
