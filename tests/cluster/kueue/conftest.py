"""An operator for a whole cluster with Kueue, and a namespace with a queue of its own for each test."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import FOREVER, OUTCOME, TIMEOUTS, Team
from controlplane import Cluster
from support.builders import JOB, NAME, make_backend, make_start
from support.install import apply, ensure_namespace, kubectl_apply
from support.kueue import (
    CHECK,
    condition_of,
    make_cluster_queue,
    make_local_queue,
    workload_of,
)
from support.service import Service, serving
from support.waiting import until

Object = dict[str, Any]
QUEUE = "team"
GPU = "nvidia.com/gpu"
_numbers = itertools.count(1)


class QueuedTeam(Team):
    """A namespace whose ClusterQueue bears its name, and whose backend names its LocalQueue.

    Args:
        cluster: Where to.
        namespace: The namespace's name, and the ClusterQueue's.
        gpus: The quota.
        checks: The ClusterQueue's admission checks, see `make_cluster_queue`.
        patience: The backend's `timeouts.workload`.
        queue: Further fields of its spec.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        *,
        gpus: int = 100,
        checks: Mapping[str, Sequence[str]] | Sequence[str] = (CHECK,),
        grace_period: str = "60s",
        **queue: Any,
    ) -> None:
        ensure_namespace(cluster, namespace)
        self._quota = {GPU: str(gpus), "cpu": "100", "memory": "100Gi"}
        self.set_queue(cluster, namespace, checks=checks, **queue)
        apply(cluster, [make_local_queue(QUEUE, namespace, namespace)])
        kueue = {"queue": QUEUE, "admissionCheck": CHECK}
        references = [{"kind": "ClusterTrainingRuntime", "name": name} for name in ("torch-dispatch", FOREVER)]
        timeouts = {**TIMEOUTS, "workload": grace_period}
        super().__init__(cluster, namespace, make_backend(runtimes=references, kueue=kueue, timeouts=timeouts))

    def set_queue(self, cluster: Cluster, namespace: str, **spec: Any) -> None:
        """Apply the ClusterQueue."""
        queue = make_cluster_queue(namespace, quota=self._quota, **spec)
        kubectl_apply(cluster, [queue], "--force-conflicts")

    def change_queue(self, **spec: Any) -> None:
        """Apply the ClusterQueue anew."""
        self.set_queue(self.cluster, self.namespace, **spec)

    def start(self, name: str = "llama-s1", *, forever: bool = False, gpus: int = 1, **fields: Any) -> str:
        """Apply a DispatchStart of one node, and return the name of its TrainJob."""
        extensions = {
            "dispatch/Image": {"ref": "registry.example/llama:1"},
            "kubeflow/RuntimeRef": {"name": FOREVER if forever else "torch-dispatch"},
        }
        self.apply(make_start(name, gpusPerNode=gpus, extensions=extensions, **fields))
        return train_job(fields.get("submission", 1))

    def workload(self, name: str = NAME) -> Object:
        """Return the Workload of a TrainJob, when it exists."""
        return until(f"a Workload of {name}", lambda: workload_of(self.cluster, self.namespace, name))

    def until_told(self, name: str, condition: str, *words: str) -> str:
        """Wait until a condition's message holds all the words, and return it."""
        last = [""]

        def told() -> str | None:
            start = self.get("dispatchstart", name)
            last[0] = f"{start['status'].get('phase')}: {condition_of(start, condition).get('message', '')}"
            return last[0] if all(word in last[0] for word in words) else None

        try:
            return until(f"{name} tells of {', '.join(words)}", told)
        except TimeoutError as error:
            raise AssertionError(f"{error}; it says: {last[0]}") from error

    def end_pods(self) -> None:
        """Let the pods that run until told to end do so."""
        self.kubectl("annotate", "pods", "--all", f"{OUTCOME}-")


def train_job(submission: int, job: str = JOB) -> str:
    """Return the name of a submission's TrainJob."""
    return f"dj-{job.lower()}-s{submission}"


@pytest.fixture(scope="package")
def operator(kueue_account: Path) -> Iterator[Service]:
    """An operator for the whole cluster, as the account of its chart."""
    with serving(kueue_account, "--all-namespaces", "--verbose") as service:
        yield service


@pytest.fixture
def make_team(kueue_cluster: Cluster, operator: Service) -> Callable[..., QueuedTeam]:
    """Return what makes a QueuedTeam in a namespace of its own."""
    assert operator.runs

    def make(**queue: Any) -> QueuedTeam:
        return QueuedTeam(kueue_cluster, f"queued-{next(_numbers)}", **queue)

    return make


@pytest.fixture
def team(make_team: Callable[..., QueuedTeam]) -> QueuedTeam:
    """A namespace with more quota than a test asks for."""
    return make_team()


@pytest.fixture
def proven(make_team: Callable[..., QueuedTeam]) -> QueuedTeam:
    """A team whose queue was fit when the backend was proven; a test breaks it afterwards."""
    team = make_team(grace_period="3s")
    team.until_probed()
    return team
