"""Copies that were left without an owner, over a fake API."""

from typing import Any

import pytest

from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.kube.index import Key
from support.builders import NAME, NAMESPACE, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, Request, always, nth, refusal, unanswered
from support.operator import FakeOperator
from support.records import watched

Object = dict[str, Any]
COPY = "TrainingRuntime"
OF_START = "dispatch.phpboyscout.uk/start"
KEY = Key(NAMESPACE, NAME)


@pytest.fixture
async def api() -> FakeApi:
    """An API with one start that crashed between steps 5 and 6: its copy has no owner yet."""
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    operator = FakeOperator(api)
    api.before = nth(1, "create", "TrainJob", refusal("create", "TrainJob", 429, "TooManyRequests", "later"))
    await operator.reconcile()
    api.before = lambda _request: None
    api.requests.clear()
    assert "ownerReferences" not in api.one(COPY)["metadata"]
    return api


def tidier(api: FakeApi) -> Leftovers:
    operator = FakeOperator(api)
    operator.watch()
    cluster: Any = api
    return Leftovers(ForegroundDeletion(cluster, operator.store), OrphanedCopies(cluster, operator.store))


def set_status(api: FakeApi, **status: Any) -> None:
    api.edit("DispatchStart", lambda start: start["status"].update(status))


def is_cancelled(api: FakeApi, **status: Any) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    set_status(api, **status)


STARTED = [make_condition("Started")]


async def test_a_copy_whose_start_goes_on_is_kept_without_a_request(api: FakeApi) -> None:
    await tidier(api).reconcile(KEY)
    assert api.requests == []


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("its start is gone", lambda api: api.objects.pop(("DispatchStart", NAMESPACE, "llama-s1"))),
        (
            "its start was deleted and created again",
            lambda api: api.edit("DispatchStart", lambda start: start["metadata"].update(uid="again")),
        ),
        ("its start is finally refused", lambda api: set_status(api, phase="Refused")),
        ("its start is cancelled", lambda api: is_cancelled(api, phase="Cancelled")),
        (
            "its start is being cancelled",
            lambda api: is_cancelled(
                api, phase="Stopping", conditions=[make_condition("Succeeded", reason="Cancelled")]
            ),
        ),
        (
            "its start is cancelled, with this very copy",
            lambda api: is_cancelled(
                api, phase="Cancelled", conditions=STARTED, copy={"name": NAME, "uid": api.one(COPY)["metadata"]["uid"]}
            ),
        ),
        (
            "its start has another copy",
            lambda api: set_status(api, phase="Gated", conditions=STARTED, copy={"name": NAME, "uid": "another"}),
        ),
        (
            "its start is lost, with another copy",
            lambda api: set_status(api, phase="Lost", conditions=STARTED, copy={"name": NAME, "uid": "another"}),
        ),
    ],
)
async def test_a_copy_that_nobody_needs_is_collected(api: FakeApi, what: str, change: Any) -> None:
    change(api)
    await tidier(api).reconcile(KEY)
    assert api.all(COPY) == [], what


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("it has an owner", lambda copy: copy["metadata"].update(ownerReferences=[{"uid": "x"}])),
        ("it does not say whose it is", lambda copy: copy["metadata"]["annotations"].pop(OF_START)),
        ("nobody signed it", lambda copy: copy["metadata"].update(annotations={})),
        ("it is going", lambda copy: copy["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z")),
    ],
)
async def test_a_copy_is_left_alone_when(api: FakeApi, what: str, change: Any) -> None:
    api.edit(COPY, change)
    del api.objects["DispatchStart", NAMESPACE, "llama-s1"]
    await tidier(api).reconcile(KEY)
    assert len(api.all(COPY)) == 1, what


async def test_a_copy_whose_labels_somebody_took_away_is_collected_all_the_same(api: FakeApi) -> None:
    api.edit(COPY, lambda copy: copy["metadata"].update(labels={}))
    del api.objects["DispatchStart", NAMESPACE, "llama-s1"]
    await tidier(api).reconcile(KEY)
    assert api.all(COPY) == []


async def test_the_copy_that_a_start_uses_is_kept(api: FakeApi) -> None:
    set_status(api, phase="Gated", conditions=STARTED, copy={"name": NAME, "uid": api.one(COPY)["metadata"]["uid"]})
    await tidier(api).reconcile(KEY)
    assert len(api.all(COPY)) == 1


async def test_what_only_the_cache_says_collects_nothing(api: FakeApi) -> None:
    stale = tidier(api)
    stale.orphaned_copies.store.drop(watched(api.one("DispatchStart")))
    await stale.reconcile(KEY)
    assert len(api.all(COPY)) == 1


async def test_a_copy_that_has_an_owner_which_the_cache_has_not_seen_is_kept(api: FakeApi) -> None:
    del api.objects["DispatchStart", NAMESPACE, "llama-s1"]
    stale = tidier(api)
    api.edit(COPY, lambda copy: copy["metadata"].update(ownerReferences=[{"uid": "x"}]))
    await stale.reconcile(KEY)
    assert len(api.all(COPY)) == 1


async def test_a_copy_that_changed_since_it_was_read_is_kept(api: FakeApi) -> None:
    del api.objects["DispatchStart", NAMESPACE, "llama-s1"]

    def is_taken(request: Request) -> None:
        if request.verb == "delete":
            api.edit(COPY, lambda copy: copy["metadata"].update(ownerReferences=[{"uid": "x"}]))

    api.before = is_taken
    assert (await tidier(api).reconcile(KEY)).requeue
    assert len(api.all(COPY)) == 1


async def test_a_copy_that_can_not_be_read_is_tried_again(api: FakeApi) -> None:
    del api.objects["DispatchStart", NAMESPACE, "llama-s1"]
    api.before = always("get", COPY, unanswered("get"))
    assert (await tidier(api).reconcile(KEY)).requeue


async def test_a_users_own_runtime_that_was_made_from_a_copy_is_kept(api: FakeApi) -> None:
    copy = api.one(COPY)
    mine = {**copy, "metadata": {**copy["metadata"], "name": "my-own", "uid": "mine"}}
    api.put(mine)
    api.remove("DispatchStart", NAMESPACE, "llama-s1")
    await tidier(api).reconcile(Key(NAMESPACE, "my-own"))
    assert "my-own" in [one["metadata"]["name"] for one in api.all(COPY)]
