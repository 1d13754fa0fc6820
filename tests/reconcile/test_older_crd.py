"""A served CRD that is older than the operator: nothing new is begun until it keeps what is recorded."""

from typing import Any

import pytest

from dispatch_operator.controllers.backend import CHECK_SECONDS
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.outdated_crd import STALE_SECONDS, OutdatedCrd
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.reconciler import HELD_BACK
from support.backends import FakeBackends, make_api, unproven
from support.builders import NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, unanswered
from support.operator import FakeOperator

Object = dict[str, Any]
JOB, START = "TrainJob", "DispatchStart"
OUTDATED = (
    "the served CRD dispatchstarts.dispatch.phpboyscout.uk, v1alpha1, does not keep status.reference: upgrade the CRDs"
)


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api, checks_invariants=False)


async def test_all_that_is_new_is_held_back_until_the_write_that_shows_it_succeeds(
    api: FakeApi, operator: FakeOperator, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(make_start("second", submission=2), observedGeneration=-1)
    patch = api.patch

    async def prunes(kind: str, namespace: str, name: str, body: Object, **how: Any) -> Object:
        if kind == START:
            body = {**body, "status": {**body["status"], "reference": None}}
        return await patch(kind, namespace, name, body, **how)

    api.patch = prunes  # type: ignore[method-assign]
    assert (await operator.reconcile()).requeue
    assert operator.outdated.problems() == [
        f"{OUTDATED} ({NAMESPACE}/llama-s1)",
    ]
    written = api.writes()
    assert (await operator.reconcile("second")).requeue_after == HELD_BACK
    assert api.writes() == written
    # Its own write is tried again, and told once.
    assert (await operator.reconcile()).requeue
    assert api.writes()[len(written) :] == ["patch DispatchStart status"]
    assert caplog.text.count("does not keep") == 1
    api.patch = patch  # type: ignore[method-assign]
    await operator.reconcile()
    assert operator.outdated.problems() == []
    await operator.reconcile("second")
    assert {operator.start(name)["status"]["phase"] for name in ("llama-s1", "second")} == {"Gated"}


@pytest.mark.parametrize("ends", ["deleted", "forgotten"])
async def test_a_write_that_nobody_tries_again_holds_nothing_back(
    api: FakeApi, operator: FakeOperator, ends: str
) -> None:
    now = 0.0
    operator.outdated = OutdatedCrd("dispatchstarts", lambda: now)
    operator.outdated.note(Key(NAMESPACE, "first"), "status.reference")
    assert (await operator.reconcile()).requeue_after == HELD_BACK
    assert api.writes() == []
    if ends == "deleted":
        await operator.reconcile("first")
    else:
        now = STALE_SECONDS + 1
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"


@pytest.mark.looptime
async def test_no_backend_is_probed_meanwhile() -> None:
    api = make_api()
    operator = FakeBackends(api)
    key = Key(NAMESPACE, "llama-s1")
    operator.backends.outdated.note(key, "status.reference")
    result = await operator.reconcile()
    assert (result, api.writes()) == (Result(requeue_after=CHECK_SECONDS), [])
    operator.backends.outdated.settle(key)
    await operator.reconcile()
    assert unproven(operator.status()) == {}


async def test_a_stop_that_is_recorded_goes_on(api: FakeApi, operator: FakeOperator) -> None:
    api.before = always("delete", JOB, unanswered("delete"))
    api.admit = lambda request, body: {**body, "spec": {}} if request.kind == JOB else body
    for _ in range(2):
        await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"
    operator.outdated.note(Key(NAMESPACE, "another"), "status.reference")
    api.before = lambda _request: None
    await operator.reconcile()
    assert api.all(JOB) == []
