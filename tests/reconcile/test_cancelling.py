"""A gate that is Cancelled: what is there is stopped, nothing is started, and what was recorded before stays."""

from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.reconcile.events import events
from support.builders import NAME, NAMESPACE, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, Request, always, nth, refusal, unanswered
from support.operator import FakeOperator, conditions, message
from support.records import condition

Object = dict[str, Any]
Change = Callable[[Object], object]
COPY, JOB, START = "TrainingRuntime", "TrainJob", "DispatchStart"
LATER = refusal("create", JOB, 429, "TooManyRequests", "later")
UNREADABLE = refusal("get", "x", 503, "ServiceUnavailable", "later")
COMPLETE = {"type": "Complete", "status": "True", "reason": "AllJobsCompleted", "message": "all jobs completed"}
FAILED = {"type": "Failed", "status": "True", "reason": "NonZeroExitCode", "message": "it failed"}


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


def gate(api: FakeApi, word: str) -> None:
    api.edit(START, lambda start: start["spec"].update(gate=word))


def cancel(api: FakeApi) -> None:
    gate(api, "Cancelled")
    api.requests.clear()


def runs(api: FakeApi) -> None:
    api.edit(JOB, lambda job: job.update(status={"jobsStatus": [{"name": "node", "active": 1, "ready": 1}]}))


def ends(api: FakeApi, how: Object) -> None:
    api.edit(JOB, lambda job: job.update(status={"conditions": [how]}))


def late_job(api: FakeApi) -> Object:
    """Return a TrainJob of our start, as a create that lands late leaves it."""
    start = api.one(START)["metadata"]
    marks = {"dispatch.phpboyscout.uk/start": start["name"], "dispatch.phpboyscout.uk/start-uid": start["uid"]}
    labels = {"app.kubernetes.io/managed-by": "dispatch-operator"}
    meta = {"name": NAME, "namespace": NAMESPACE, "annotations": marks, "labels": labels}
    return {"kind": JOB, "metadata": meta, "spec": {"suspend": True}}


def is_cancelled(api: FakeApi, start: Object) -> None:
    """See that a start has ended as cancelled, and that nothing of it is left."""
    told = conditions(start)
    assert start["status"]["phase"] == "Cancelled"
    assert (start["status"]["outcome"]["state"], start["status"]["outcome"]["cause"]) == ("Cancelled", "Cancelled")
    assert told["Finished"] == ("True", "Cancelled")
    assert [told[kind] for kind in ("Ready", "Succeeded")] == [("False", "Cancelled")] * 2
    assert told["Stalled"] == ("True", "Cancelled")
    assert "Reconciling" not in told
    assert api.all(JOB) == api.all(COPY) == []


async def gated(_api: FakeApi, operator: FakeOperator) -> None:
    await operator.settle()


async def queued(api: FakeApi, operator: FakeOperator) -> None:
    gate(api, "Open")
    await operator.settle()


async def running(api: FakeApi, operator: FakeOperator) -> None:
    await queued(api, operator)
    runs(api)
    await operator.settle()


async def held(api: FakeApi, operator: FakeOperator) -> None:
    await running(api, operator)
    gate(api, "Held")
    await operator.settle()


async def holding(api: FakeApi, operator: FakeOperator) -> None:
    await running(api, operator)
    gate(api, "Held")
    api.before = always("patch", JOB, unanswered("patch"))
    await operator.reconcile()
    api.before = lambda _request: None


