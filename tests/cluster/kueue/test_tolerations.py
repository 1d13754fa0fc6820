"""Tolerations of the runtime and of Kueue's flavor: which of them a job's pods have, and what is told when they lack some."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster.conftest import OUTCOME
from support.builders import NAME, make_runtime, make_start
from support.install import apply
from support.kueue import CHECK, make_flavor
from support.waiting import until

from .conftest import QueuedTeam

Object = dict[str, Any]
TOLERANT = "tolerant"
OF_RUNTIME, OF_FLAVOR = "own.example/taint", "flavor.example/taint"


@contextmanager
def tainted(team: QueuedTeam, key: str) -> Iterator[None]:
    """Let no new pod onto any node that does not tolerate a taint."""
    team.kubectl("taint", "nodes", "--all", f"{key}=yes:NoSchedule")
    try:
        yield
    finally:
        team.kubectl("taint", "nodes", "--all", f"{key}-")


def tolerated(team: QueuedTeam) -> list[set[str]]:
    """Return which of the two keys each pod that is not on its way out tolerates."""
    pods = [pod for pod in team.all("pods") if "deletionTimestamp" not in pod["metadata"]]
    return [{one["key"] for one in pod["spec"]["tolerations"]} & {OF_RUNTIME, OF_FLAVOR} for pod in pods]


def test_pods_of_a_restarted_job_lack_the_runtimes_own_and_that_is_told(team: QueuedTeam) -> None:
    runtime = make_runtime(TOLERANT, pod_annotations={OUTCOME: "run-forever"})
    pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["tolerations"] = [{"key": OF_RUNTIME, "operator": "Exists"}]
    flavor = make_flavor("tolerating") | {"spec": {"tolerations": [{"key": OF_FLAVOR, "operator": "Exists"}]}}
    apply(team.cluster, [runtime, flavor])
    team.change_queue(checks=(CHECK,), flavors=("tolerating",))
    references = [{"kind": "ClusterTrainingRuntime", "name": name} for name in ("torch-dispatch", TOLERANT)]
    team.patch("dispatchbackend", "default", {"spec": {"runtimes": references}})
    team.until_probed()
    extensions = {"dispatch/Image": {"ref": "registry.example/llama:1"}, "kubeflow/RuntimeRef": {"name": TOLERANT}}
    team.apply(make_start(gate="Open", gpusPerNode=1, extensions=extensions))
    with tainted(team, OF_RUNTIME):
        team.until_phase("llama-s1", "Running")
        assert tolerated(team) == [{OF_RUNTIME, OF_FLAVOR}]
        team.kubectl("annotate", "pods", "--all", f"{OUTCOME}=fail", "--overwrite")
        until("the JobSet has restarted it", lambda: tolerated(team) == [{OF_FLAVOR}])
        jobs = team.get("jobset", NAME)["spec"]["replicatedJobs"]
        assert OF_RUNTIME not in json.dumps(jobs)
        words = ("Queued", "untolerated taint", "the tolerations of Kueue's ResourceFlavor alone")
        until("it is told", lambda: all(word in says(team) for word in words), seconds=75)
    team.until_phase("llama-s1", "Running")


def says(team: QueuedTeam) -> str:
    status = team.get("dispatchstart", "llama-s1")["status"]
    held = next(entry for entry in status["conditions"] if entry["type"] == "Succeeded")
    return f"{status['phase']}: {held['message']}"
