"""Steps 1 to 8, state in, state out, over a fake API."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.kube.errors import ApiError, Effect
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, nth, refusal, unanswered
from support.operator import FakeOperator, conditions, message
from support.records import watched

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"
STEPS = ("RequestValid", "RuntimeCopied", "TrainJobCreated", "OwnerSet", "ReadBack")


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


def copy_of(api: FakeApi, **metadata: Any) -> Object:
    """Return a leftover copy as an earlier Start of ours would have made it."""
    start = api.one("DispatchStart")["metadata"]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": COPY,
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "annotations": {
                "dispatch.phpboyscout.uk/start": start["name"],
                "dispatch.phpboyscout.uk/start-uid": start["uid"],
            },
            **metadata,
        },
        "spec": make_runtime()["spec"],
    }


def of_another(name: str = "other", uid: str = "other-uid") -> dict[str, Any]:
    return {
        "annotations": {"dispatch.phpboyscout.uk/start": name, "dispatch.phpboyscout.uk/start-uid": uid},
        "labels": {"app.kubernetes.io/managed-by": "dispatch-operator"},
    }


async def test_a_start_makes_six_requests_and_a_second_look_makes_none(api: FakeApi, operator: FakeOperator) -> None:
    result = await operator.reconcile()
    assert [str(request) for request in api.requests] == [
        "get ClusterTrainingRuntime",
        "create TrainingRuntime",
        "create TrainJob",
        "patch TrainingRuntime",
        "get TrainJob",
        "patch DispatchStart status",
    ]
    assert not result.requeue
    api.requests.clear()
    await operator.reconcile()
    assert api.requests == []


async def test_a_start_ends_gated_with_one_owned_copy(api: FakeApi, operator: FakeOperator) -> None:
    start = await operator.settle()
    job, copy = api.one(JOB), api.one(COPY)
    assert start["status"]["phase"] == "Gated"
    assert start["status"]["reference"] == {"name": f"{NAMESPACE}/{NAME}", "uid": job["metadata"]["uid"]}
    assert start["status"]["copy"] == {"name": NAME, "uid": copy["metadata"]["uid"]}
    source = api.one("ClusterTrainingRuntime")["metadata"]
    assert start["status"]["source"] == {
        "kind": "ClusterTrainingRuntime",
        "name": source["name"],
        "uid": source["uid"],
        "generation": 1,
    }
    assert copy["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": JOB,
            "name": NAME,
            "uid": job["metadata"]["uid"],
            "controller": False,
        },
    ]
    assert job["spec"]["suspend"] is True
    held = conditions(start)
    assert [held[step][0] for step in STEPS] == ["True"] * 5
    assert (held["Started"][0], held["Ready"][0], held["Succeeded"][0]) == ("True", "True", "Unknown")
    assert "Reconciling" not in held
    assert "Stalled" not in held


async def test_a_refusal_names_every_problem_and_touches_nothing(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0, command=[]))
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    assert conditions(start)["Started"] == ("False", "ErrInvalid")
    assert conditions(start)["Stalled"] == ("True", "ErrInvalid")
    assert "nodes" in message(start, "Started")
    assert "command" in message(start, "Started")
    assert conditions(start)["Finished"] == ("True", "Refused")
    outcome = start["status"]["outcome"]
    assert (outcome["state"], outcome["cause"]) == ("Refused", "ErrInvalid")
    assert "nodes" in outcome["message"]
    assert "epoch" not in start["status"]
    assert api.writes() == ["patch DispatchStart status"]


async def test_a_refusal_that_was_recorded_without_finished_gets_it(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0))
    want = await operator.settle()

    def older(start: Any) -> None:
        start["status"]["conditions"] = [one for one in start["status"]["conditions"] if one["type"] != "Finished"]
        del start["status"]["outcome"]

    operator.now -= 1
    api.edit("DispatchStart", older)
    operator.checks_invariants = False
    start = await operator.settle()
    assert conditions(start)["Finished"] == ("True", "Refused")
    assert start["status"]["outcome"] == want["status"]["outcome"]


@pytest.mark.parametrize(
    ("backend", "want"),
    [
        ({"state": "Closed"}, "ErrUnreachable"),
        ({"state": "ReadOnly"}, "ErrReadOnly"),
        ({"runtimes": [{"name": "another"}]}, "ErrUnsupported"),
    ],
)
@pytest.mark.parametrize(("retry", "phase"), [("OnChange", "Pending"), ("Never", "Refused")])
async def test_what_the_backend_does_not_take_is_refused_for_now_or_for_good(
    api: FakeApi, operator: FakeOperator, backend: Object, want: str, retry: str, phase: str
) -> None:
    api.edit("DispatchBackend", lambda held: held["spec"].update(backend))
    api.edit("DispatchStart", lambda held: held["spec"].update(retry=retry))
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Ready"]) == (phase, ("False", want))
    assert api.all(COPY) == []
    api.edit("DispatchBackend", lambda held: held.update(spec=make_backend()["spec"]))
    start = await operator.settle()
    assert start["status"]["phase"] == ("Gated" if retry == "OnChange" else "Refused")


async def test_a_missing_backend_is_waited_for(api: FakeApi, operator: FakeOperator) -> None:
    del api.objects["DispatchBackend", NAMESPACE, "default"]
    start = await operator.settle()
    assert conditions(start)["Started"] == ("False", "ErrUnreachable")
    assert "default" in message(start, "Started")
    api.put(make_backend())
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_a_backend_that_the_cache_has_not_seen_is_read_before_a_verdict(
    api: FakeApi, operator: FakeOperator
) -> None:
    operator.watch()
    operator.store.drop(watched(api.one("DispatchBackend")))
    await operator.reconcile(stale=True)
    assert operator.start()["status"]["phase"] == "Gated"


@pytest.mark.parametrize(
    ("what", "change", "want_phase"),
    [
        ("a copy of ours with the same spec is reused", {}, "Gated"),
        ("a copy of ours with another spec is made anew", {"spec": {"mlPolicy": {}}}, "Gated"),
        ("a copy of a start that is gone is reused", {"metadata": of_another()}, "Gated"),
        (
            "a copy of a start that is gone, with another spec, is made anew",
            {"metadata": of_another(), "spec": {}},
            "Gated",
        ),
        ("a copy that nobody signed is refused", {"metadata": {"annotations": {}}}, "Refused"),
        (
            "a copy that something else owns is refused",
            {"metadata": {"ownerReferences": [{"kind": "ConfigMap", "name": "x", "uid": "x"}]}},
            "Refused",
        ),
    ],
)
async def test_leftover_copies(
    api: FakeApi, operator: FakeOperator, what: str, change: Object, want_phase: str
) -> None:
    left = copy_of(api)
    left["metadata"].update(change.get("metadata", {}))
    left["spec"] = change.get("spec", left["spec"])
    left = api.put(left)
    start = await operator.settle()
    assert start["status"]["phase"] == want_phase, what
    copy = api.one(COPY)
    if want_phase == "Gated":
        assert copy["spec"] == make_runtime()["spec"]
        assert copy["metadata"]["annotations"]["dispatch.phpboyscout.uk/start-uid"] == start["metadata"]["uid"]
        assert copy["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "torch"
        assert copy["metadata"]["ownerReferences"][0]["uid"] == api.one(JOB)["metadata"]["uid"]
        assert (copy["metadata"]["uid"] == left["metadata"]["uid"]) == ("spec" not in change)
    else:
        assert copy == left
        assert api.all(JOB) == []
        assert conditions(start)["RuntimeCopied"] == ("False", "ErrRejected")


@pytest.mark.parametrize(
    ("phase", "want_phase"), [("Refused", "Gated"), ("Pending", "Refused"), ("Lost", "Refused"), ("Gated", "Refused")]
)
async def test_a_copy_of_a_living_start_is_left_alone(
    api: FakeApi, operator: FakeOperator, phase: str, want_phase: str
) -> None:
    other = make_start("other")
    other["metadata"]["uid"] = "other-uid"
    api.put(copy_of(api) | {"metadata": {"name": NAME, "namespace": NAMESPACE, **of_another()}})
    api.put(other, phase=phase, observedGeneration=1, conditions=[])
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == want_phase


async def test_a_copy_that_was_stored_changed_is_deleted_and_refused(api: FakeApi, operator: FakeOperator) -> None:
    def webhook(request: Any, body: Object) -> Object:
        if request.kind == COPY:
            body["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 9
        return body

    api.admit = webhook
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    assert "spec.template.spec.failurePolicy.maxRestarts" in message(start, "RuntimeCopied")
    assert api.all(COPY) == []
    assert api.writes() == [
        "create TrainingRuntime",
        "patch DispatchStart status",
        "delete TrainingRuntime",
        "patch DispatchStart status",
    ]


async def test_a_copy_that_is_stored_changed_and_never_answered_for_is_not_made_over_and_over(
    api: FakeApi, operator: FakeOperator
) -> None:
    def webhook(request: Any, body: Object) -> Object:
        if request.kind == COPY:
            body["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 9
        return body

    api.admit = webhook
    api.after = always("create", COPY, unanswered("create", COPY))
    assert (await operator.reconcile()).requeue
    # The leftover is deleted before each next try; then the reconcile ends, and backs off.
    assert api.writes().count("create TrainingRuntime") == 4
    assert api.all(JOB) == []


async def test_a_train_job_that_was_stored_changed_is_stopped_after_the_verdict_is_recorded(
    api: FakeApi, operator: FakeOperator
) -> None:
    def webhook(request: Any, body: Object) -> Object:
        if request.kind == JOB:
            body["spec"]["trainer"]["env"].append({"name": "INJECTED", "value": "1"})
        return body

    api.admit = webhook
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"
    assert operator.start()["status"]["reference"]["name"] == f"{NAMESPACE}/{NAME}"
    api.collect()
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["ReadBack"]) == ("Refused", ("False", "ErrRejected"))
    assert "spec.trainer.env" in message(start, "ReadBack")
    assert start["status"]["reference"]["name"] == f"{NAMESPACE}/{NAME}"
    assert api.all(JOB) == api.all(COPY) == []
    assert api.writes()[3:] == [
        "patch DispatchStart status",
        "patch DispatchBackend status",
        "delete TrainJob",
        "patch DispatchStart status",
    ]


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


NOTHING_HAPPENED = (
    refusal("create", "x", 401, "Unauthorized", "Unauthorized"),
    refusal("create", "x", 403, "Forbidden", 'User "u" cannot create resource "trainjobs" in API group "g"'),
    refusal("create", "x", 409, "Conflict", "try again"),
    refusal("create", "x", 429, "TooManyRequests", "slow down"),
    refusal("create", "x", 500, "InternalError", 'failed calling webhook "x": connection refused'),
    ApiError("create", "x", Effect.NOTHING_HAPPENED, "connection refused"),
)


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


@pytest.mark.parametrize("phase", [None, "Refused", "Lost"])
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


def crash_before(number: int) -> Callable[[Any], None]:
    counter = iter(range(1, 1_000))

    def fault(_request: Any) -> None:
        if next(counter) == number:
            raise SystemExit

    return fault


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_crash_between_any_two_requests_is_resumed(
    api: FakeApi, operator: FakeOperator, number: int, where: str
) -> None:
    setattr(api, where, crash_before(number))
    with pytest.raises(SystemExit):
        await operator.reconcile()
    setattr(api, where, lambda _request: None)
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert len(api.all(JOB)) == len(api.all(COPY)) == 1
    assert api.one(COPY)["metadata"]["ownerReferences"][0]["uid"] == api.one(JOB)["metadata"]["uid"]


async def test_a_source_that_changed_between_a_crash_and_the_resume_is_copied_anew(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = crash_before(3)
    with pytest.raises(SystemExit):
        await operator.reconcile()
    api.before = lambda _request: None
    api.edit("ClusterTrainingRuntime", lambda held: held["spec"]["mlPolicy"].update(numNodes=2))
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert api.one(COPY)["spec"]["mlPolicy"]["numNodes"] == 2


async def test_a_source_that_changed_after_the_train_job_was_created_changes_nothing(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = crash_before(4)
    with pytest.raises(SystemExit):
        await operator.reconcile()
    api.before = lambda _request: None
    api.edit("ClusterTrainingRuntime", lambda held: held["spec"]["mlPolicy"].update(numNodes=2))
    api.edit("DispatchBackend", lambda held: held["spec"].update(state="Closed"))
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert api.one(COPY)["spec"]["mlPolicy"]["numNodes"] == 1


async def test_a_copy_that_vanished_before_it_had_an_owner_stops_the_train_job(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = crash_before(4)
    with pytest.raises(SystemExit):
        await operator.reconcile()
    api.before = lambda _request: None
    del api.objects[COPY, NAMESPACE, NAME]
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["OwnerSet"]) == ("Refused", ("False", "ErrRejected"))
    assert api.all(JOB) == []


@pytest.mark.parametrize("status", [409, 404])
async def test_a_failed_precondition_of_the_owner_patch_is_no_failure(
    api: FakeApi, operator: FakeOperator, status: int
) -> None:
    api.before = nth(1, "patch", COPY, refusal("patch", COPY, status, "Conflict" if status == 409 else "NotFound", "x"))
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"


@pytest.mark.parametrize("verb", ["patch", "get"])
@pytest.mark.parametrize("error", [*NOTHING_HAPPENED[:2], unanswered()], ids=str)
@pytest.mark.parametrize("retry", ["OnChange", "Never"])
async def test_what_is_transient_in_steps_7_and_8_stops_nothing(
    api: FakeApi, operator: FakeOperator, verb: str, error: ApiError, retry: str
) -> None:
    api.edit("DispatchStart", lambda held: held["spec"].update(retry=retry))
    api.before = nth(1, verb, COPY if verb == "patch" else JOB, error)
    result = await operator.reconcile()
    assert result.requeue
    assert operator.start()["status"]["phase"] == "Starting"
    assert len(api.all(JOB)) == len(api.all(COPY)) == 1
    assert (await operator.settle())["status"]["phase"] == "Gated"


@pytest.mark.parametrize(
    ("verb", "kind"), [("create", COPY), ("create", JOB), ("patch", COPY)], ids=["copy", "TrainJob", "owner"]
)
async def test_what_was_carried_out_and_yet_refused_goes_on(
    api: FakeApi, operator: FakeOperator, verb: str, kind: str
) -> None:
    api.after = nth(1, verb, kind, refusal(verb, kind, 403, "Forbidden", "exceeded quota"))
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"
    assert len(api.all(JOB)) == len(api.all(COPY)) == 1


async def test_an_owner_that_is_refused_stops_the_train_job(api: FakeApi, operator: FakeOperator) -> None:
    api.before = always("patch", COPY, refusal("patch", COPY, 422, "Invalid", "no owners here"))
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["OwnerSet"]) == ("Refused", ("False", "ErrRejected"))
    assert api.all(JOB) == api.all(COPY) == []


async def test_a_stop_that_goes_unanswered_is_tried_until_known(api: FakeApi, operator: FakeOperator) -> None:
    api.admit = lambda request, body: (
        body if request.kind != JOB else {**body, "spec": {**body["spec"], "suspend": False}}
    )
    api.before = nth(1, "delete", JOB, unanswered("delete", JOB))
    result = await operator.reconcile()
    assert result.requeue
    assert operator.start()["status"]["phase"] == "Stopping"
    assert conditions(operator.start())["Started"] == ("False", "ErrOutcomeUnknown")
    assert conditions(operator.start())["ReadBack"] == ("False", "ErrRejected")
    await operator.reconcile()
    api.collect()
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))
    assert api.all(JOB) == []


async def test_what_turns_up_after_a_refusal_is_deleted(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0))
    await operator.settle()
    start = api.one("DispatchStart")["metadata"]
    api.put(copy_of(api))
    late = copy_of(api) | {"kind": JOB, "spec": {"suspend": True}}
    late["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "dispatch-operator"}
    api.put(late)
    assert late["metadata"]["annotations"]["dispatch.phpboyscout.uk/start-uid"] == start["uid"]
    await operator.settle()
    assert api.all(JOB) == api.all(COPY) == []
    assert operator.start()["status"]["phase"] == "Refused"


async def test_a_start_that_is_being_deleted_is_never_started(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda held: held["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await operator.reconcile()
    assert api.requests == []


async def test_a_status_that_somebody_wrote_meanwhile_begins_the_look_again(
    api: FakeApi, operator: FakeOperator
) -> None:
    operator.watch()
    api.edit("DispatchStart", lambda held: held["metadata"].update(labels={"a": "b"}))
    await operator.reconcile(stale=True)
    assert operator.start()["status"]["phase"] == "Gated"
    assert len(api.all(JOB)) == 1


async def test_a_look_with_a_stale_cache_never_restarts_what_has_started(api: FakeApi, operator: FakeOperator) -> None:
    operator.watch()
    stale = operator.store
    await operator.reconcile()
    job = api.one(JOB)
    operator.store = stale
    await operator.reconcile(stale=True)
    assert api.one(JOB) == job
    assert operator.start()["status"]["phase"] == "Gated"


async def test_a_closed_gate_may_change_after_a_refusal_without_a_start(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0))
    await operator.settle()
    api.edit("DispatchStart", lambda start: start["spec"].update(gate="Open"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    assert start["status"]["observedGeneration"] == start["metadata"]["generation"]


async def test_a_runtime_that_can_not_be_read_is_tried_again(api: FakeApi, operator: FakeOperator) -> None:
    api.before = nth(1, "get", "ClusterTrainingRuntime", refusal("get", "x", 503, "ServiceUnavailable", "later"))
    result = await operator.reconcile()
    assert result.requeue
    assert conditions(operator.start())["RequestValid"] == ("False", "ErrUnreachable")
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_a_plain_job_that_kueue_puts_into_a_queue_is_stopped(api: FakeApi, operator: FakeOperator) -> None:
    def webhook(request: Any, body: Object) -> Object:
        if request.kind == JOB:
            body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "default"
        return body

    api.admit = webhook
    await operator.reconcile()
    assert "Kueue would open the gate of this job by itself" in message(operator.start(), "ReadBack")
    api.collect()
    assert (await operator.settle())["status"]["phase"] == "Refused"
    assert api.all(JOB) == []


async def test_a_backend_without_a_name_is_refused_and_never_asked_for(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(backend=""))
    start = await operator.settle()
    assert conditions(start)["RequestValid"] == ("False", "ErrInvalid")
    assert "backend" in message(start, "RequestValid")
    assert [request for request in api.requests if request.kind == "DispatchBackend"] == []


async def test_a_read_back_with_thousands_of_differences_tells_whole_ones_and_how_many_are_left(
    api: FakeApi, operator: FakeOperator
) -> None:
    def webhook(request: Any, body: Object) -> Object:
        if request.kind == JOB:
            body["spec"]["trainer"]["env"] += [{"name": f"ADDED_{number:04}", "value": "x"} for number in range(2000)]
        return body

    api.admit = webhook
    told = message(await operator.settle(), "ReadBack")
    assert len(told) <= 32_768
    *differences, rest = told.partition(": ")[2].split("; ")
    whole = re.compile(
        r'spec\.trainer\.env\[name=ADDED_\d{4}\]: wrote nothing, read {"name": "ADDED_\d{4}", "value": "x"}'
    )
    assert all(whole.fullmatch(one) for one in differences)
    assert rest == f"and {2000 - len(differences)} more"
