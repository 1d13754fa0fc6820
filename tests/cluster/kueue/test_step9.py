"""Each way in which a Start fails at step 9 has a message of its own, and leaves nothing behind."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.backends import unproven
from support.install import apply
from support.kueue import (
    CHECK,
    FLAVOR,
    condition_of,
    make_flavor,
    make_local_queue,
    make_priority_class,
    workloads_denied,
)
from support.waiting import until

from .conftest import QUEUE, QueuedTeam

Object = dict[str, Any]


def refused(team: QueuedTeam) -> str:
    """Apply a start, and return why it was refused; nothing of it is left, and the backend is doubted."""
    team.start()
    start = team.until_phase("llama-s1", "Refused")
    gated, started = (condition_of(start, kind) for kind in ("WorkloadGated", "Started"))
    assert (gated["status"], gated["reason"], started["reason"]) == ("False", "ErrRejected", "ErrRejected")
    until(
        "nothing is left", lambda: not [one for kind in ("trainjobs", "trainingruntimes") for one in ours(team, kind)]
    )
    return str(gated["message"])


def ours(team: QueuedTeam, kind: str) -> list[Object]:
    """Return what is there for the start, and not for a probe."""
    return [one for one in team.all(kind) if "dispatch.phpboyscout.uk/probe" not in one["metadata"].get("labels", {})]


def test_no_local_queue(proven: QueuedTeam) -> None:
    proven.kubectl("delete", "localqueue", QUEUE)
    message = refused(proven)
    assert f"does not list the admission check {CHECK}" in message
    assert f"LocalQueue {QUEUE} does not exist" in message


def test_a_stopped_local_queue(proven: QueuedTeam) -> None:
    apply(proven.cluster, [make_local_queue(QUEUE, proven.namespace, proven.namespace, stopPolicy="Hold")])
    assert f"LocalQueue {QUEUE} is not active: Stopped: LocalQueue is stopped" in refused(proven)


def test_no_cluster_queue(proven: QueuedTeam) -> None:
    proven.kubectl("delete", "clusterqueue", proven.namespace)
    assert f"ClusterQueue {proven.namespace} of LocalQueue {QUEUE} does not exist" in refused(proven)


def test_a_queue_that_is_inactive_and_does_not_name_the_check(make_team: Callable[..., QueuedTeam]) -> None:
    proven = make_team(grace_period="1s")
    proven.until_probed()
    proven.change_queue(checks=(), stopPolicy="Hold")
    # What may pass is waited for ten times as long.
    message = refused(proven)
    assert f"ClusterQueue {proven.namespace} does not name the admission check {CHECK}" in message
    assert f"ClusterQueue {proven.namespace} is not active: Stopped: Can't admit new workloads: is stopped." in message


def test_a_check_for_some_flavors_only(proven: QueuedTeam) -> None:
    apply(proven.cluster, [make_flavor("another")])
    proven.change_queue(flavors=(FLAVOR, "another"), checks={CHECK: ["another"]})
    message = refused(proven)
    assert f"binds the admission check {CHECK} to the flavors another only" in message
    assert "listed only after quota is reserved" in message


def test_a_backend_on_such_a_queue_says_so_and_takes_no_starts(make_team: Callable[..., QueuedTeam]) -> None:
    team = make_team(flavors=(FLAVOR, "another"), checks={CHECK: ["another"]}, grace_period="3s")
    apply(team.cluster, [make_flavor("another")])
    found = unproven(team.until_probed(proven=False)["status"])
    assert f"binds the admission check {CHECK} to the flavors another only" in found["start-gate"]
    team.start()
    assert team.until_told("llama-s1", "RequestValid", "start-gate").startswith("Pending")
    assert ours(team, "trainjobs") == []


def test_a_failed_start_makes_the_backend_observe_only_until_it_is_proven_again(proven: QueuedTeam) -> None:
    proven.kubectl("delete", "localqueue", QUEUE)
    refused(proven)
    found = until("the backend is doubted", lambda: unproven(proven.get("dispatchbackend", "default")["status"]))
    assert found.keys() == {"start-gate"}
    apply(proven.cluster, [make_local_queue(QUEUE, proven.namespace, proven.namespace)])
    proven.until_probed()


def test_a_start_outlasts_a_kueue_that_can_make_no_workload(proven: QueuedTeam) -> None:
    with workloads_denied(proven.cluster):
        proven.start()
        proven.until_told("llama-s1", "WorkloadGated", "Starting", "after 3s", "Kueue can't make Workloads")
    proven.until_phase("llama-s1", "Gated")


def test_a_priority_class_orders_the_job_and_is_missed(proven: QueuedTeam) -> None:
    proven.patch("dispatchbackend", "default", {"spec": {"kueue": {"priorityClass": "rare"}}})
    found = unproven(proven.until_probed(proven=False)["status"])
    assert "WorkloadPriorityClass rare does not exist" in found["start-gate"]
    apply(proven.cluster, [make_priority_class("rare", 77)])
    proven.until_probed()
    proven.start()
    proven.until_phase("llama-s1", "Gated")
    assert proven.workload()["spec"]["priority"] == 77


def test_a_check_that_is_off_its_queue_for_a_moment_refuses_nothing(proven: QueuedTeam) -> None:
    proven.change_queue(checks=())
    proven.start()
    proven.until_told("llama-s1", "WorkloadGated", "Starting", "after 3s", f"does not name the admission check {CHECK}")
    proven.change_queue(checks=(CHECK,))
    proven.until_phase("llama-s1", "Gated")


def test_the_wait_ends_when_the_check_is_listed(proven: QueuedTeam) -> None:
    grace_period = {"spec": {"timeouts": {"workload": "60s"}}}
    proven.patch("dispatchbackend", "default", grace_period)
    proven.until_probed()
    with queue_gone(proven):
        proven.start()
        proven.until_told("llama-s1", "WorkloadGated", "waiting for Kueue", CHECK)
    proven.until_phase("llama-s1", "Gated", seconds=20)


@contextmanager
def queue_gone(team: QueuedTeam) -> Iterator[None]:
    """Take the LocalQueue away for the block."""
    queue = json.loads(team.kubectl("get", "localqueue", QUEUE, "--output=json"))
    team.kubectl("delete", "localqueue", QUEUE)
    yield
    apply(team.cluster, [make_local_queue(QUEUE, team.namespace, queue["spec"]["clusterQueue"])])
