"""Step 1 on a backend that is not proven, and what a Start that fails in step 8 or 9 does to its backend."""

from typing import Any

import pytest

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.events import events
from support.backends import FakeBackends, unproven
from support.builders import NAMESPACE, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, always, nth, refusal, unanswered
from support.openapi import served
from support.operator import NOW, FakeOperator, conditions, message

Object = dict[str, Any]
pytestmark = pytest.mark.looptime
BACKEND, JOB, COPY = "DispatchBackend", "TrainJob", "TrainingRuntime"
AFTER, IN_TWO_DAYS = "2026-01-01T00:00:30Z", "2026-01-03T00:00:00Z"
CONFLICT = refusal("patch", BACKEND, 409, "Conflict", "changed")


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj)
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


def gates(api: FakeApi, **reasons: str) -> None:
    def change(backend: Object) -> None:
        for gate in backend["status"]["gates"]:
            if reason := reasons.get(gate["name"].replace("-", "_")):
                gate |= {"proven": False, "reason": reason}

    api.edit(BACKEND, change)


async def test_a_start_waits_for_the_first_verdict(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(BACKEND, lambda held: held.update(status={"observedGeneration": -1}))
    start = await operator.settle()
    assert start["status"]["phase"] == "Pending"
    assert conditions(start)["Started"] == ("Unknown", "WaitingForProbe")
    assert conditions(start)["Ready"] == ("Unknown", "WaitingForProbe")
    assert "has not been probed yet" in message(start, "Started")
    assert api.writes() == ["patch DispatchStart status"]
    told = make_condition("Ready", "Unknown", message="still being probed")
    api.edit(BACKEND, lambda held: held["status"].update(conditions=[told]))
    assert "still being probed" in message(await operator.settle(), "Started")
    api.edit(BACKEND, lambda held: held.update(status=make_backend()["status"]))
    assert (await operator.settle())["status"]["phase"] == "Gated"


@pytest.mark.parametrize(("retry", "phase"), [("OnChange", "Pending"), ("Never", "Refused")])
async def test_an_observe_only_backend_refuses_naming_each_gate(
    api: FakeApi, operator: FakeOperator, retry: str, phase: str
) -> None:
    api.edit("DispatchStart", lambda held: held["spec"].update(retry=retry))
    gates(api, start_gate="a pod came through", collected="nothing is collected")
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["RequestValid"]) == (phase, ("False", "ErrUnsupported"))
    for text in ("start-gate is not proven: a pod came through", "collected is not proven: nothing is collected"):
        assert text in message(start, "Started")
    assert message(start, "Started").count("state: ") == 2
    assert "fields-kept" not in message(start, "Started")
    assert api.all(COPY) == api.all(JOB) == []
    api.edit(BACKEND, lambda held: held.update(status=make_backend()["status"]))
    assert (await operator.settle())["status"]["phase"] == ("Gated" if phase == "Pending" else "Refused")


@pytest.mark.parametrize(("state", "want"), [("Closed", "ErrUnreachable"), ("ReadOnly", "ErrReadOnly")])
@pytest.mark.parametrize("known", [True, False])
async def test_a_backend_that_takes_nothing_says_so_first(
    api: FakeApi, operator: FakeOperator, state: str, want: str, known: bool
) -> None:
    gates(api, start_gate="a pod came through")
    api.edit(BACKEND, lambda held: held["spec"].update(state=state))
    if not known:
        api.edit(BACKEND, lambda held: held.update(status={"observedGeneration": -1}))
    start = await operator.settle()
    assert conditions(start)["Started"] == ("False", want)
    assert "start-gate" not in message(start, "Started")


async def test_a_refusal_rests_on_a_live_read(api: FakeApi, operator: FakeOperator) -> None:
    gates(api, start_gate="a pod came through")
    operator.watch()
    api.edit(BACKEND, lambda held: held.update(status=make_backend()["status"]))
    await operator.reconcile(stale=True)
    assert operator.start()["status"]["phase"] == "Gated"


