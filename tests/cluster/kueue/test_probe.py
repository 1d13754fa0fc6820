"""The preflight probe with the real Kueue."""

from collections.abc import Callable
from typing import Any

from support.backends import unproven
from support.install import apply
from support.kueue import CHECK, condition_of, make_local_queue
from support.waiting import until

from .conftest import QUEUE, QueuedTeam

Object = dict[str, Any]
KINDS = ("trainjobs", "trainingruntimes", "workloads", "jobsets", "pods")


def left(team: QueuedTeam) -> list[str]:
    """Return what a probe has left."""
    return [f"{kind}/{one['metadata']['name']}" for kind in KINDS for one in team.all(kind)]


def test_a_backend_is_proven_and_nothing_is_left(team: QueuedTeam) -> None:
    status = team.until_probed()["status"]
    assert unproven(status) == {}
    assert all(entry["hash"] for entry in status["proof"]["served"])
    until("nothing is left", lambda: not left(team))


def test_a_queue_that_is_missing_is_named_and_proven_once_it_is_there(proven: QueuedTeam) -> None:
    proven.kubectl("delete", "localqueue", QUEUE)
    proven.patch("dbackend", "default", {"spec": {"gpuResource": "amd.com/gpu"}})
    found = unproven(proven.until_probed(proven=False)["status"])
    assert found.keys() == {"start-gate"}
    assert f"LocalQueue {QUEUE} does not exist" in found["start-gate"]
    apply(proven.cluster, [make_local_queue(QUEUE, proven.namespace, proven.namespace)])
    # It is tried again by itself.
    proven.until_probed(seconds=120)
    until("nothing is left", lambda: not left(proven))


def test_a_check_that_is_not_listed_is_named(make_team: Callable[..., QueuedTeam]) -> None:
    team = make_team(checks=[], grace_period="3s")
    found = unproven(team.until_probed(proven=False)["status"])
    assert found.keys() == {"start-gate"}
    assert f"does not name the admission check {CHECK}" in found["start-gate"]


def test_a_probe_is_a_guest_in_a_quota_of_one_train_job(team: QueuedTeam) -> None:
    hard = {"count/trainjobs.trainer.kubeflow.org": "1"}
    team.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": hard}})
    # The probe and the Start come for the same place at the same time.
    team.patch("dbackend", "default", {"spec": {"timeouts": {"hold": "2s"}}})
    team.start(forever=True)
    team.until_phase("llama-s1", "Gated")
    team.until_probed()
    proof = team.get("dbackend", "default")["status"]["gates"]
    team.patch("dbackend", "default", {"spec": {"gpuResource": "amd.com/gpu"}})

    def told() -> str:
        return str(condition_of(team.get("dbackend", "default"), "Reconciling").get("message"))

    until("the probe finds it full", lambda: "exceeded quota: one" in told())
    assert team.get("dbackend", "default")["status"]["gates"] == proof
    assert unproven(team.get("dbackend", "default")["status"]) == {}
