"""A served CRD that is older than the operator: nothing new is begun until it keeps what is recorded."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.api.enums import Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.controllers.backend import CHECK_SECONDS
from dispatch_operator.kube.errors import answered
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.outdated_crd import STALE_SECONDS, OutdatedCrd
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.reconciler import HELD_BACK
from support.backends import FakeBackends, make_api, unproven
from support.builders import NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, unanswered
from support.operator import FakeOperator

Object = dict[str, Any]
JOB, START, BACKEND = "TrainJob", "DispatchStart", "DispatchBackend"
KEY = Key(NAMESPACE, "llama-s1")
SENT, KEPT = StartStatus(phase=Phase.GATED, epoch="2026-01-01T00:00:00Z"), StartStatus(phase=Phase.GATED)
TOLD = f"the served CRD {{}}.dispatch.phpboyscout.uk, v1alpha1, {{}}: upgrade the CRDs ({NAMESPACE}/{{}})"


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api, checks_invariants=False)


def drops(api: FakeApi, kind: str, field: str) -> Callable[[], None]:
    """Serve a CRD that drops a field of the status; return what has the newer one served."""
    patch = api.patch

    async def pruned(of: str, namespace: str, name: str, body: Object, **how: Any) -> Object:
        if of == kind and "status" in body:
            body = {**body, "status": {**body["status"], field: None}}
        return await patch(of, namespace, name, body, **how)

    api.patch = pruned  # type: ignore[method-assign]
    return lambda: setattr(api, "patch", patch)


def refuses(api: FakeApi, kind: str, *fields: str) -> Callable[[], None]:
    """Serve a CRD that does not allow what fields hold; return what has the newer one served."""
    causes = [{"field": field, "message": "Unsupported value", "reason": "FieldValueNotSupported"} for field in fields]
    status = json.dumps({"kind": "Status", "reason": "Invalid", "message": "is invalid", "details": {"causes": causes}})
    error = answered("patch", kind, 422, status, None)
    api.before = lambda request: error if (request.kind, request.subresource) == (kind, "status") else None
    return lambda: setattr(api, "before", lambda _: None)


@pytest.mark.parametrize(
    ("serve_older", "how"),
    [
        (lambda api: drops(api, START, "reference"), "does not keep status.reference"),
        (
            lambda api: refuses(api, START, "status.phase", "status.outcome.state", "status.phase"),
            "refuses status.phase, status.outcome.state",
        ),
    ],
    ids=["dropped", "refused"],
)
async def test_all_that_is_new_is_held_back_until_the_write_that_shows_it_succeeds(
    api: FakeApi, operator: FakeOperator, caplog: pytest.LogCaptureFixture, serve_older: Any, how: str
) -> None:
    api.put(make_start("second", submission=2), observedGeneration=-1)
    upgrade = serve_older(api)
    assert await operator.reconcile() == Result(requeue=True)
    assert operator.outdated.problems() == [TOLD.format("dispatchstarts", how, KEY.name)]
    written = api.writes()
    assert (await operator.reconcile("second")).requeue_after == HELD_BACK
    assert api.writes() == written
    # Its own write is tried again, and told once.
    assert await operator.reconcile() == Result(requeue=True)
    assert api.writes()[len(written) :] == ["patch DispatchStart status"]
    assert caplog.text.count(f"{how}: upgrade the CRDs") == 1
    upgrade()
    await operator.reconcile()
    assert operator.outdated.problems() == []
    await operator.reconcile("second")
    assert {operator.start(name)["status"]["phase"] for name in ("llama-s1", "second")} == {"Gated"}


@pytest.mark.parametrize("fields", [(), ("<nil>",), ("spec.request",), ("status.phase", "spec.backend"), (5,)], ids=str)
async def test_what_is_not_valid_in_the_rest_of_an_object_holds_no_other_back(
    api: FakeApi, operator: FakeOperator, fields: tuple[str, ...]
) -> None:
    refuses(api, START, *fields)
    assert (await operator.reconcile()).refused
    assert operator.outdated.problems() == []


async def test_the_write_that_shows_it_is_tried_again_where_something_else_would_come_next(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.edit(BACKEND, lambda obj: obj["spec"].update(state="ReadOnly"))
    upgrade = drops(api, START, "conditions")
    assert (await operator.reconcile()).requeue
    api.edit(BACKEND, lambda obj: obj["spec"].update(state="Open"))
    before = api.writes()
    for _ in range(3):
        assert (await operator.reconcile()).requeue
    assert api.writes()[len(before) :] == ["patch DispatchStart status"] * 3
    upgrade()
    await operator.reconcile()
    assert operator.outdated.problems() == []
    assert operator.start()["status"]["phase"] == "Gated"


def test_what_was_not_kept_is_written_over_nothing_that_was_written_since() -> None:
    outdated = OutdatedCrd()
    assert outdated.compare(Kind.DISPATCH_START, KEY, SENT, KEPT)
    assert outdated.to_write_again(Kind.DISPATCH_START, KEY, KEPT) == SENT
    assert outdated.to_write_again(Kind.DISPATCH_START, KEY, StartStatus(phase=Phase.QUEUED)) is None
    assert outdated.to_write_again(Kind.DISPATCH_START, Key(NAMESPACE, "another"), KEPT) is None
    assert outdated.to_write_again(Kind.DISPATCH_BACKEND, KEY, KEPT) is None


def test_one_that_is_shown_is_ended_by_no_write_of_another_object() -> None:
    outdated = OutdatedCrd()
    outdated.compare(Kind.DISPATCH_START, KEY, SENT, KEPT)
    assert not outdated.compare(Kind.DISPATCH_START, Key(NAMESPACE, "another"), SENT, SENT)
    assert outdated.compare(Kind.DISPATCH_BACKEND, KEY, SENT, StartStatus())
    assert outdated.problems() == [TOLD.format("dispatchstarts", "does not keep status.epoch", KEY.name)]
    assert not outdated.compare(Kind.DISPATCH_START, KEY, SENT, SENT)
    assert not outdated.is_known


@pytest.mark.parametrize("ends", ["deleted", "forgotten"])
async def test_a_write_that_nobody_tries_again_holds_nothing_back(
    api: FakeApi, operator: FakeOperator, ends: str
) -> None:
    now = 0.0
    operator.outdated = OutdatedCrd(lambda: now)
    operator.outdated.compare(Kind.DISPATCH_START, Key(NAMESPACE, "first"), SENT, KEPT)
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
    operator.backends.outdated.compare(Kind.DISPATCH_START, KEY, SENT, KEPT)
    result = await operator.reconcile()
    assert (result, api.writes()) == (Result(requeue_after=CHECK_SECONDS), [])
    operator.backends.outdated.settle(Kind.DISPATCH_START, KEY)
    await operator.reconcile()
    assert unproven(operator.status()) == {}


async def test_a_stop_that_is_recorded_goes_on(api: FakeApi, operator: FakeOperator) -> None:
    api.before = always("delete", JOB, unanswered("delete"))
    api.admit = lambda request, body: {**body, "spec": {}} if request.kind == JOB else body
    for _ in range(2):
        await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"
    operator.outdated.compare(Kind.DISPATCH_START, Key(NAMESPACE, "another"), SENT, KEPT)
    api.before = lambda _request: None
    await operator.reconcile()
    assert api.all(JOB) == []


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("serve_older", "how"),
    [
        (lambda api: drops(api, BACKEND, "gates"), "does not keep status.gates"),
        (lambda api: drops(api, BACKEND, "proof"), "does not keep status.proof"),
        (lambda api: refuses(api, BACKEND, "status.gates[0].name", "<nil>"), "refuses status.gates[0].name"),
    ],
    ids=["no gates", "no proof", "refused"],
)
async def test_a_backend_whose_status_is_not_kept_is_not_probed_over_and_over(serve_older: Any, how: str) -> None:
    api = make_api()
    operator = FakeBackends(api)
    upgrade = serve_older(api)
    outdated = operator.backends.outdated
    while not outdated.is_known:
        await operator.reconcile()
    assert outdated.problems() == [TOLD.format("dispatchbackends", how, "default")]
    made = len(api.writes())
    for _ in range(3):
        assert await operator.reconcile() == Result(requeue=True)
    assert api.writes()[made:] == ["patch DispatchBackend status"] * 3
    upgrade()
    for _ in range(3):
        await operator.reconcile()
    assert not outdated.is_known
    assert unproven(operator.status()) == {}
    assert operator.status()["proof"]


@pytest.mark.looptime
async def test_a_backend_that_goes_holds_nothing_back() -> None:
    api = make_api()
    operator = FakeBackends(api)
    drops(api, BACKEND, "gates")
    while not operator.backends.outdated.is_known:
        await operator.reconcile()
    api.remove(BACKEND, NAMESPACE, "default")
    await operator.reconcile()
    assert not operator.backends.outdated.is_known


@pytest.mark.looptime
async def test_a_backend_that_can_not_tell_why_it_has_no_verdict_tries_again() -> None:
    api = make_api()
    operator = FakeBackends(api)
    refuses(api, BACKEND, "status.gates[0].name")
    before = api.before
    api.before = lambda request: unanswered("list") if request.verb == "list" else before(request)
    operator.backends.client.served = lambda **_: gone()  # type: ignore[method-assign]
    assert (await operator.reconcile()).requeue
    assert operator.backends.outdated.is_known


async def gone() -> Any:
    raise unanswered("list")