def injects(api: FakeApi, *, loses: tuple[str, ...] = ()) -> None:
    def admit(request: Any, body: Object) -> Object:
        if request.kind == JOB:
            for key in loses:
                del body["metadata"]["annotations"][key]
            body["spec"]["trainer"]["env"].append({"name": "INJECTED", "value": "1"})
        return body

    api.admit = admit


async def test_a_start_that_is_stored_changed_makes_its_backend_observe_only(
    api: FakeApi, operator: FakeOperator
) -> None:
    injects(api)
    api.collects = True
    api.edit(BACKEND, lambda held: held["status"].update(proof={"operatorVersion": "1.0.0"}))
    await operator.reconcile()
    status = api.one(BACKEND)["status"]
    assert unproven(status).keys() == {"fields-kept"}
    assert "DispatchStart llama-s1 failed: " in unproven(status)["fields-kept"]
    assert "INJECTED" in unproven(status)["fields-kept"]
    assert "proof" not in status
    assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
        "Ready": "False",
        "Reconciling": "True",
    }
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    # Once, as soon as the refusal was recorded, and never again.
    writes = api.writes()
    assert writes.count("patch DispatchBackend status") == 1
    assert writes.index("patch DispatchBackend status") == writes.index("patch DispatchStart status") + 1
    (event,) = [event for pair in operator.announced for event in events(*pair) if pair[1].KIND == BACKEND]
    assert (event.type, event.reason) == ("Warning", "ObserveOnly")
    # The next one is refused before anything is created.
    api.put(make_start("second", submission=2))
    await operator.reconcile("second")
    assert conditions(operator.start("second"))["Started"] == ("False", "ErrUnsupported")


async def test_two_starts_that_fail_doubt_once(api: FakeApi, operator: FakeOperator) -> None:
    injects(api)
    api.put(make_start("second", submission=2))
    other = FakeOperator(api)
    other.watch()
    await operator.reconcile()
    await other.reconcile("second", stale=True)
    assert operator.start("second")["status"]["phase"] == "Stopping"
    assert api.writes().count("patch DispatchBackend status") == 1


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        ("an unanswered write", nth(1, "patch", BACKEND, unanswered("patch", BACKEND))),
        ("a write to come again", nth(1, "patch", BACKEND, refusal("patch", BACKEND, 503, "Unavailable", "later"))),
        ("a backend that can't be read", nth(1, "get", BACKEND, unanswered("get", BACKEND))),
    ],
)
async def test_a_doubt_is_not_lost_when_nothing_but_the_backend_is_left(
    api: FakeApi, operator: FakeOperator, what: str, fault: Any
) -> None:
    injects(api)
    api.collects = True
    api.before = fault
    result = await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], result.requeue) == ("Stopping", True), what
    assert api.all(JOB) == api.all(COPY) == [], "what was created is not kept for it"
    assert "the backend is to be marked observe-only" in message(start, "Reconciling")
    assert "INJECTED" in message(start, "Started")
    assert unproven(api.one(BACKEND)["status"]) == {}
    assert (await operator.settle())["status"]["phase"] == "Refused"
    assert "INJECTED" in unproven(api.one(BACKEND)["status"])["fields-kept"]


async def test_a_doubt_that_nobody_may_write_is_tried_again_for_ever(api: FakeApi, operator: FakeOperator) -> None:
    injects(api)
    api.collects = True
    api.before = always("patch", BACKEND, refusal("patch", BACKEND, 403, "Forbidden", "no"))
    for _ in range(3):
        result = await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], result.requeue, result.refused) == ("Stopping", True, True)
    assert api.writes().count("patch DispatchStart status") == 2, "a failure that stays the same is told once"
    assert "patch DispatchBackend failed (403): no" in message(start, "Reconciling")


