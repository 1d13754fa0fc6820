"""What was deleted while a resource was not watched, and which watches tell that it may have been."""

from typing import Any

import pytest

from dispatch_operator.controllers.missed_deletions import MissedDeletions, Relists
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from support.builders import NAMESPACE, make_start
from support.fake_api import FakeApi, always, unanswered
from support.records import watched

PATH = "/apis/dispatch.phpboyscout.uk/v1alpha1/dispatchstarts"
KIND = "DispatchStart"


def test_only_a_watch_after_another_list_may_have_missed_something() -> None:
    relists = Relists()
    requests = [(PATH, False), (PATH, False), (PATH, True), (PATH, True), (PATH, False), ("/other", True), (PATH, True)]
    assert [relists.answered(path, watch=watch) for path, watch in requests] == [False] * 6 + [True]


@pytest.mark.parametrize("namespace", [NAMESPACE, ""])
async def test_what_is_not_listed_any_more_is_gone(namespace: str) -> None:
    api, store, gone = FakeApi(), Store(), []
    for name in ("kept", "deleted"):
        store.put(watched(api.put(make_start(name))))
    api.remove(KIND, NAMESPACE, "deleted")
    cluster: Any = api
    missed = MissedDeletions(cluster, store, {}, lambda obj: gone.append((obj.KIND, obj.metadata.name)))
    await missed.reconcile(Key(namespace, KIND))
    assert gone == [(KIND, "deleted")]


async def test_a_list_that_fails_tells_nothing_and_is_made_again() -> None:
    api, store = FakeApi(), Store()
    store.put(watched(api.put(make_start())))
    api.remove(KIND, NAMESPACE, "llama-s1")
    api.before = always("list", KIND, unanswered("list", KIND))
    cluster: Any = api
    result = await MissedDeletions(cluster, store, {}, lambda *_: pytest.fail("nothing is known")).reconcile(
        Key("", KIND)
    )
    assert result.requeue
