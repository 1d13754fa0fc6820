"""Holding and releasing a job in Kueue mode: by the Workload's `spec.active`, and never by `spec.suspend`."""

import json
from typing import Any

from cluster.conftest import USER
from support.builders import NAME
from support.kueue import CHECK, checks_of, condition_of, set_check, workloads_denied
from support.waiting import throughout, until

from .conftest import QueuedTeam
from .test_waiting import with_another_check

Object = dict[str, Any]


def test_held_evicts_the_job_and_open_releases_it_without_a_write_of_suspend(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    until("the pods are gone", lambda: not team.all("pods"))
    held = team.workload()
    assert held["spec"]["active"] is False
    until("quota is given back", lambda: condition_of(team.workload(), "QuotaReserved")["status"] == "False")
    throughout("it stays held", lambda: team.get("dispatchstart", "llama-s1")["status"]["phase"] == "Held", seconds=2)
    team.set_gate("llama-s1", "Open")
    team.until_phase("llama-s1", "Running")
    assert team.workload()["spec"]["active"] is True
    # A hold of our own is no eviction to tell of.
    assert "evictions" not in team.get("dispatchstart", "llama-s1")["status"]
    team.end_pods()
    team.until_phase("llama-s1", "Succeeded")
    assert suspended_by(team) == {"kueue"}
    patches = [
        request
        for request in team.cluster.requests(USER)
        if (request.namespace, request.verb, request.name) == (team.namespace, "patch", NAME) and request.code == 200
    ]
    # The TrainJob was patched once, to open the gate; the other is the copy's owner.
    assert sorted(request.resource for request in patches) == ["trainingruntimes", "trainjobs"]


def suspended_by(team: QueuedTeam) -> set[str]:
    """Return who wrote spec.suspend last, by the API server's own account."""
    read = ("get", "trainjob", NAME, "--show-managed-fields", "--output=json")
    fields: list[Object] = json.loads(team.kubectl(*read))["metadata"]["managedFields"]
    return {entry["manager"] for entry in fields if "f:suspend" in entry["fieldsV1"].get("f:spec", {})}


def test_a_job_is_held_while_it_waits_for_quota(team: QueuedTeam) -> None:
    team.start(gate="Open", gpus=101)
    team.until_told("llama-s1", "Succeeded", "Queued", "maximum capacity (100)")
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    until("it is not considered", lambda: team.workload()["spec"]["active"] is False)
    team.set_gate("llama-s1", "Open")
    team.until_told("llama-s1", "Succeeded", "Queued", "maximum capacity (100)")
    assert team.workload()["spec"]["active"] is True


def test_a_job_that_runs_on_is_not_told_as_held(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    with workloads_denied(team.cluster):
        team.set_gate("llama-s1", "Held")
        start = team.until_phase("llama-s1", "Holding")
        told = until(
            "it says why",
            lambda: condition_of(team.get("dispatchstart", "llama-s1"), "Reconciling")["message"].partition(
                "vworkload"
            )[1],
        )
        assert (start["status"]["phase"], told) == ("Holding", "vworkload")
        assert team.all("pods")
    team.until_phase("llama-s1", "Held")
    until("the pods are gone", lambda: not team.all("pods"))


def test_a_held_jobs_workload_that_somebody_deleted_is_held_again(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    before = until("it is deactivated", lambda: deactivated(team))
    team.kubectl("delete", "workload", before["metadata"]["name"], "--wait=false")
    until("another, deactivated too", lambda: deactivated(team, but=before["metadata"]["uid"]))
    until("its check waits again", lambda: checks_of(team.workload()) == {CHECK: "Pending"})
    throughout("nothing runs", lambda: not team.all("pods"), seconds=2)
    team.set_gate("llama-s1", "Open")
    team.until_phase("llama-s1", "Running")


def test_a_release_that_meets_a_rejected_check_says_the_cure(team: QueuedTeam) -> None:
    team.until_probed()
    other = with_another_check(team)
    team.start(gate="Open")
    team.until_told("llama-s1", "Succeeded", f"admission check {other} is Pending")
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    set_check(team.cluster, team.workload(), other, "Rejected")
    team.set_gate("llama-s1", "Open")
    name = team.workload()["metadata"]["name"]
    cure = ("delete", "workload", name, "-n", team.namespace)
    told = f"admission check {other} is Rejected: set by a test"
    team.until_told("llama-s1", "Succeeded", "Queued", told, f"kubectl {' '.join(cure)}")
    assert team.workload()["spec"]["active"] is True
    # Neither another hold nor its release revives it; the cure does.
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    team.set_gate("llama-s1", "Open")
    team.until_told("llama-s1", "Succeeded", "Queued", told)
    throughout("it stays out", lambda: checks_of(team.workload())[other] == "Rejected", seconds=2)
    team.kubectl(*cure, "--wait=false")
    until("another Workload", lambda: checks_of(team.workload()).get(other) == "Pending")
    set_check(team.cluster, team.workload(), other, "Ready")
    team.until_phase("llama-s1", "Succeeded")


def deactivated(team: QueuedTeam, but: str = "") -> Object | None:
    """Return the Workload when it is not active."""
    workload = team.workload()
    return workload if workload["spec"]["active"] is False and workload["metadata"]["uid"] != but else None


def test_a_cancelled_job_gives_its_quota_back(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")
    team.start("queued", submission=2, gpus=101, gate="Open")
    team.until_phase("queued", "Queued")
    team.set_gate("queued", "Cancelled")
    team.until_phase("queued", "Cancelled")
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    team.set_gate("llama-s1", "Cancelled")
    team.until_phase("llama-s1", "Cancelled")
    assert team.all("trainjobs") == []
    until(
        "pods, copies and Workloads are gone", lambda: not any(map(team.all, ("pods", "trainingruntimes", "workloads")))
    )
