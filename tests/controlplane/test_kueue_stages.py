"""What Kueue makes of a TrainJob as the operator writes it, stage by stage, without an operator.

The first table of docs/design/2026-11-30-kueue-observed.md.
"""

import json
from typing import Any

import pytest

from controlplane import Cluster
from controlplane.kubectl import KubectlError
from support.by_hand import create_by_hand
from support.install import apply, ensure_namespace
from support.kueue import (
    GATED_BY,
    START_GATE,
    activate,
    checks_of,
    condition_of,
    evictions_of,
    make_check,
    make_cluster_queue,
    make_flavor,
    make_local_queue,
    set_check,
    until_active,
    workload_of,
)
from support.waiting import until

Object = dict[str, Any]
NAMESPACE = CHECK = "stages"
QUEUE = "team-a"


class Job:
    """One TrainJob in the queue, and its Workload."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def workload(self) -> Object:
        """Return the Workload when it exists."""
        return until("a Workload", lambda: workload_of(self.cluster, NAMESPACE, self.name))

    def until(self, kind: str, status: str, reason: str) -> Object:
        """Return the Workload when a condition is as wanted."""

        def reached() -> Object | None:
            workload = self.workload()
            held = condition_of(workload, kind)
            return workload if (held.get("status"), held.get("reason")) == (status, reason) else None

        return until(f"{kind} is {status} for {reason}", reached)

    def suspended(self) -> bool:
        """Tell whether the TrainJob is suspended."""
        return self.kubectl("get", "trainjob", self.name, "--output=jsonpath={.spec.suspend}") == "true"

    def pods(self) -> int:
        """Count the pods."""
        return len(self.kubectl("get", "pods", "--output=name").split())

    def set_active(self, value: str) -> None:
        """Write the Workload's spec.active."""
        name = self.workload()["metadata"]["name"]
        self.kubectl("patch", "workload", name, "--type=merge", f'--patch={{"spec":{{"active":{value}}}}}')


@pytest.fixture(scope="module")
def job(kueue_cluster: Cluster) -> Job:
    """The TrainJob of an example, gated, its pods running until they are deleted."""
    ensure_namespace(kueue_cluster, NAMESPACE)
    apply(
        kueue_cluster,
        [
            make_flavor(),
            make_check(CHECK),
            make_cluster_queue(NAMESPACE, quota={"amd.com/gpu": "32"}, checks=[CHECK]),
            make_local_queue(QUEUE, NAMESPACE, NAMESPACE),
        ],
    )
    activate(kueue_cluster, CHECK)
    until_active(kueue_cluster, NAMESPACE)
    return Job(kueue_cluster, create_by_hand(kueue_cluster, NAMESPACE, "kueue-everything", outcome="run-forever"))


def test_a_job_is_gated_opened_admitted_held_and_released(job: Job) -> None:
    gated = job.until("QuotaReserved", "False", "AdmissionGated")
    assert gated["metadata"]["annotations"][GATED_BY] == START_GATE
    assert condition_of(gated, "QuotaReserved")["message"] == f"Admission is gated by: {START_GATE}"
    until("the check is listed", lambda: checks_of(job.workload()) == {CHECK: "Pending"})
    with pytest.raises(KubectlError, match="can only remove gates, not add new ones"):
        job.kubectl("annotate", "trainjob", job.name, f"{GATED_BY}={START_GATE},other.example/gate", "--overwrite")

    # The gate is gone: quota is held, and only the check keeps the job from running.
    job.kubectl("annotate", "trainjob", job.name, f"{GATED_BY}-")
    reserved = job.until("QuotaReserved", "True", "QuotaReserved")
    assert GATED_BY not in reserved["metadata"].get("annotations", {})
    assert condition_of(reserved, "Admitted") == {}
    assert (job.suspended(), job.pods()) == (True, 0)

    set_check(job.cluster, job.workload(), CHECK, "Ready")
    job.until("Admitted", "True", "Admitted")
    until("all pods exist", lambda: job.pods() == 5)
    assert not job.suspended()

    # Held: evicted, counted, and the check reset.
    job.set_active("false")
    held = job.until("Evicted", "True", "Deactivated")
    until("the pods are gone", lambda: job.pods() == 0)
    assert job.suspended()
    assert evictions_of(held) == {"Deactivated": 1}
    (entry,) = job.workload()["status"]["admissionChecks"]
    assert (entry["state"], entry["message"]) == ("Pending", "Reset to Pending after eviction. Previously: Ready")

    # Released: quota again, but the check waits for its controller.
    job.set_active("true")
    job.until("Requeued", "True", "Reactivated")
    back = job.until("QuotaReserved", "True", "QuotaReserved")
    assert (checks_of(back), evictions_of(back), job.suspended()) == ({CHECK: "Pending"}, {"Deactivated": 1}, True)
    set_check(job.cluster, back, CHECK, "Ready")
    job.until("Admitted", "True", "Admitted")
    until("all pods exist", lambda: job.pods() == 5)

    # A Workload that somebody deletes comes back as another one: active, its check Pending.
    job.kubectl("delete", "workload", back["metadata"]["name"], "--wait=false")
    revived = until("another Workload", lambda: _another(job, back))
    assert revived["metadata"]["name"] == back["metadata"]["name"]
    assert revived["spec"]["active"] is True
    until("its check is listed", lambda: checks_of(job.workload()) == {CHECK: "Pending"})
    assert evictions_of(job.workload()) == {}
    until("the TrainJob is suspended", job.suspended)


def _another(job: Job, before: Object) -> Object | None:
    now = workload_of(job.cluster, NAMESPACE, job.name)
    return now if now and now["metadata"]["uid"] != before["metadata"]["uid"] else None


def test_a_namespace_with_a_default_queue_opens_a_plain_job_by_itself(kueue_cluster: Cluster) -> None:
    namespace = "default-queue"
    ensure_namespace(kueue_cluster, namespace)
    queues = [
        make_cluster_queue(namespace, quota={"amd.com/gpu": "32"}),
        make_local_queue("default", namespace, namespace),
    ]
    apply(kueue_cluster, [make_flavor(), *queues])
    until_active(kueue_cluster, namespace)
    plain = {"labels": {"kueue.x-k8s.io/queue-name": None}, "annotations": {GATED_BY: None}, "suspend": True}
    name = create_by_hand(kueue_cluster, namespace, "kueue-everything", outcome="run-forever", **plain)

    def read() -> Object:
        found: Object = json.loads(
            kueue_cluster.kubectl("get", "trainjob", name, f"--namespace={namespace}", "--output=json")
        )
        return found

    assert read()["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    until("Kueue resumes it", lambda: read()["spec"]["suspend"] is False)