async def pending(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchBackend", lambda backend: backend["spec"].update(state="ReadOnly"))
    await operator.reconcile()


async def starting(api: FakeApi, operator: FakeOperator) -> None:
    api.before = nth(1, "create", JOB, LATER)
    await operator.reconcile()
    api.before = lambda _request: None


async def unseen(_api: FakeApi, _operator: FakeOperator) -> None:
    pass


STAGES = {
    "Gated": gated,
    "Queued": queued,
    "Running": running,
    "Held": held,
    "Holding": holding,
    "Pending": pending,
    "Starting": starting,
    None: unseen,
}
WAITS = {"Pending", "Starting"}


# With `retry: Never` a Start does not wait: it is refused.
@pytest.mark.parametrize(
    ("phase", "retry"),
    [
        (phase, retry)
        for phase in STAGES
        for retry in ("OnChange", "Never")
        if phase not in WAITS or retry == "OnChange"
    ],
)
async def test_it_is_cancelled_from_every_phase(api: FakeApi, operator: FakeOperator, phase: str, retry: str) -> None:
    api.edit(START, lambda start: start["spec"].update(retry=retry))
    await STAGES[phase](api, operator)
    assert operator.start()["status"].get("phase") == phase
    started = {kind: told for kind, told in _told(operator).items() if kind == "Started" and told[0] == "True"}
    uid = api.one(JOB)["metadata"]["uid"] if api.all(JOB) else None
    cancel(api)
    start = await operator.settle()
    is_cancelled(api, start)
    assert conditions(start)["Started"] == (started.get("Started") or ("False", "Cancelled"))
    assert start["status"].get("reference", {}).get("uid") == uid
    assert "create TrainJob" not in api.writes()
    assert api.writes()[0] == "patch DispatchStart status"


def _told(operator: FakeOperator) -> dict[str, tuple[str, str]]:
    return conditions(operator.start()) if "conditions" in operator.start()["status"] else {}


async def test_it_costs_two_writes_of_the_status_and_one_delete(api: FakeApi, operator: FakeOperator) -> None:
    await running(api, operator)
    cancel(api)
    await operator.reconcile()
    assert [str(request) for request in api.requests] == [
        "get TrainJob",
        "get TrainingRuntime",
        "patch DispatchStart status",
        "delete TrainJob",
        "get TrainJob",
        "patch DispatchStart status",
    ]
    told = [event for before, after in operator.announced[-2:] for event in events(before, after)]
    assert [(event.type, event.reason) for event in told] == [("Normal", "Stopping"), ("Normal", "Cancelled")]


async def test_a_second_look_at_what_was_cancelled_makes_no_request(api: FakeApi, operator: FakeOperator) -> None:
    await gated(api, operator)
    cancel(api)
    await operator.settle()
    api.requests.clear()
    await operator.reconcile()
    assert api.requests == []


@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_it_is_recorded_before_anything_is_deleted(api: FakeApi, operator: FakeOperator, kind: str) -> None:
    await (gated if kind == JOB else starting)(api, operator)
    cancel(api)
    api.before = always("delete", kind, unanswered("delete", kind))
    await operator.reconcile()
    start = operator.start()
    assert start["status"]["phase"] == "Stopping"
    assert conditions(start)["Succeeded"] == ("Unknown", "Cancelled")
    assert conditions(start)["Ready"] == ("False", "ErrOutcomeUnknown")
    assert conditions(start)["Reconciling"] == ("True", "ErrOutcomeUnknown")
    api.before = lambda _request: None
    is_cancelled(api, await operator.settle())


async def test_the_train_job_of_a_start_that_crashed_is_recorded_before_it_is_stopped(
    api: FakeApi, operator: FakeOperator
) -> None:
    def crash(request: Request) -> None:
        if str(request) == "patch DispatchStart status":
            raise SystemExit

    api.before = crash
    with pytest.raises(SystemExit):
        await operator.reconcile()
    api.before = always("delete", JOB, unanswered("delete"))
    uid = api.one(JOB)["metadata"]["uid"]
    cancel(api)
    await operator.reconcile()
    assert operator.start()["status"]["reference"]["uid"] == uid
    api.before = lambda _request: None
    is_cancelled(api, await operator.settle())


async def test_a_reference_that_could_not_be_seen_is_recorded_before_the_stop(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.after = nth(3, "patch", COPY, LATER)
    await operator.reconcile()
    api.edit(START, lambda start: start.update(status={"observedGeneration": -1}))
    cancel(api)
    api.before = always("get", JOB, UNREADABLE)
    assert (await operator.reconcile()).requeue
    start = operator.start()
    assert (start["status"]["phase"], "reference" in start["status"]) == ("Stopping", False)
    assert "can't be read" in message(start, "Ready")
    api.before = always("delete", JOB, unanswered("delete"))
    await operator.reconcile()
    assert operator.start()["status"]["reference"]["uid"] == api.one(JOB)["metadata"]["uid"]


async def test_a_train_job_that_takes_its_time_to_go_is_waited_for(api: FakeApi, operator: FakeOperator) -> None:
    await gated(api, operator)
    api.edit(JOB, lambda job: job["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    cancel(api)
    assert (await operator.reconcile()).requeue_after
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["Reconciling"]) == ("Stopping", ("True", "Cancelled"))
    api.remove(JOB, NAMESPACE, NAME)
    is_cancelled(api, await operator.settle())


async def test_a_copy_that_goes_with_its_train_job_is_not_waited_for(api: FakeApi, operator: FakeOperator) -> None:
    await gated(api, operator)
    api.collects = False
    cancel(api)
    assert (await operator.settle())["status"]["phase"] == "Cancelled"
    assert api.one(COPY)["metadata"]["ownerReferences"]


async def test_a_job_whose_marks_were_changed_is_stopped_by_its_uid(api: FakeApi, operator: FakeOperator) -> None:
    await gated(api, operator)
    api.edit(JOB, lambda job: job["metadata"].update(annotations={}, labels={}, ownerReferences=[]))
    cancel(api)
    is_cancelled(api, await operator.settle())


async def test_another_train_job_of_the_name_is_left_alone(api: FakeApi, operator: FakeOperator) -> None:
    await gated(api, operator)
    api.remove(JOB, NAMESPACE, NAME)
    human = api.put({"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"suspend": False}})
    cancel(api)
    start = await operator.settle()
    assert start["status"]["phase"] == "Cancelled"
    assert api.one(JOB) == human


async def test_what_turns_up_after_the_end_is_deleted(api: FakeApi, operator: FakeOperator) -> None:
    cancel(api)
    is_cancelled(api, await operator.settle())
    api.put(late_job(api))
    is_cancelled(api, await operator.settle())
    assert "delete TrainJob" in api.writes()


@pytest.mark.parametrize("request_is", ["never sent", "carried out"])
@pytest.mark.parametrize("retry", ["OnChange", "Never"])
async def test_a_create_in_flight_is_resolved_first(
    api: FakeApi, operator: FakeOperator, request_is: str, retry: str
) -> None:
    api.edit(START, lambda start: start["spec"].update(retry=retry))
    lost = always("create", JOB, unanswered())
    api.before = lambda request: (lost(request) if request_is == "never sent" else None) or _unread(request)
    api.after = lost
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "InFlight"
    cancel(api)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "InFlight"
    assert api.writes() == ["patch DispatchStart status"]
    api.before = api.after = lambda _request: None
    if request_is == "never sent":
        assert (await operator.reconcile()).requeue_after
        assert operator.start()["status"]["phase"] == "InFlight"
        operator.now += 60
    is_cancelled(api, await operator.settle())
    assert "create TrainJob" not in api.writes()
    assert ("reference" in operator.start()["status"]) is (request_is == "carried out")


def _unread(request: Request) -> Any:
    return UNREADABLE if str(request) == "get TrainJob" else None


async def test_an_invalid_request_that_is_cancelled_names_nothing(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(START, lambda start: start["spec"]["request"].update(job="no ULID"))
    cancel(api)
    is_cancelled(api, await operator.settle())
    assert {request.kind for request in api.requests} == {START}


@pytest.mark.parametrize(("how", "phase"), [(COMPLETE, "Succeeded"), (FAILED, "Failed")])
@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("loses", [None, "everything"])
async def test_a_job_that_had_ended_keeps_its_end(
    api: FakeApi, operator: FakeOperator, how: Object, phase: str, *, is_recorded: bool, loses: str | None
) -> None:
    await running(api, operator)
    ends(api, how)
    if is_recorded:
        await operator.settle()
    if loses:
        api.edit(START, lambda start: start.update(status={"observedGeneration": -1}))
    cancel(api)
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["outcome"]["state"]) == (phase, phase)
    assert conditions(start)["Finished"] == ("True", phase)
    assert start["status"]["observedGeneration"] == start["metadata"]["generation"]
    assert api.one(JOB)


async def test_a_job_that_ends_while_it_is_stopped_is_cancelled(api: FakeApi, operator: FakeOperator) -> None:
    await running(api, operator)
    cancel(api)
    api.before = always("delete", JOB, unanswered("delete"))
    await operator.reconcile()
    ends(api, COMPLETE)
    api.before = lambda _request: None
    is_cancelled(api, await operator.settle())


async def test_a_lost_job_stays_lost(api: FakeApi, operator: FakeOperator) -> None:
    await running(api, operator)
    api.remove(JOB, NAMESPACE, NAME)
    assert (await operator.settle())["status"]["phase"] == "Lost"
    cancel(api)
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["outcome"]["state"]) == ("Lost", "Lost")


@pytest.mark.parametrize("is_stopping", [True, False])
async def test_a_refusal_stays_one(api: FakeApi, operator: FakeOperator, *, is_stopping: bool) -> None:
    api.admit = lambda request, body: {**body, "spec": {}} if request.kind == JOB else body
    if is_stopping:
        api.before = always("delete", JOB, unanswered("delete"))
    await (operator.reconcile() if is_stopping else operator.settle())
    assert operator.start()["status"]["phase"] == ("Stopping" if is_stopping else "Refused")
    api.before = lambda _request: None
    cancel(api)
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))
    assert api.all(JOB) == api.all(COPY) == []


LOSSES: dict[str, Change] = {
    "everything": lambda status: [status.clear(), status.update(observedGeneration=-1)],
    "the phase": lambda status: status.pop("phase", None),
    "the conditions": lambda status: status.pop("conditions", None),
    "the phase and the conditions": lambda status: [status.pop("phase", None), status.pop("conditions", None)],
    "the outcome": lambda status: status.pop("outcome", None),
    "the reference": lambda status: status.pop("reference", None),
    "all but the conditions": lambda status: [status.pop(key) for key in list(status) if key != "conditions"],
}


@pytest.mark.parametrize("lost", LOSSES)
@pytest.mark.parametrize("at", ["Stopping", "Cancelled"])
async def test_a_status_that_is_lost_starts_nothing(api: FakeApi, operator: FakeOperator, lost: str, at: str) -> None:
    await running(api, operator)
    cancel(api)
    if at == "Stopping":
        api.before = always("delete", JOB, unanswered("delete"))
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == at
    api.before = lambda _request: None
    api.edit(START, lambda start: LOSSES[lost](start["status"]))
    api.requests.clear()
    is_cancelled(api, await operator.settle())
    assert [write for write in api.writes() if write.startswith("create")] == []


@pytest.mark.parametrize("part", ["phase", "outcome", "Finished"])
async def test_whatever_is_left_of_it_starts_nothing_when_the_gate_says_otherwise(
    api: FakeApi, operator: FakeOperator, part: str
) -> None:
    told: Object = {
        "phase": {"phase": "Cancelled"},
        "outcome": {"outcome": {"state": "Cancelled"}},
        "Finished": {"conditions": [make_condition("Finished", "True", "Cancelled")]},
    }[part]
    api.edit(START, lambda start: start.update(status=told))
    start = await operator.settle()
    assert start["status"]["phase"] == "Cancelled"
    assert api.all(JOB) == []


async def test_a_running_job_is_not_stopped_because_somebody_writes_cancelled(
    api: FakeApi, operator: FakeOperator
) -> None:
    await running(api, operator)
    api.edit(START, lambda start: start["status"].update(phase="Cancelled"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Running"
    assert api.one(JOB)["spec"]["suspend"] is False


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_another_of_the_submission_waits_for_the_train_job_of_a_cancelled_one(
    api: FakeApi, operator: FakeOperator, *, is_deleted: bool
) -> None:
    await gated(api, operator)
    cancel(api)
    api.before = always("delete", JOB, unanswered("delete"))
    await operator.reconcile()
    api.put(make_start("other"), observedGeneration=-1)
    await operator.reconcile("other")
    assert conditions(operator.start("other"))["Started"] == ("Unknown", "TrainJobLeaving")
    api.before = lambda _request: None
    if is_deleted:
        # Created again, it is another object: it waits, too.
        api.objects.pop((START, NAMESPACE, "llama-s1"))
        api.put(make_start(), observedGeneration=-1)
        await operator.reconcile()
        assert conditions(operator.start())["Started"] == ("Unknown", "TrainJobLeaving")
        api.remove(JOB, NAMESPACE, NAME)
    else:
        await operator.settle()
    assert (await operator.settle("other"))["status"]["phase"] == "Gated"


async def test_a_lost_answer_of_a_record_is_no_harm(api: FakeApi, operator: FakeOperator) -> None:
    await running(api, operator)
    cancel(api)
    api.after = nth(1, "patch", START, unanswered("patch", START))
    assert (await operator.reconcile()).requeue
    is_cancelled(api, await operator.settle())
    assert condition(operator.start(), "Started")["status"] == "True"
