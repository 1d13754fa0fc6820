"""`make demo`: the main job on a control plane of its own, from kubectl apply to Succeeded and to a refusal."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from controlplane import Cluster, running

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
NAMESPACE = "demo"
DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.2


class Demo:
    """The steps of the demo, each told before it is made."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._shown = ""

    def play(self) -> None:
        """Install, submit, open the gate, and follow both DispatchStarts to their ends."""
        _say("Installing a dispatch-ready runtime and a backend that allows it")
        self._kubectl("create", "namespace", NAMESPACE)
        self._apply("runtimes/torch-dispatch.yaml", "samples/backend.yaml")
        _say("Starting the operator:  dispatch-operator run --namespace demo")
        operator = self._operator()
        try:
            self._follow()
        finally:
            operator.terminate()
            operator.wait(DEADLINE_SECONDS)

    def _follow(self) -> None:
        _say("Applying a two-node start, its gate closed, and one that is wrong in many ways")
        self._apply("samples/start.yaml", "samples/refused.yaml")
        self._until({"llama-s1": "Gated", "refused": "Refused"})
        _say("What came of the first: a copy of the runtime, and a TrainJob that waits")
        print(self._kubectl("get", "trainjobs,trainingruntimes", "--no-headers"), end="")
        _say("Why the second was refused, every problem at once:  kubectl describe dispatchstart refused")
        print(*(f"  - {problem}" for problem in self._message("refused", "Started").split("; ")), sep="\n")
        _say("""Opening the gate:  kubectl patch dispatchstart llama-s1 --type=merge -p '{"spec":{"gate":"Open"}}'""")
        self._kubectl("patch", "dispatchstart", "llama-s1", "--type=merge", '--patch={"spec":{"gate":"Open"}}')
        self._until({"llama-s1": "Succeeded", "refused": "Refused"})
        _say("Its Events:")
        print(self._kubectl("events", "--for=dispatchstart/llama-s1", "--no-headers"), end="")

    def _operator(self) -> subprocess.Popen[bytes]:
        log = (self._cluster.logs / "dispatch-operator.log").open("wb")
        command = [Path(sys.executable).with_name("dispatch-operator"), "run", "--namespace", NAMESPACE]
        with log:
            return subprocess.Popen(  # Our own program.
                [*command, "--kubeconfig", self._cluster.kubeconfig], stdout=log, stderr=log
            )

    def _until(self, wanted: dict[str, str]) -> None:
        """Print the table of DispatchStarts each time it changes, until all phases are as wanted."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            table = self._kubectl("get", "dispatchstarts")
            phases = {row.split()[0]: row.split()[1] for row in table.splitlines()[1:]}
            shown = json.dumps(phases)
            if shown != self._shown and set(phases.values()) <= _PHASES:
                print(table)
                self._shown = shown
            if phases == wanted:
                return
            time.sleep(POLL_SECONDS)
        log = (self._cluster.logs / "dispatch-operator.log").read_text()
        raise TimeoutError(f"not within {DEADLINE_SECONDS:g} s: {wanted}; the operator's log:\n{log}")

    def _message(self, name: str, condition: str) -> str:
        start: dict[str, Any] = json.loads(self._kubectl("get", "dispatchstart", name, "--output=json"))
        return next(entry["message"] for entry in start["status"]["conditions"] if entry["type"] == condition)

    def _apply(self, *files: str) -> None:
        self._kubectl("apply", *(f"--filename={DEPLOY / file}" for file in files))

    def _kubectl(self, *arguments: str) -> str:
        return self._cluster.kubectl("--namespace", NAMESPACE, *arguments)


_PHASES = {"Pending", "Starting", "Gated", "Queued", "Running", "Succeeded", "Refused", "Stopping", "Failed"}


def _say(text: str) -> None:
    print(f"\n\033[1m▸ {text}\033[0m" if sys.stdout.isatty() else f"\n▸ {text}", flush=True)


def main() -> None:
    """Run the demo and leave nothing running."""
    begun = time.monotonic()
    _say("Bringing up Kubernetes, JobSet and Trainer (built once: about 20 minutes on 2 cores, then cached)")
    with running(extra_manifests=sorted((ROOT / "crds").glob("*.yaml"))) as cluster:
        ready = time.monotonic()
        Demo(cluster).play()
    done = time.monotonic()
    _say(f"Done: {done - ready:.0f} s, after {ready - begun:.0f} s for the control plane; nothing is left running.")


if __name__ == "__main__":
    main()
