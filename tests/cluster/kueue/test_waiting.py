"""What keeps an opened job from running, in Kueue's own words, and what Kueue takes back."""

from collections.abc import Callable
from typing import Any

from cluster.conftest import USER
from support.by_hand import create_by_hand
from support.install import apply
from support.kueue import (
    CHECK,
    PRIORITY_CLASS,
    QUEUE_NAME,
    activate,
    make_check,
    make_local_queue,
    make_priority_class,
    set_check,
    until_active,
)
from support.waiting import throughout, until

from .conftest import QUEUE, QueuedTeam

Object = dict[str, Any]
OTHER = "other-check"


def test_a_job_tells_how_much_quota_it_waits_for(make_team: Callable[..., QueuedTeam]) -> None:
    team = make_team(gpus=2)
    team.start("first", forever=True, gate="Open", gpus=2)
    team.until_phase("first", "Running")
    team.start("second", submission=2, gate="Open")
    team.until_told("second", "Succeeded", "Queued", "insufficient unused quota for nvidia.com/gpu", "1 more needed")
    assert team.get("dispatchstart", "second")["status"]["phase"] == "Queued"
    team.end_pods()
    team.until_phase("second", "Succeeded")


def test_a_job_tells_of_another_check_that_is_pending(make_team: Callable[..., QueuedTeam]) -> None:
    team = make_team(checks=(CHECK,))
    other = with_another_check(team)
    team.start(gate="Open")
    team.until_told("llama-s1", "Succeeded", "Queued", f"admission check {other} is Pending")
    set_check(team.cluster, team.workload(), other, "Ready")
    team.until_phase("llama-s1", "Succeeded")


def with_another_check(team: QueuedTeam) -> str:
    """Have the queue want a check of another controller's too, and return its name."""
    name = f"{OTHER}-{team.namespace}"
    apply(team.cluster, [make_check(name, "other.example/controller")])
    activate(team.cluster, name)
    team.change_queue(checks=(CHECK, name))
    until_active(team.cluster, team.namespace)
    return name


def test_a_preempted_job_is_queued_again_counted_and_runs_later(make_team: Callable[..., QueuedTeam]) -> None:
    team = make_team(gpus=1, preemption={"withinClusterQueue": "LowerPriority"})
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    urgent = create_urgent(team)
    team.until_phase("llama-s1", "Queued")
    # The TrainJob is suspended a moment before, or after, the Workload counts the eviction.
    until("it is counted", lambda: team.get("dispatchstart", "llama-s1")["status"].get("evictions") == 1)
    preempted = team.get("dispatchstart", "llama-s1")
    assert not [entry for entry in preempted["status"]["conditions"] if entry["type"] == "Stalled"]
    team.until_told("llama-s1", "Succeeded", "insufficient unused quota")
    # The check is not in the way of a job that is not dispatch's.
    until("the urgent job runs", lambda: team.get("trainjob", urgent)["spec"]["suspend"] is False)
    team.kubectl("delete", "trainjob", urgent)
    back = team.until_phase("llama-s1", "Running")
    assert back["status"]["evictions"] == 1
    team.end_pods()
    team.until_phase("llama-s1", "Succeeded")


def create_urgent(team: QueuedTeam) -> str:
    """Create a TrainJob that is not dispatch's, before which others must give way."""
    apply(team.cluster, [make_priority_class("urgent", 1000)])
    trainer = {"image": "i", "numNodes": 1, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}}
    return create_by_hand(
        team.cluster,
        team.namespace,
        "kueue-everything",
        outcome="run-forever",
        foreign=True,
        labels={QUEUE_NAME: QUEUE, PRIORITY_CLASS: "urgent"},
        trainer=trainer,
        runtimePatches=[],
    )


def test_a_job_is_evicted_when_its_queue_is_drained_and_comes_back(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    team.change_queue(checks=(CHECK,), stopPolicy="HoldAndDrain")
    team.until_phase("llama-s1", "Queued")
    team.until_told("llama-s1", "Succeeded", "Queued", f"ClusterQueue {team.namespace} is inactive")
    team.change_queue(checks=(CHECK,), stopPolicy="None")
    team.until_phase("llama-s1", "Running")
    assert team.get("dispatchstart", "llama-s1")["status"]["evictions"] == 1


def test_a_job_that_kueue_deactivated_is_reported_and_not_fought_over(team: QueuedTeam) -> None:
    team.until_probed()
    other = with_another_check(team)
    team.start(gate="Open")
    team.until_told("llama-s1", "Succeeded", f"admission check {other} is Pending")
    set_check(team.cluster, team.workload(), other, "Rejected")
    told = team.until_told("llama-s1", "Succeeded", "Kueue deactivated the job", "DeactivatedDueToAdmissionCheck")
    assert told.startswith("Queued")

    def patches() -> int:
        requests = team.cluster.requests(USER)
        mine = [one for one in requests if (one.namespace, one.resource) == (team.namespace, "workloads")]
        return sum(one.verb == "patch" and not one.subresource for one in mine)

    throughout("nobody reactivates it", lambda: team.workload()["spec"]["active"] is False, seconds=3)
    assert patches() == 0
    # Kueue does not take it back when it is activated, but makes another Workload when this one is deleted.
    deactivated = team.workload()
    name = deactivated["metadata"]["name"]
    team.patch("workload", name, {"spec": {"active": True}})
    team.until_told("llama-s1", "Succeeded", "Queued", f"kubectl delete workload {name} -n {team.namespace}")
    team.kubectl("delete", "workload", name, "--wait=false")
    other_workload = until(
        "another Workload",
        lambda: (found := team.workload())["metadata"]["uid"] != deactivated["metadata"]["uid"] and found,
    )
    set_check(team.cluster, other_workload, other, "Ready")
    team.until_phase("llama-s1", "Succeeded")


def test_what_keeps_a_job_back_is_told_of_the_queue_and_its_checks(team: QueuedTeam) -> None:
    team.until_probed()
    team.start()
    team.until_phase("llama-s1", "Gated")
    apply(team.cluster, [make_local_queue(QUEUE, team.namespace, team.namespace, stopPolicy="Hold")])
    team.set_gate("llama-s1", "Open")
    team.until_told("llama-s1", "Succeeded", f"LocalQueue {QUEUE} is not active: Stopped: LocalQueue is stopped")
    apply(team.cluster, [make_local_queue(QUEUE, team.namespace, team.namespace, stopPolicy="None")])
    team.until_phase("llama-s1", "Succeeded")


def test_a_running_job_whose_workload_is_deleted_is_queued_until_it_runs_again(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    # All quota is taken away first, so that it can't come back at once.
    team.change_queue(checks=(CHECK,), stopPolicy="Hold")
    team.kubectl("delete", "workload", team.workload()["metadata"]["name"], "--wait=false")
    team.until_phase("llama-s1", "Queued")
    team.change_queue(checks=(CHECK,), stopPolicy="None")
    team.until_phase("llama-s1", "Running")
