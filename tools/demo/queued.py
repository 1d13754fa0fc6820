"""The same in Kueue's queue: gated without quota, opened and admitted, held and released."""

import json

import yaml

from demo.scene import DEPLOY, RUNTIME, Scene, say

OUTCOME = "test.kwok.x-k8s.io/outcome"


def play(scene: Scene) -> None:
    """Set up a queue, and move one start's gate through all its places."""
    say("Setting up a queue with quota for sixteen GPUs, a runtime, and a backend that names the queue")
    scene.apply("samples/kueue/queue.yaml", "samples/kueue/backend.yaml")
    _install_runtime(scene)
    with scene.operator("--all-namespaces"):
        scene.until_proven()
        say("The operator is the controller of the admission check, without which the queue would admit nothing")
        print(scene.kubectl("wait", "clusterqueue/training", "--for=condition=Active"), end="")
        say("Applying a start, its gate closed: there is quota, but Kueue doesn't give it any")
        scene.apply("samples/kueue/start.yaml")
        scene.until(llama_s1="Gated")
        scene.show("workloads", "pods")
        scene.set_gate("llama-s1", "Open")
        scene.until(llama_s1="Running")
        scene.show("workloads", "pods")
        scene.set_gate("llama-s1", "Held")
        scene.until(llama_s1="Held")
        say("Kueue evicts the job: its pods go, and its quota is free for others")
        scene.until_none("pods")
        scene.show("workloads", "pods")
        scene.set_gate("llama-s1", "Open")
        scene.until(llama_s1="Running")
        say("The job ends")
        scene.kubectl("annotate", "pods", "--all", f"{OUTCOME}-")
        scene.until(llama_s1="Succeeded")
        say("Its Events:")
        print(scene.kubectl("events", "--for=dispatchstart/llama-s1", "--no-headers"), end="")


def _install_runtime(scene: Scene) -> None:
    """Apply the sample runtime, with simulated pods that run until they are told to end."""
    runtime = yaml.safe_load((DEPLOY / RUNTIME).read_text())
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"]["metadata"] = {"annotations": {OUTCOME: "run-forever"}}
    scene.kubectl("apply", "--filename=-", input=json.dumps(runtime))
