"""A status that the API server refuses for good: tried again ever more seldom, told once, and counted."""

import logging

import pytest

from dispatch_operator.metrics.instruments import REFUSED_STATUSES
from dispatch_operator.reconcile.actions import Result
from support.backends import FakeBackends
from support.builders import make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, nth, refusal
from support.operator import FakeOperator

START, BACKEND = "DispatchStart", "DispatchBackend"
TRIES = 5
REFUSALS = [
    (422, "Invalid", 'DispatchStart.x "y" is invalid: status.phase: Unsupported value: "Z"'),
    (413, "RequestEntityTooLarge", "limit is 3145728"),
    (500, "", "etcdserver: request is too large"),
    (403, "Forbidden", 'admission webhook "x" denied the request: no'),
    (400, "BadRequest", "no"),
]
PASSING = [
    (429, "TooManyRequests", "slow down"),
    (503, "ServiceUnavailable", "unavailable"),
    (403, "Forbidden", 'User "x" cannot patch resource "dispatchstarts/status" in API group "y"'),
]


def counted(kind: str) -> float:
    (family,) = REFUSED_STATUSES.labels(kind).collect()
    return family.samples[0].value


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    backend, start = make_backend(), make_start()
    for obj in (make_runtime(), backend, start):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else obj.pop("status", {})))
    return api


@pytest.mark.parametrize(("status", "reason", "text"), REFUSALS)
async def test_of_a_start(api: FakeApi, caplog: pytest.LogCaptureFixture, status: int, reason: str, text: str) -> None:
    operator, before = FakeOperator(api), counted(START)
    api.before = always("patch", START, refusal("patch", START, status, reason, text))
    for _ in range(TRIES):
        assert await operator.reconcile() == Result(requeue=True, refused=True)
    (told,) = warnings(caplog)
    assert "the status is refused, and tried again ever more seldom" in told
    assert text in told
    assert counted(START) - before == TRIES
    # What is taken is forgotten: another refusal is told again.
    api.before = lambda _: None
    await operator.settle()
    api.edit(START, lambda start: start["spec"].update(gate="Open"))
    api.before = always("patch", START, refusal("patch", START, status, reason, text))
    await operator.reconcile()
    assert len(warnings(caplog)) == 2


@pytest.mark.parametrize(("status", "reason", "text"), PASSING)
async def test_what_passes_is_no_refusal(
    api: FakeApi, caplog: pytest.LogCaptureFixture, status: int, reason: str, text: str
) -> None:
    before = counted(START)
    api.before = always("patch", START, refusal("patch", START, status, reason, text))
    operator = FakeOperator(api)
    for _ in range(TRIES):
        assert await operator.reconcile() == Result(requeue=True)
    assert len(warnings(caplog)) == TRIES
    assert counted(START) == before


async def test_nothing_is_kept_of_a_start_that_is_gone(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    operator, start = FakeOperator(api), api.one(START)
    api.before = always("patch", START, refusal("patch", START, *REFUSALS[0]))
    await operator.reconcile()
    api.remove(START, start["metadata"]["namespace"], start["metadata"]["name"])
    await operator.reconcile()
    api.put(start)
    await operator.reconcile()
    assert len(warnings(caplog)) == 2


@pytest.mark.looptime
class TestOfABackend:
    """Its controller probes, and a backend whose status can't be written must not be probed again and again."""

    @pytest.mark.parametrize(("status", "reason", "text"), REFUSALS)
    async def test_nothing_is_probed_that_can_not_be_recorded(
        self, caplog: pytest.LogCaptureFixture, status: int, reason: str, text: str
    ) -> None:
        api, before = FakeApi(), counted(BACKEND)
        api.put(make_runtime())
        backend = make_backend()
        backend.pop("status")
        api.put(backend)
        api.before = always("patch", BACKEND, refusal("patch", BACKEND, status, reason, text))
        backends = FakeBackends(api)
        for _ in range(TRIES):
            assert await backends.reconcile() == Result(requeue=True, refused=True)
        assert len(warnings(caplog)) == 1
        assert counted(BACKEND) - before == TRIES
        assert not [request for request in api.requests if request.verb == "create"]
        api.remove(BACKEND, backend["metadata"]["namespace"], "default")
        assert await backends.reconcile() == Result()

    async def test_a_verdict_that_can_not_be_recorded_is_not_sought_each_minute(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = FakeApi(collects=True)
        api.put(make_runtime())
        backend = make_backend()
        backend.pop("status")
        api.put(backend)
        # The first write says that it is probed.
        api.before = nth(2, "patch", BACKEND, refusal("patch", BACKEND, *REFUSALS[0]))
        backends = FakeBackends(api)
        assert await backends.reconcile() == Result(requeue=True, refused=True)
        assert len([one for one in warnings(caplog) if "the status is refused" in one]) == 1

    async def test_why_there_is_no_verdict_can_not_be_told(self, caplog: pytest.LogCaptureFixture) -> None:
        api = FakeApi()
        api.put(make_runtime())
        backend = make_backend()
        backend.pop("status")
        api.put(backend)
        served = refusal("get", "Served", 503, "ServiceUnavailable", "unavailable")
        refused = refusal("patch", BACKEND, *REFUSALS[0])
        api.before = lambda request: {"Served": served, BACKEND: refused if request.verb == "patch" else None}.get(
            request.kind
        )
        backends = FakeBackends(api)
        assert await backends.reconcile() == Result(requeue=True, refused=True)
        assert len([one for one in warnings(caplog) if "the status is refused" in one]) == 1
