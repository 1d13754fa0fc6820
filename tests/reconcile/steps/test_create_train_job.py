"""Step 6: the TrainJob is created once, whatever becomes of the request, and no other is touched."""

from typing import Any

import pytest

from dispatch_operator.kube.errors import ApiError
from support.builders import NAME, NAMESPACE, make_start
from support.earlier_starts import NOTHING_HAPPENED, of_another
from support.fake_api import FakeApi, always, nth, refusal, unanswered
from support.operator import FakeOperator, conditions, message

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"


@pytest.mark.parametrize("message", ["must be created before the TrainJob is created", f"runtime '{NAME}' not found"])
async def test_a_webhook_that_has_not_seen_the_copy_never_fails_a_start(
    api: FakeApi, operator: FakeOperator, message: str
) -> None:
    api.before = nth(1, "create", JOB, refusal("create", JOB, 403, "Forbidden", message))
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_the_create_race_is_given_up_after_the_call_bound(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchBackend", lambda held: held["spec"].update(timeouts={"call": "10ms"}))
    denial = refusal("create", JOB, 403, "Forbidden", f"runtime '{NAME}' not found")

    def fault(request: Any) -> ApiError | None:
        operator.now += 1.0
        return denial if (request.verb, request.kind) == ("create", JOB) else None

    api.before = fault
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["TrainJobCreated"]) == ("Refused", ("False", "ErrRejected"))
    assert api.all(COPY) == []


@pytest.mark.parametrize(
    ("status", "reason", "text"),
    [
        (400, "BadRequest", "no"),
        (403, "Forbidden", "exceeded quota: pods"),
        (403, "Forbidden", 'admission webhook "x" denied the request: no'),
        (403, "Forbidden", "unable to create new content in namespace team-a because it is being terminated"),
        (404, "NotFound", 'namespaces "team-a" not found'),
        (405, "MethodNotAllowed", "no"),
        (413, "RequestEntityTooLarge", "no"),
        (422, "Invalid", "no"),
    ],
)
@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_a_definite_refusal_of_a_create_leaves_nothing_behind(
    api: FakeApi, operator: FakeOperator, kind: str, status: int, reason: str, text: str
) -> None:
    api.before = always("create", kind, refusal("create", kind, status, reason, text))
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))
    assert text in message(start, "Started")
    assert api.all(COPY) == api.all(JOB) == []


@pytest.mark.parametrize("error", NOTHING_HAPPENED, ids=str)
@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_a_create_that_was_not_carried_out_is_tried_again(
    api: FakeApi, operator: FakeOperator, kind: str, error: ApiError
) -> None:
    api.before = nth(1, "create", kind, error)
    result = await operator.reconcile()
    assert result.requeue
    assert conditions(operator.start())["Started"] == ("False", "ErrUnreachable")
    assert conditions(operator.start())["Reconciling"] == ("True", "ErrUnreachable")
    assert (await operator.settle())["status"]["phase"] == "Gated"


