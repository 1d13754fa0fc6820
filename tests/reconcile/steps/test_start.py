"""A Start as a whole, steps 1 to 8, over a fake API."""

from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.just_created import SOON
from support.builders import NAME, NAMESPACE
from support.fake_api import FakeApi
from support.operator import FakeOperator, conditions
from support.records import watched

COPY, JOB = "TrainingRuntime", "TrainJob"
STEPS = ("RequestValid", "RuntimeCopied", "TrainJobCreated", "OwnerSet", "ReadBack")


def crash_before(number: int) -> Callable[[Any], None]:
    counter = iter(range(1, 1_000))

    def fault(_request: Any) -> None:
        if next(counter) == number:
            raise SystemExit

    return fault


async def test_a_start_makes_six_requests_and_a_second_look_makes_none(api: FakeApi, operator: FakeOperator) -> None:
    result = await operator.reconcile()
    assert [str(request) for request in api.requests] == [
        "get ClusterTrainingRuntime",
        "create TrainingRuntime",
        "create TrainJob",
        "patch TrainingRuntime",
        "get TrainJob",
        "patch DispatchStart status",
    ]
    assert not result.requeue
    api.requests.clear()
    await operator.reconcile()
    assert api.requests == []


async def test_a_watch_that_has_not_told_of_the_new_train_job_yet_costs_no_read(
    api: FakeApi, operator: FakeOperator
) -> None:
    await operator.reconcile()
    api.requests.clear()
    operator.watch()
    (job,) = api.all(JOB)
    operator.store.drop(watched(job))
    assert (await operator.reconcile(stale=True)).requeue_after == SOON
    assert api.requests == []
    # One that it should have told of by now is looked for.
    operator.now += 6
    await operator.reconcile(stale=True)
    assert [str(request) for request in api.requests] == ["get TrainJob"]


async def test_a_new_train_job_whose_end_was_told_before_it_was_known_is_missed_soon(
    api: FakeApi, operator: FakeOperator
) -> None:
    await operator.reconcile()
    api.remove(JOB, NAMESPACE, NAME)
    result = await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"
    operator.now += (result.requeue_after or 0.0) + 0.1
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Lost"


async def test_a_new_train_job_that_a_watch_has_told_of_is_missed_at_once(api: FakeApi, operator: FakeOperator) -> None:
    await operator.reconcile()
    assert await operator.reconcile() == Result()
    api.remove(JOB, NAMESPACE, NAME)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Lost"


async def test_a_start_ends_gated_with_one_owned_copy(api: FakeApi, operator: FakeOperator) -> None:
    start = await operator.settle()
    job, copy = api.one(JOB), api.one(COPY)
    assert start["status"]["phase"] == "Gated"
    assert start["status"]["reference"] == {"name": f"{NAMESPACE}/{NAME}", "uid": job["metadata"]["uid"]}
    assert start["status"]["copy"] == {"name": NAME, "uid": copy["metadata"]["uid"]}
    source = api.one("ClusterTrainingRuntime")["metadata"]
    assert start["status"]["source"] == {
        "kind": "ClusterTrainingRuntime",
        "name": source["name"],
        "uid": source["uid"],
        "generation": 1,
    }
    assert copy["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": JOB,
            "name": NAME,
            "uid": job["metadata"]["uid"],
            "controller": False,
        },
    ]
    assert job["spec"]["suspend"] is True
    held = conditions(start)
    assert [held[step][0] for step in STEPS] == ["True"] * 5
    assert (held["Started"][0], held["Ready"][0], held["Succeeded"][0]) == ("True", "True", "Unknown")
    assert "Reconciling" not in held
    assert "Stalled" not in held


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_crash_between_any_two_requests_is_resumed(
    api: FakeApi, operator: FakeOperator, number: int, where: str
) -> None:
    setattr(api, where, crash_before(number))
    with pytest.raises(SystemExit):
        await operator.reconcile()
    setattr(api, where, lambda _request: None)
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert len(api.all(JOB)) == len(api.all(COPY)) == 1
    assert api.one(COPY)["metadata"]["ownerReferences"][0]["uid"] == api.one(JOB)["metadata"]["uid"]


async def test_a_start_that_is_being_deleted_is_never_started(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda held: held["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await operator.reconcile()
    assert api.requests == []


async def test_a_status_that_somebody_wrote_meanwhile_begins_the_look_again(
    api: FakeApi, operator: FakeOperator
) -> None:
    operator.watch()
    api.edit("DispatchStart", lambda held: held["metadata"].update(labels={"a": "b"}))
    await operator.reconcile(stale=True)
    assert operator.start()["status"]["phase"] == "Gated"
    assert len(api.all(JOB)) == 1


async def test_a_look_with_a_stale_cache_never_restarts_what_has_started(api: FakeApi, operator: FakeOperator) -> None:
    operator.watch()
    stale = operator.store
    await operator.reconcile()
    job = api.one(JOB)
    operator.store = stale
    await operator.reconcile(stale=True)
    assert api.one(JOB) == job
    assert operator.start()["status"]["phase"] == "Gated"


async def test_a_closed_gate_may_change_after_a_refusal_without_a_start(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0))
    await operator.settle()
    api.edit("DispatchStart", lambda start: start["spec"].update(gate="Open"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    assert start["status"]["observedGeneration"] == start["metadata"]["generation"]
