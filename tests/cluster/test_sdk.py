"""The Kubeflow SDK as a witness: it lists, reads and waits for jobs of ours beside its own, in every phase.

Its client raises for a whole namespace when one runtime there lacks the label `trainer.kubeflow.org/framework`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.builders import make_backend, make_runtime, make_start
from support.install import apply
from support.service import Service
from support.waiting import until

from .conftest import OUTCOME, TIMEOUTS, Team

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
SDK = ROOT / ".venv" / "sdk" / "bin" / "python"
"""Made by `make .venv/sdk/.dependencies`, as `make test-cluster` does."""
PROGRAM = ROOT / "tests" / "support" / "sdk_witness.py"
SECONDS = "60"
RUNTIMES = {"sdk-succeeds": "succeed", "sdk-fails": "fail", "sdk-runs": "run-forever"}
FRAMEWORK = "trainer.kubeflow.org/framework"
OF_THE_SDK = "sdk-own"
PHASES = {"gated": 1, "running": 2, "held": 3, "succeeded": 4, "failed": 5}
"""The submission that is brought into each phase."""
STATUSES = {
    "gated": "Created",
    "held": "Created",
    "succeeded": "Complete",
    "failed": "Failed",
}
"""What the SDK calls each phase but Running."""


class Witness:
    """What the SDK says of a namespace."""

    def __init__(self, team: Team) -> None:
        self._team = team

    def says(self, *command: str) -> Any:
        """Return the answer to one command."""
        account = (str(self._team.cluster.kubeconfig), self._team.namespace)
        # -P: this folder has an operator.py, which must not take the place of the standard library's.
        run = [str(SDK), "-P", str(PROGRAM), *account, *command]
        return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def job_of(phase: str) -> str:
    return f"dj-01j9zq4v8y3n5t7r2c6w1x0abk-s{PHASES[phase]}"


def start(team: Team, phase: str, runtime: str, gate: str) -> None:
    extensions = {"dispatch/Image": {"ref": "registry.example/llama:1"}, "kubeflow/RuntimeRef": {"name": runtime}}
    team.apply(make_start(phase, gate=gate, submission=PHASES[phase], extensions=extensions))


@pytest.fixture
def witness(team: Team, operator: Service) -> Witness:
    """A namespace with a job of ours in every phase."""
    assert operator.runs
    runtimes = [make_runtime(name, pod_annotations={OUTCOME: outcome}) for name, outcome in RUNTIMES.items()]
    for runtime in runtimes:
        runtime["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 0
        # As most people's, and our own sample: the copy gets the label all the same.
        runtime["metadata"].pop("labels", None)
    own = make_runtime(OF_THE_SDK)
    own["metadata"]["labels"] = {FRAMEWORK: "torch"}
    apply(team.cluster, [*runtimes, own])
    references = [{"kind": "ClusterTrainingRuntime", "name": name} for name in ("torch-dispatch", *RUNTIMES)]
    team.apply(make_backend(runtimes=references, timeouts=TIMEOUTS))
    team.until_probed()
    start(team, "gated", "sdk-succeeds", "Closed")
    start(team, "running", "sdk-runs", "Open")
    start(team, "held", "sdk-runs", "Open")
    start(team, "succeeded", "sdk-succeeds", "Open")
    start(team, "failed", "sdk-fails", "Open")
    team.until_phase("held", "Running")
    team.set_gate("held", "Held")
    for phase in PHASES:
        team.until_phase(phase, phase.capitalize())
    until("the held pods are gone", lambda: not pods_of(team, "held"))
    return Witness(team)


def pods_of(team: Team, phase: str) -> list[Object]:
    return [pod for pod in team.all("pods") if pod["metadata"]["name"].startswith(job_of(phase))]


def test_the_sdk_lists_reads_and_waits_for_our_jobs_beside_its_own(team: Team, witness: Witness) -> None:
    own = witness.says("train", OF_THE_SDK)
    assert witness.says("wait", own, "Complete", SECONDS)["status"] == "Complete"
    listed = {job["name"]: job for job in witness.says("list")}
    assert listed.keys() == {own, *(job_of(phase) for phase in PHASES)}
    statuses = {phase: listed[job_of(phase)]["status"] for phase in PHASES}
    # Running is said only of a job without conditions, and Trainer does not always leave one on a job that was suspended
    # (kubeflow/sdk#803, SDK 0.5).
    assert statuses.pop("running") in {"Created", "Running"}
    assert statuses == STATUSES
    for phase in PHASES:
        found = listed[job_of(phase)]
        assert (found["runtime"], found["framework"], found["nodes"]) == (job_of(phase), "torch", 1)
        assert witness.says("get", job_of(phase)) == found
    assert listed[job_of("running")]["steps"] == [["node-0", "Running"]]
    assert listed[job_of("held")]["steps"] == listed[job_of("gated")]["steps"] == []
    # One copy without the label, and nothing is listed any more.
    team.kubectl("label", "trainingruntime", job_of("succeeded"), f"{FRAMEWORK}-")
    for command in (("list",), ("get", job_of("succeeded"))):
        assert f"must have {FRAMEWORK} label" in witness.says(*command)["raised"]


def test_the_sdk_waits_for_our_jobs_to_their_end(team: Team, witness: Witness) -> None:
    team.set_gate("gated", "Open")
    assert witness.says("wait", job_of("gated"), "Complete", SECONDS)["status"] == "Complete"
    told = witness.says("wait", job_of("failed"), "Complete", SECONDS)
    assert told == {"raised": f"TrainJob {job_of('failed')} is Failed"}
    assert witness.says("wait", job_of("failed"), "Failed", SECONDS)["status"] == "Failed"
    team.kubectl("annotate", "pods", "--all", f"{OUTCOME}-")
    assert witness.says("wait", job_of("running"), "Complete", SECONDS)["status"] == "Complete"