@pytest.mark.parametrize("why", ["the backend is gone", "it is not proven any more", "it was proven again since"])
async def test_a_doubt_that_is_not_needed_any_more_keeps_nothing_back(
    api: FakeApi, operator: FakeOperator, why: str
) -> None:
    injects(api)
    api.collects = True
    api.before = nth(1, "patch", BACKEND, unanswered("patch", BACKEND))
    await operator.reconcile()
    if why == "the backend is gone":
        api.remove(BACKEND, NAMESPACE, "default")
    elif why == "it is not proven any more":
        gates(api, fields_kept="another Start has shown it")
    else:
        api.edit(BACKEND, lambda held: [gate.update(lastProbeTime=AFTER) for gate in held["status"]["gates"]])
        operator.now += 60
    api.requests.clear()
    assert (await operator.settle())["status"]["phase"] == "Refused"
    assert "patch DispatchBackend status" not in api.writes()


async def test_a_doubt_that_meets_another_write_is_written_at_once(api: FakeApi, operator: FakeOperator) -> None:
    injects(api)
    api.before = nth(1, "patch", BACKEND, CONFLICT)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"
    assert unproven(api.one(BACKEND)["status"])


async def test_a_probe_time_that_lies_ahead_keeps_no_doubt_away(api: FakeApi, operator: FakeOperator) -> None:
    injects(api)
    api.edit(BACKEND, lambda held: [gate.update(lastProbeTime=IN_TWO_DAYS) for gate in held["status"]["gates"]])
    await operator.reconcile()
    assert "INJECTED" in unproven(api.one(BACKEND)["status"])["fields-kept"]


async def test_a_change_is_no_verdict_while_the_backend_can_not_be_read(api: FakeApi, operator: FakeOperator) -> None:
    # Where the job does not say what was taken from its backend, the cached one may be old (Live verdicts).
    injects(api, loses=("dispatch.phpboyscout.uk/backend",))
    api.collects = True
    api.before = always("get", BACKEND, unanswered("get", BACKEND))
    await operator.reconcile()
    assert operator.start()["status"]["phase"] not in {"Stopping", "Refused"}
    assert api.one(JOB)
    api.before = lambda _: None
    assert (await operator.settle())["status"]["phase"] == "Refused"
    assert "INJECTED" in unproven(api.one(BACKEND)["status"])["fields-kept"]


async def test_a_backend_that_was_proven_after_the_train_job_was_made_is_not_doubted(
    api: FakeApi, operator: FakeOperator
) -> None:
    # Such as one that was doubted for this Start, and was proven again while its stop goes on.
    injects(api)
    api.created = "2025-12-31T22:59:59Z"
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"
    assert unproven(api.one(BACKEND)["status"]) == {}


async def test_a_backend_that_is_gone_is_not_doubted(api: FakeApi, operator: FakeOperator) -> None:
    injects(api)

    def fault(request: Any) -> ApiError | None:
        if (request.verb, request.kind) == ("create", JOB):
            api.remove(BACKEND, NAMESPACE, "default")
        return None

    api.before = fault
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"
    assert "patch DispatchBackend status" not in api.writes()


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_what_is_only_transient_doubts_nothing(api: FakeApi, operator: FakeOperator, verb: str) -> None:
    api.before = nth(1, verb, JOB if verb == "get" else COPY, unanswered())
    await operator.reconcile()
    assert "patch DispatchBackend status" not in api.writes()


async def test_a_doubted_backend_is_probed_at_once() -> None:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj)
    api.documents = served()
    probing = FakeBackends(api)
    await probing.reconcile()
    injects(api)
    api.created = "2026-01-01T00:01:00Z"
    await FakeOperator(api, now=NOW + 60).reconcile()
    assert unproven(probing.status()).keys() == {"fields-kept"}
    await probing.reconcile()
    assert "INJECTED" in unproven(probing.status())["fields-kept"]
    assert "llama-s1" not in unproven(probing.status())["fields-kept"]
    api.admit = lambda _request, body: body
    probing.ahead = 2.1
    await probing.reconcile()
    assert unproven(probing.status()) == {}
