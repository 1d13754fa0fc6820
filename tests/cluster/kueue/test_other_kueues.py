"""Kueues that are not set up as dispatch needs them, and one that handles jobs which nobody put into a queue."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conftest import RELEASE_NAMESPACE, TIMEOUTS, Team
from controlplane import Cluster, running
from support.backends import unproven
from support.builders import NAME, make_backend, make_runtime, make_start
from support.install import apply, install_chart
from support.kueue import QUEUE_NAME, condition_of, make_check, make_cluster_queue, make_flavor, make_local_queue
from support.service import serving
from support.waiting import throughout, until

from .conftest import FOREVER, OUTCOME, QueuedTeam

CRDS = Path(__file__).parents[3] / "crds"
pytestmark = pytest.mark.cluster


def prepare(cluster: Cluster) -> Path:
    """Install what a team needs, and return the operator's kubeconfig."""
    kubeconfig = install_chart(cluster, RELEASE_NAMESPACE)
    forever = make_runtime(FOREVER, pod_annotations={OUTCOME: "run-forever"})
    apply(cluster, [make_runtime(), forever, make_flavor(), make_check()])
    return kubeconfig


@pytest.fixture(scope="module")
def willful() -> Iterator[Cluster]:
    """A cluster whose Kueue does not know the gate, and manages every job; an operator serves all of it."""
    with (
        running(
            kueue=True,
            extra_manifests=sorted(CRDS.glob("*.yaml")),
            kueue_feature_gates={"AdmissionGatedBy": False},
            kueue_config={"manageJobsWithoutQueueName": True},
        ) as cluster,
        serving(prepare(cluster), "--all-namespaces", "--verbose"),
    ):
        yield cluster


def test_a_kueue_that_does_not_know_the_gate_is_found_out(willful: Cluster) -> None:
    team = QueuedTeam(willful, "gateless", grace_period="3s")

    def told() -> str:
        gates = team.get("dbackend", "default").get("status", {}).get("gates", ())
        return str(next((gate.get("reason", "") for gate in gates if gate["name"] == "start-gate"), ""))

    # A webhook that does not listen yet is another reason, for a moment.
    until("the gate is missed", lambda: "lacks the gate dispatch.phpboyscout.uk/start-gate" in told())
    assert "Kueue is older than 0.19 or its feature AdmissionGatedBy is off" in told()
    team.start()
    assert team.until_told("llama-s1", "RequestValid", "start-gate").startswith("Pending")
    assert team.all("pods") == []


def test_a_plain_job_that_kueue_suspends_anyway_is_reported_and_not_fought_over(willful: Cluster) -> None:
    team = Team(willful, "unasked", make_backend(timeouts=TIMEOUTS))
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    team.set_gate("llama-s1", "Open")

    def reported() -> bool:
        told = condition_of(team.get("dispatchstart", "llama-s1"), "Succeeded")
        # The TrainJob may be seen suspended before its Workload is seen, and before Kueue says why that waits.
        return told.get("reason") == "ManagedByKueue" and "LocalQueue" in told["message"]

    until("it is reported with what Kueue says", reported)
    team.until_phase("llama-s1", "Queued")
    until("Kueue has its way", lambda: team.get("trainjob", NAME)["spec"]["suspend"] is True)
    generation = team.get("trainjob", NAME)["metadata"]["generation"]
    throughout(
        "nobody fights over it", lambda: team.get("trainjob", NAME)["metadata"]["generation"] == generation, seconds=3
    )


def test_a_plain_job_in_a_namespace_with_a_default_queue_never_runs_with_its_gate_closed(
    kueue_cluster: Cluster,
) -> None:
    kubeconfig = prepare(kueue_cluster)
    namespace = "default-queue-team"
    team = Team(kueue_cluster, namespace, make_backend(timeouts=TIMEOUTS))
    with serving(kubeconfig, "--namespace", namespace):
        # The queue appears after the proof: the probe has seen nothing of it.
        team.until_probed()
        queues = [make_cluster_queue(namespace), make_local_queue("default", namespace, namespace)]
        apply(kueue_cluster, queues)
        team.apply(make_start())
        refused = team.until_phase("llama-s1", "Refused")
        assert condition_of(refused, "ReadBack")["reason"] == "ErrRejected"
        assert QUEUE_NAME in condition_of(refused, "ReadBack")["message"]


def test_a_kueue_that_does_not_handle_train_jobs_is_found_out_before_a_start_runs() -> None:
    frameworks = ["batch/job", "jobset.x-k8s.io/jobset"]
    config = {"integrations": {"frameworks": frameworks}}
    manifests = sorted(CRDS.glob("*.yaml"))
    with (
        running(kueue=True, kueue_config=config, extra_manifests=manifests) as cluster,
        serving(prepare(cluster), "--all-namespaces"),
    ):
        team = QueuedTeam(cluster, "unhandled", grace_period="3s")
        found = unproven(team.until_probed(proven=False)["status"])
        assert "Kueue does not handle this job" in found["fields-kept"]
        team.start()
        assert team.until_told("llama-s1", "RequestValid", "fields-kept").startswith("Pending")
        assert not [one for one in team.all("pods") if one["status"].get("phase") == "Running"]
