"""keepEnded: the TrainJob of an ended job is deleted after a while, and nothing else changes, ever again."""

from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.api import times
from dispatch_operator.metrics import instruments
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.events import Event
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, Request, always, nth, refusal, unanswered
from support.operator import NOW, FakeOperator, conditions
from support.records import watched

Object = dict[str, Any]
COPY, JOB, START, BACKEND = "TrainingRuntime", "TrainJob", "DispatchStart", "DispatchBackend"
HOUR = 3600.0
READS_AND_DELETE = [f"get {BACKEND}", f"get {JOB}", f"delete {JOB}"]


def ends(api: FakeApi, kind: str = "Complete", *, at: float | str | None = NOW) -> None:
    """Let the job end, by Trainer's own word."""
    told = at if isinstance(at, str) or at is None else times.written(at)
    entry = {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": told}
    api.edit(JOB, lambda job: job.update(status={"conditions": [entry]}))


def keeps(api: FakeApi, kept: str | None) -> None:
    """Let the admin say how long an ended job is kept."""

    def change(backend: Object) -> None:
        backend["spec"].pop("keepEnded", None)
        backend["spec"] |= {"keepEnded": kept} if kept else {}

    api.edit(BACKEND, change)


def asked(api: FakeApi) -> list[str]:
    return [str(request) for request in api.requests]


async def an_operator(api: FakeApi, *, gate: str = "Open", kept: str | None = "1h") -> FakeOperator:
    """Return an operator that has brought a Start to its phase, in a world with a garbage collector."""
    api.collects = True
    for obj in (make_runtime(), make_backend(**({"keepEnded": kept} if kept else {})), make_start(gate=gate)):
        api.put(obj, **obj.pop("status", {}))
    operator = FakeOperator(api)
    await operator.settle()
    return operator


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def operator(api: FakeApi) -> FakeOperator:
    """An operator whose job has ended at NOW, which is recorded; the backend keeps ended jobs for an hour."""
    operator = await an_operator(api)
    ends(api)
    operator.now = NOW + 1
    await operator.settle()
    api.requests.clear()
    return operator


def is_gone(api: FakeApi) -> bool:
    """Tell whether TrainJob and copy are gone; either both are, or neither."""
    left = {kind: bool(api.all(kind)) for kind in (JOB, COPY)}
    assert len({*left.values()}) == 1
    return not left[JOB]


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
async def test_an_ended_job_goes_when_its_time_has_come_and_its_record_stays(api: FakeApi, kind: str) -> None:
    operator = await an_operator(api)
    ends(api, kind)
    recorded = await operator.settle()
    assert recorded["status"]["phase"] == {"Complete": "Succeeded", "Failed": "Failed"}[kind]
    api.requests.clear()
    operator.now = NOW + HOUR - 1
    assert await operator.reconcile() == Result(requeue_after=1.0)
    assert api.requests == []
    operator.now = NOW + HOUR
    assert await operator.reconcile() == Result()
    assert asked(api) == READS_AND_DELETE
    assert is_gone(api)
    assert operator.start() == recorded


async def test_what_is_gone_is_never_looked_for_nor_made_again(api: FakeApi, operator: FakeOperator) -> None:
    operator.now = NOW + HOUR
    await operator.reconcile()
    recorded = operator.start()
    api.requests.clear()
    for change in (None, "1s", None, "999999h"):
        keeps(api, change)
        assert await operator.reconcile() == Result()
    api.remove(BACKEND, NAMESPACE, "default")
    assert await operator.reconcile() == Result()
    # A restart: nothing is remembered.
    assert await FakeOperator(api, NOW + 2 * HOUR).reconcile() == Result()
    assert api.requests == []
    assert operator.start()["status"] == recorded["status"]


@pytest.mark.parametrize("gate", ["Held", "Open"])
async def test_a_gate_that_moves_after_the_end_is_observed_and_starts_nothing(
    api: FakeApi, operator: FakeOperator, gate: str
) -> None:
    operator.now = NOW + HOUR
    await operator.reconcile()
    api.edit(START, lambda start: start["spec"].update(gate=gate))
    start = await operator.settle()
    assert start["status"]["phase"] == "Succeeded"
    assert start["status"]["observedGeneration"] == start["metadata"]["generation"]
    assert is_gone(api)


async def test_absent_keeps_for_ever(api: FakeApi) -> None:
    operator = await an_operator(api, kept=None)
    ends(api)
    await operator.settle()
    api.requests.clear()
    operator.now = NOW + 10**9
    assert await operator.reconcile() == Result()
    assert api.requests == []


@pytest.mark.parametrize(
    ("before", "after", "due_in"),
    [(None, "2h", HOUR), ("1h", "90m", HOUR / 2), ("3h", "90m", HOUR / 2), ("90m", None, None), ("1h30m", "0s", None)],
    ids=["added", "lengthened", "shortened", "removed", "what the CRD refuses"],
)
async def test_the_keep_ended_of_today_counts(
    api: FakeApi, before: str | None, after: str | None, due_in: float | None
) -> None:
    operator = await an_operator(api, kept=before)
    ends(api)
    await operator.settle()
    operator.now = NOW + HOUR - 1
    await operator.reconcile()
    keeps(api, after)
    operator.now = NOW + HOUR
    assert await operator.reconcile() == Result(requeue_after=due_in)
    assert not is_gone(api)


async def test_a_keep_ended_that_is_due_already_when_it_is_added_counts_at_once(api: FakeApi) -> None:
    operator = await an_operator(api, kept=None)
    ends(api)
    await operator.settle()
    operator.now = NOW + HOUR
    keeps(api, "1s")
    await operator.reconcile()
    assert is_gone(api)


@pytest.mark.parametrize("state", ["ReadOnly", "Closed"])
async def test_a_backend_that_takes_no_starts_still_says_how_long(
    api: FakeApi, operator: FakeOperator, state: str
) -> None:
    api.edit(BACKEND, lambda backend: backend["spec"].update(state=state))
    operator.now = NOW + HOUR
    await operator.reconcile()
    assert is_gone(api)


def _deleted(api: FakeApi) -> None:
    api.remove(BACKEND, NAMESPACE, "default")


def _goes(api: FakeApi) -> None:
    api.edit(BACKEND, lambda backend: backend["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


def _breaks(api: FakeApi) -> None:
    api.edit(BACKEND, lambda backend: backend["spec"].update(runtimes=5))


@pytest.mark.parametrize("change", [_deleted, _goes, _breaks, lambda api: keeps(api, None)])
@pytest.mark.parametrize("stale", [True, False])
async def test_a_backend_that_says_nothing_any_more_deletes_nothing_whatever_the_cache_says(
    api: FakeApi, operator: FakeOperator, change: Callable[[FakeApi], None], stale: bool
) -> None:
    operator.watch()
    change(api)
    operator.now = NOW + HOUR
    assert await operator.reconcile(stale=stale) == Result()
    assert asked(api) == ([f"get {BACKEND}"] if stale else [])
    assert not is_gone(api)


@pytest.mark.parametrize("gate", ["Closed", "Open", "Held"])
async def test_a_job_that_has_not_ended_is_not_touched(api: FakeApi, gate: str) -> None:
    operator = await an_operator(api, gate=gate, kept="1s")
    api.requests.clear()
    operator.now = NOW + 1000 * HOUR
    await operator.reconcile()
    assert "delete TrainJob" not in asked(api)
    assert not is_gone(api)


async def test_a_refused_start_is_not_touched(api: FakeApi) -> None:
    operator = await an_operator(api, kept="1s")
    other = make_start("other", command=[])
    api.put(other, **other.pop("status"))
    refused = await operator.settle("other")
    assert refused["status"]["phase"] == "Refused"
    api.requests.clear()
    operator.now = NOW + HOUR
    assert await operator.reconcile("other") == Result()
    assert api.requests == []


async def test_an_end_that_somebody_wrote_deletes_no_running_job(api: FakeApi) -> None:
    operator = await an_operator(api, kept="1s")
    operator.now = NOW + HOUR
    told = {"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "", "observedGeneration": 1}

    def succeeded(start: Object) -> None:
        kept = [one for one in start["status"]["conditions"] if one["type"] != "Succeeded"]
        start["status"]["conditions"] = [*kept, {**told, "lastTransitionTime": times.written(NOW)}]
        start["status"] |= {"phase": "Succeeded", "outcome": {"state": "Succeeded"}}

    api.edit(START, succeeded)
    start = await operator.settle()
    assert not is_gone(api)
    assert start["status"]["phase"] == "Queued"
    assert "outcome" not in start["status"]


async def test_a_cached_end_deletes_no_running_job(api: FakeApi) -> None:
    """Somebody wrote Complete into the TrainJob's status, and Trainer took it away again."""
    operator = await an_operator(api)
    ends(api)
    await operator.settle()
    operator.watch()
    api.edit(JOB, lambda job: job.update(status={"conditions": []}))
    api.requests.clear()
    operator.now = NOW + HOUR
    await operator.reconcile(stale=True)
    assert asked(api)[:2] == READS_AND_DELETE[:2]
    assert "delete TrainJob" not in asked(api)
    assert not is_gone(api)
    assert operator.start()["status"]["phase"] == "Queued"


async def test_the_end_is_recorded_before_the_train_job_is_deleted(api: FakeApi) -> None:
    operator = await an_operator(api, kept="1s")
    ends(api, "Failed")
    operator.now = NOW + HOUR
    api.requests.clear()
    api.before = always("patch", START, refusal("patch", START, 503, "ServiceUnavailable", "later"))
    await operator.reconcile()
    assert not is_gone(api)
    assert "delete TrainJob" not in asked(api)
    api.before = lambda _request: None
    start = await operator.settle()
    assert is_gone(api)
    assert api.writes()[-2:] == ["patch DispatchStart status", "delete TrainJob"]
    assert start["status"]["outcome"]["state"] == "Failed"


async def test_the_servers_time_of_the_answer_counts(api: FakeApi, operator: FakeOperator) -> None:
    """The operator's clock was two hours ahead until it heard of the API server's."""
    operator.now = NOW + 2 * HOUR

    def tells_the_time(request: Request) -> None:
        if str(request) == "get TrainJob":
            operator.now = NOW + HOUR / 2

    api.after = tells_the_time
    assert await operator.reconcile() == Result(requeue_after=HOUR / 2)
    assert asked(api) == READS_AND_DELETE[:2]
    assert not is_gone(api)


@pytest.mark.parametrize("at", [None, "", "yesterday", times.written(NOW + 1000 * HOUR)])
async def test_an_end_whose_time_is_not_told_or_lies_ahead_is_not_due(api: FakeApi, at: str | None) -> None:
    operator = await an_operator(api, kept="1s")
    ends(api, at=at)
    await operator.settle()
    api.requests.clear()
    operator.now = NOW + HOUR
    await operator.reconcile()
    assert api.requests == []


async def test_a_train_job_of_another_uid_is_not_deleted(api: FakeApi, operator: FakeOperator) -> None:
    """Somebody deleted the TrainJob and created one of the same name while the cache was behind."""
    operator.watch()
    api.remove(JOB, NAMESPACE, NAME)
    api.put({"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {}})
    ends(api)
    operator.now = NOW + HOUR
    await operator.reconcile(stale=True)
    assert api.one(JOB)
    assert "delete TrainJob" not in asked(api)
    assert operator.start()["status"]["phase"] == "Succeeded"


async def test_a_train_job_that_is_replaced_right_before_the_delete_stays(api: FakeApi, operator: FakeOperator) -> None:
    def replaces(request: Request) -> None:
        if str(request) == "delete TrainJob" and api.one(JOB)["metadata"]["uid"] != "another":
            job = api.one(JOB)
            api.objects[JOB, NAMESPACE, NAME] = {**job, "metadata": {**job["metadata"], "uid": "another"}}

    api.before = replaces
    operator.now = NOW + HOUR
    await operator.reconcile()
    assert api.one(JOB)["metadata"]["uid"] == "another"


async def test_one_that_is_on_its_way_out_is_left_alone(api: FakeApi, operator: FakeOperator) -> None:
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["somebody/s"]}
    api.edit(JOB, lambda job: job["metadata"].update(gone))
    operator.now = NOW + HOUR
    assert await operator.reconcile() == Result()
    assert api.requests == []


@pytest.mark.parametrize("what", ["get DispatchBackend", "get TrainJob", "delete TrainJob"])
async def test_what_fails_is_tried_again_with_backoff(api: FakeApi, operator: FakeOperator, what: str) -> None:
    verb, kind = what.split()
    busy = refusal(verb, kind, 429, "TooManyRequests", "slow")
    busy.retry_after = 7.0
    api.before = always(verb, kind, busy)
    operator.now = NOW + HOUR
    assert await operator.reconcile() == Result(requeue=True, retry_after=7.0)
    assert not is_gone(api)
    assert asked(api)[-1] == what
    api.before = lambda _request: None
    await operator.reconcile()
    assert is_gone(api)


async def test_a_delete_whose_answer_was_lost_is_no_loss(api: FakeApi, operator: FakeOperator) -> None:
    recorded = operator.start()
    api.after = nth(1, "delete", JOB, unanswered("delete", JOB))
    operator.now = NOW + HOUR
    assert (await operator.reconcile()).requeue
    assert await operator.reconcile() == Result()
    assert is_gone(api)
    assert operator.start() == recorded


async def test_a_delete_is_told_of(api: FakeApi, operator: FakeOperator) -> None:
    why = "it ended at 2026-01-01T00:00:00Z, and keepEnded of DispatchBackend default is 1h"
    api.before = always("delete", JOB, refusal("delete", JOB, 403, "Forbidden", "a webhook says no"))
    operator.now = NOW + HOUR
    await operator.reconcile()
    api.before = lambda _request: None
    counted = instruments.EXPIRED._value  # noqa: SLF001 - it has no other way to be read.
    before = counted.get()
    await operator.reconcile()
    assert counted.get() == before + 1
    failed, told = operator.told
    assert (failed.type, failed.reason) == ("Warning", "TrainJobNotDeleted")
    assert failed.message.startswith(f"TrainJob {NAME} is to be deleted, for {why}; it is tried again: ")
    assert "a webhook says no" in failed.message
    assert told == Event("Normal", "TrainJobDeleted", f"TrainJob {NAME} was deleted, for {why}; this record stays")


@pytest.mark.parametrize("left", [{}, {"observedGeneration": -1}, {"conditions": []}])
async def test_a_status_that_is_lost_afterwards_starts_nothing_anew(
    api: FakeApi, operator: FakeOperator, left: Object
) -> None:
    operator.now = NOW + HOUR
    await operator.reconcile()
    api.edit(START, lambda start: start.update(status=left))
    api.requests.clear()
    start = await operator.settle()
    assert api.writes() == ["patch DispatchStart status"]
    assert is_gone(api)
    assert (start["status"]["phase"], conditions(start)["Finished"]) == ("Lost", ("True", "Lost"))


@pytest.mark.parametrize(
    "lost", [("phase",), ("conditions",), ("outcome", "reference", "copy", "source"), ("phase", "conditions")]
)
async def test_parts_of_a_status_that_are_lost_afterwards_are_no_loss_of_the_job(
    api: FakeApi, operator: FakeOperator, lost: tuple[str, ...]
) -> None:
    operator.now = NOW + HOUR
    await operator.reconcile()

    def loses(start: Object) -> None:
        for part in lost:
            del start["status"][part]

    api.edit(START, loses)
    api.requests.clear()
    start = await operator.settle()
    assert start["status"]["phase"] == "Succeeded"
    assert is_gone(api)
    assert {"create TrainJob", "create TrainingRuntime"}.isdisjoint(asked(api))


async def test_one_that_turns_up_late_after_the_end_is_still_deleted(api: FakeApi, operator: FakeOperator) -> None:
    late = api.one(JOB)
    operator.now = NOW + HOUR
    await operator.reconcile()
    del late["metadata"]["uid"]
    late["spec"]["suspend"] = True
    late.pop("status")
    api.put(late)
    start = await operator.settle()
    assert is_gone(api)
    assert start["status"]["phase"] == "Succeeded"


async def test_in_kueue_mode_it_is_the_same(api: FakeApi) -> None:
    operator = await an_operator(api)
    ends(api, "Failed", at=NOW)
    workload = {"kind": "Workload", "metadata": {"name": "w", "namespace": NAMESPACE}}
    owner = {"kind": JOB, "name": NAME, "uid": api.one(JOB)["metadata"]["uid"]}
    api.put({**workload, "metadata": {**workload["metadata"], "ownerReferences": [owner]}})
    await operator.settle()
    operator.now = NOW + HOUR
    await operator.reconcile()
    assert is_gone(api)
    assert api.all("Workload") == []
    assert watched(operator.start()).metadata.name == "llama-s1"


async def test_a_cancellation_that_comes_after_the_end_changes_nothing_and_keeps_nothing(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.edit(START, lambda start: start["spec"].update(gate="Cancelled"))
    assert (await operator.settle())["status"]["phase"] == "Succeeded"
    assert not is_gone(api)
    operator.now = NOW + HOUR
    await operator.reconcile()
    assert is_gone(api)
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["outcome"]["state"]) == ("Succeeded", "Succeeded")


async def test_a_cancellation_after_the_train_job_is_gone_leaves_the_end_as_it_is(
    api: FakeApi, operator: FakeOperator
) -> None:
    operator.now = NOW + HOUR
    await operator.reconcile()
    api.edit(START, lambda start: start["spec"].update(gate="Cancelled"))
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["outcome"]["state"]) == ("Succeeded", "Succeeded")
    assert start["status"]["observedGeneration"] == start["metadata"]["generation"]
