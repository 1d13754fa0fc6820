"""The AdmissionCheck of dispatch: active while the operator runs, and of each Workload the state that it should have."""

import json
from collections.abc import Callable
from typing import Any

from cluster.conftest import USER
from controlplane import Cluster
from support.install import apply
from support.kueue import CHECK, checks_of, condition_of, make_check, until_active
from support.service import Service
from support.waiting import throughout, until

from .conftest import QueuedTeam
from .test_waiting import create_urgent

Object = dict[str, Any]


def get_check(cluster: Cluster, name: str) -> Object:
    """Return an AdmissionCheck."""
    found: Object = json.loads(cluster.kubectl("get", "admissioncheck", name, "--output=json"))
    return found


def test_it_is_marked_active_whenever_it_is_made(kueue_cluster: Cluster, operator: Service) -> None:
    assert operator.runs
    apply(kueue_cluster, [make_check("made-later")])
    until(
        "it is active", lambda: condition_of(get_check(kueue_cluster, "made-later"), "Active").get("status") == "True"
    )


def test_one_of_another_controller_is_left_alone(kueue_cluster: Cluster, operator: Service) -> None:
    assert operator.runs
    apply(kueue_cluster, [make_check("not-ours", "other.example/controller"), make_check("ours-too")])
    until("ours is active", lambda: condition_of(get_check(kueue_cluster, "ours-too"), "Active"))
    throughout("the other has no status", lambda: "status" not in get_check(kueue_cluster, "not-ours"), seconds=1)


def test_it_is_pending_until_the_gate_is_open(team: QueuedTeam) -> None:
    until_active(team.cluster, team.namespace)
    team.start(forever=True)
    team.until_phase("llama-s1", "Gated")
    assert checks_of(team.workload()) == {CHECK: "Pending"}
    team.set_gate("llama-s1", "Open")
    team.until_phase("llama-s1", "Running")
    assert checks_of(team.workload()) == {CHECK: "Ready"}
    # Another's controller of the same Workload keeps what is its own: only this entry was written.
    managers = json.loads(
        team.kubectl("get", "workload", team.workload()["metadata"]["name"], "--show-managed-fields", "--output=json")
    )["metadata"]["managedFields"]
    (mine,) = [entry for entry in managers if "dispatch" in entry["manager"] and entry.get("subresource") == "status"]
    assert (mine["operation"], list(mine["fieldsV1"]["f:status"])) == ("Apply", ["f:admissionChecks"])
    assert list(mine["fieldsV1"]["f:status"]["f:admissionChecks"]) == [f'k:{{"name":"{CHECK}"}}']


def test_it_is_ready_for_what_is_not_dispatchs(make_team: Callable[..., QueuedTeam]) -> None:
    team = make_team(gpus=1)
    name = create_urgent(team)
    until("it is Ready", lambda: checks_of(team.workload(name)) == {CHECK: "Ready"})
    until("the job runs", lambda: team.get("trainjob", name)["spec"]["suspend"] is False)


def test_a_settled_check_is_not_written_again(team: QueuedTeam) -> None:
    team.start(forever=True, gate="Open")
    team.until_phase("llama-s1", "Running")

    def writes() -> int:
        return sum(
            request.verb == "patch" and request.resource in {"workloads", "admissionchecks"}
            for request in team.cluster.requests(USER)
            if request.namespace in {team.namespace, ""}
        )

    before = writes()
    team.kubectl("annotate", "workloads", "--all", "looked=again")
    team.kubectl("annotate", "admissioncheck", CHECK, f"looked={team.namespace}")
    throughout("nothing is written", lambda: writes() == before, seconds=2)
