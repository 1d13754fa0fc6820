"""What both demos are made of: telling a step, making it, and showing what comes of it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RUNTIME = "runtimes/torch-dispatch.yaml"
NAMESPACE = "demo"
DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.2


class Place(Protocol):
    """A cluster, as far as a demo needs one."""

    kubeconfig: Path
    logs: Path

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # As subprocess.run calls it.
        """Run kubectl and return what it printed."""
        ...


def say(text: str) -> None:
    """Tell what comes next."""
    print(f"\n\033[1m▸ {text}\033[0m" if sys.stdout.isatty() else f"\n▸ {text}", flush=True)


class Scene:
    """The demo's namespace, which must exist, and its operator.

    Args:
        place: The cluster.
        namespace: Where everything happens.
        deadline: Seconds within which each thing that is waited for must come.
    """

    def __init__(self, place: Place, namespace: str = NAMESPACE, deadline: float = DEADLINE_SECONDS) -> None:
        self.namespace = namespace
        self._place = place
        self._deadline = deadline
        self._log = place.logs / "dispatch-operator.log"
        self._shown = ""

    @contextmanager
    def operator(self, *scope: str) -> Iterator[None]:
        """Run the operator for the block."""
        say(f"Starting the operator:  dispatch-operator run {' '.join(scope)}")
        program = Path(sys.executable).with_name("dispatch-operator")
        with self._log.open("wb") as log:
            process = subprocess.Popen(  # Our own program.
                [program, "run", *scope, "--kubeconfig", self._place.kubeconfig], stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(DEADLINE_SECONDS)

    def until_proven(self) -> None:
        """Wait until the operator has tried the backend out, and show it."""
        say("The operator proves the backend first: it starts a job that can't run, sees it gated, and removes it")
        self._until("the backend is proven", self._proven)
        self.show("dispatchbackends")

    def until(self, **wanted: str) -> None:
        """Print the table of DispatchStarts each time a phase changes, until all are as wanted."""
        self._until(
            f"{wanted}", lambda: self._phases() == {name.replace("_", "-"): phase for name, phase in wanted.items()}
        )

    def until_none(self, kind: str) -> None:
        """Wait until there are no more objects of a kind."""
        self._until(f"no {kind}", lambda: not self.kubectl("get", kind, "--output=name"))

    def set_gate(self, name: str, gate: str) -> None:
        """Write spec.gate, and say how."""
        patch = json.dumps({"spec": {"gate": gate}}, separators=(",", ":"))
        say(f"kubectl patch dispatchstart {name} --type=merge -p '{patch}'")
        self.kubectl("patch", "dispatchstart", name, "--type=merge", f"--patch={patch}")

    def message(self, name: str, condition: str) -> str:
        """What a condition of a DispatchStart says."""
        conditions: list[dict[str, str]] = self.get("dispatchstart", name)["status"]["conditions"]
        return next(entry["message"] for entry in conditions if entry["type"] == condition)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """An object."""
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "--output=json"))
        return found

    def show(self, *kinds: str) -> None:
        """Print what there is of some kinds."""
        print(self.kubectl("get", ",".join(kinds)) or f"(no {' and no '.join(kinds)})", end="")

    def apply(self, *files: str) -> None:
        """Apply files of deploy/."""
        self.kubectl("apply", *(f"--filename={DEPLOY / file}" for file in files))

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # As subprocess.run calls it.
        """Run kubectl in the namespace."""
        return self._place.kubectl("--namespace", self.namespace, *arguments, input=input)

    def _proven(self) -> bool:
        conditions = self.get("dispatchbackend", "default").get("status", {}).get("conditions", ())
        return any((entry["type"], entry["status"]) == ("Ready", "True") for entry in conditions)

    def _phases(self) -> dict[str, str]:
        table = self.kubectl("get", "dispatchstarts", "--output=wide")
        rows = [row.split() for row in table.splitlines()[1:]]
        # Just after its creation a DispatchStart has no phase yet, and the next column moves up.
        phases = {row[0]: row[1] for row in rows if row[1].isalpha()}
        shown = json.dumps(phases)
        if shown != self._shown and len(phases) == len(rows):
            print(table, flush=True)
            self._shown = shown
        return phases

    def _until(self, what: str, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._deadline
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"not within {self._deadline:g} s: {what}; the operator's log:\n{self._log.read_text()}"
                )
            time.sleep(POLL_SECONDS)
