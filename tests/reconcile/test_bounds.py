"""What waits is bounded: how often it is read and how long it is left alone."""

from typing import Any

import pytest

from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.reconciler import Reconciler
from support.builders import NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi
from support.operator import NOW, FakeOperator
from support.records import watched

BACKEND, START = "DispatchBackend", "DispatchStart"


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    backend = make_backend(state="ReadOnly")
    api.put(make_runtime())
    api.put(backend, **backend.pop("status", {}))
    api.put(make_start(), observedGeneration=-1)
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


@pytest.mark.looptime
async def test_a_thousand_starts_that_wait_for_one_backend_read_it_once(api: FakeApi) -> None:
    for number in range(2, 1_001):
        api.put(make_start(f"start-{number}", submission=number), observedGeneration=-1)
    store = Store()
    for kind in (START, BACKEND):
        for obj in api.all(kind):
            store.put(watched(obj))
    cluster: Any = api
    reconciler = Reconciler(cluster, store, lambda *_: None, lambda *_: None, lambda: NOW)
    for start in api.all(START):
        await reconciler.reconcile(Key(NAMESPACE, start["metadata"]["name"]), woken=0.0)
    reads = [request for request in api.requests if (request.verb, request.kind) == ("get", BACKEND)]
    assert len(reads) == 1
    assert {start["status"]["phase"] for start in api.all(START)} == {"Pending"}


async def test_what_waits_without_an_end_is_looked_at_again_and_not_all_at_once(
    api: FakeApi, operator: FakeOperator
) -> None:
    names = [f"start-{number}" for number in range(2, 22)]
    for number, name in enumerate(names):
        api.put(make_start(name, submission=number + 2), observedGeneration=-1)
    waits = [(await operator.reconcile(name)).requeue_after or 0 for name in names]
    assert 300 <= min(waits) <= max(waits) <= 600
    assert len(set(waits)) == len(waits)