@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_with_retry_never_what_was_not_carried_out_is_final_and_leaves_nothing(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    api.edit("DispatchStart", lambda held: held["spec"].update(retry="Never"))
    api.before = nth(1, "create", kind, NOTHING_HAPPENED[3])
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrUnreachable"))
    assert api.all(COPY) == api.all(JOB) == []


@pytest.mark.parametrize("kind", [COPY, JOB])
@pytest.mark.parametrize("retry", ["OnChange", "Never"])
async def test_a_create_that_was_carried_out_unanswered_goes_on_with_what_it_made(
    api: FakeApi, operator: FakeOperator, kind: str, retry: str
) -> None:
    api.edit("DispatchStart", lambda held: held["spec"].update(retry=retry))
    api.after = nth(1, "create", kind, unanswered("create", kind))
    start = await operator.settle()
    assert start["status"]["phase"] == "Gated"
    assert api.writes().count(f"create {kind}") == 1


async def test_an_unanswered_create_is_in_flight_until_the_call_bound_and_then_made_again(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = nth(1, "create", JOB, unanswered())
    result = await operator.reconcile()
    assert operator.start()["status"]["phase"] == "InFlight"
    assert conditions(operator.start())["Started"] == ("False", "ErrOutcomeUnknown")
    assert result.requeue_after == pytest.approx(31)
    operator.now += 10
    result = await operator.reconcile()
    assert api.all(JOB) == []
    assert result.requeue_after == pytest.approx(21)
    operator.now += 22
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_an_unanswered_create_that_lands_late_is_adopted(api: FakeApi, operator: FakeOperator) -> None:
    bodies: list[Object] = []
    create = api.create

    async def lost(kind: str, namespace: str, body: Object, *, timeout: float) -> Object:
        if kind != JOB:
            return await create(kind, namespace, body, timeout=timeout)
        bodies.append(body)
        raise unanswered()

    api.create = lost  # type: ignore[method-assign]
    await operator.reconcile()
    api.put({**bodies[0], "metadata": {**bodies[0]["metadata"], "namespace": NAMESPACE}})
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert len(bodies) == 1


async def test_with_retry_never_an_unanswered_create_is_unreachable_once_it_is_resolved(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.edit("DispatchStart", lambda held: held["spec"].update(retry="Never"))
    api.before = nth(1, "create", JOB, unanswered())
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "InFlight"
    operator.now += 32
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrUnreachable"))
    assert api.all(COPY) == api.all(JOB) == []


async def test_an_unanswered_create_is_not_judged_by_an_older_failure(api: FakeApi, operator: FakeOperator) -> None:
    api.before = nth(1, "create", JOB, refusal("create", JOB, 429, "TooManyRequests", "later"))
    await operator.reconcile()
    since = operator.start()["status"]["conditions"]
    operator.now += 120
    api.before = nth(1, "create", JOB, unanswered())
    result = await operator.reconcile()
    assert (operator.start()["status"]["phase"], result.requeue_after) == ("InFlight", pytest.approx(31))
    assert operator.start()["status"]["inFlightSince"] == "2026-01-01T00:02:00Z"
    # The step's condition is as old as the first failure.
    assert [one["lastTransitionTime"] for one in since if one["type"] == "TrainJobCreated"] == ["2026-01-01T00:00:00Z"]
    operator.now += 10
    assert (await operator.reconcile()).requeue_after == pytest.approx(21)
    assert api.all(JOB) == []
    operator.now += 22
    start = await operator.settle()
    assert start["status"]["phase"] == "Gated"
    assert "inFlightSince" not in start["status"]


@pytest.mark.parametrize("since", ["2026-01-03T00:00:00Z", "never", None])
async def test_a_time_in_flight_that_says_nothing_begins_anew(
    api: FakeApi, operator: FakeOperator, since: str | None
) -> None:
    api.before = nth(1, "create", JOB, unanswered())
    await operator.reconcile()
    api.edit("DispatchStart", lambda held: held["status"].update(inFlightSince=since))
    operator.now += 5
    assert (await operator.reconcile()).requeue_after == pytest.approx(31)
    assert operator.start()["status"]["inFlightSince"] == "2026-01-01T00:00:05Z"
    operator.now += 32
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_a_second_unanswered_create_has_its_own_call_bound(api: FakeApi, operator: FakeOperator) -> None:
    api.before = always("create", JOB, unanswered())
    await operator.reconcile()
    operator.now += 32
    result = await operator.reconcile()
    assert operator.start()["status"]["phase"] == "InFlight"
    assert result.requeue_after == pytest.approx(31)


@pytest.mark.parametrize(("is_seen", "step"), [(True, "RuntimeCopied"), (False, "TrainJobCreated")])
async def test_a_train_job_of_a_human_is_never_touched(
    api: FakeApi, operator: FakeOperator, *, is_seen: bool, step: str
) -> None:
    operator.watch()
    human = api.put({"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {}})
    await operator.reconcile(stale=not is_seen)
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)[step]) == ("Refused", ("False", "ErrRejected"))
    # What can't help is not advised: the refusal is final.
    assert "delete it" not in message(start, step)
    assert "submit under another number, for this refusal is final" in message(start, step)
    assert api.one(JOB) == human
    assert api.all(COPY) == []


async def test_a_train_job_of_a_living_start_is_never_touched(api: FakeApi, operator: FakeOperator) -> None:
    other = make_start("other")
    other["metadata"]["uid"] = "other-uid"
    foreign = api.put({"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE, **of_another()}, "spec": {}})
    api.put(other, phase="Gated", observedGeneration=1, conditions=[])
    await operator.reconcile()
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Refused"
    assert api.one(JOB) == foreign


async def test_a_train_job_of_ours_that_is_being_deleted_before_the_verdict_is_waited_for(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = always("patch", COPY, unanswered("patch", COPY))
    await operator.reconcile()
    api.before = lambda _request: None
    api.edit(JOB, lambda job: job["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Pending"
    assert conditions(operator.start())["Started"] == ("Unknown", "TrainJobLeaving")


@pytest.mark.parametrize(
    ("metadata", "want"),
    [
        ({}, f"it has no owner, so that nothing deletes it: kubectl delete trainjob {NAME} --namespace {NAMESPACE}"),
        ({"ownerReferences": [{"kind": "DispatchStart", "name": "other", "uid": "other-uid"}]}, ""),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, ""),
    ],
)
async def test_a_train_job_that_was_orphaned_is_waited_for_with_the_command_that_deletes_it(
    api: FakeApi, operator: FakeOperator, metadata: Object, want: str
) -> None:
    held = {"name": NAME, "namespace": NAMESPACE, **of_another(), **metadata}
    api.put({"kind": JOB, "metadata": held, "spec": {}})
    start = await operator.settle()
    assert conditions(start)["Started"] == ("Unknown", "TrainJobLeaving")
    assert want in message(start, "Started")
    assert ("kubectl" in message(start, "Started")) is bool(want)


@pytest.mark.parametrize("phase", [None, "Refused", "Cancelled", "Lost"])
async def test_a_train_job_of_an_ended_start_is_waited_for(
    api: FakeApi, operator: FakeOperator, phase: str | None
) -> None:
    if phase:
        other = make_start("other")
        other["metadata"]["uid"] = "other-uid"
        api.put(other, phase=phase, observedGeneration=1, conditions=[])
    api.put({"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE, **of_another()}, "spec": {}})
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Pending"
    assert conditions(operator.start())["Started"] == ("Unknown", "TrainJobLeaving")
    del api.objects[JOB, NAMESPACE, NAME]
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"
