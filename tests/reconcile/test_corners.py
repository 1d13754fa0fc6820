"""Corners of the steps that only an unlucky moment reaches."""

from typing import Any

import pytest

from dispatch_operator.reconcile.actions import Action, Slot
from dispatch_operator.reconcile.reconciler import carry_out
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, nth, refusal, unanswered
from support.operator import FakeOperator, conditions, message

Object = dict[str, Any]
COPY, JOB, BACKEND = "TrainingRuntime", "TrainJob", "DispatchBackend"
TERMS = "dispatch.phpboyscout.uk/backend"
UNREADABLE = refusal("get", "x", 503, "ServiceUnavailable", "later")


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    backend = make_backend()
    api.put(make_runtime())
    api.put(backend, **backend.pop("status", {}))
    api.put(make_start(), observedGeneration=-1)
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


def sign(api: FakeApi, obj: Object, **metadata: Any) -> Object:
    """Return an object under our name that carries our start's UID."""
    start = api.one("DispatchStart")["metadata"]
    signed = {
        "dispatch.phpboyscout.uk/start": start["name"],
        "dispatch.phpboyscout.uk/start-uid": start["uid"],
    }
    labels = {"app.kubernetes.io/managed-by": "dispatch-operator"}
    made = {"name": NAME, "namespace": NAMESPACE, "annotations": signed, "labels": labels, **metadata}
    return {**obj, "metadata": made}


async def crashed_before(api: FakeApi, operator: FakeOperator, verb: str, kind: str) -> None:
    def crash(request: Any) -> None:
        if (request.verb, request.kind) == (verb, kind):
            raise SystemExit

    api.before = crash
    with pytest.raises(SystemExit):
        await operator.reconcile()
    api.before = lambda _request: None


@pytest.mark.parametrize("change", [{"runtimes": "all"}, {"timeouts": {"call": "soon"}}, {"gpuResource": 5}])
async def test_a_backend_that_bypassed_its_crd_can_not_be_used(
    api: FakeApi, operator: FakeOperator, change: Object
) -> None:
    api.edit(BACKEND, lambda held: held["spec"].update(change))
    start = await operator.settle()
    assert conditions(start)["Started"] == ("False", "ErrUnreachable")
    assert next(iter(change)) in message(start, "Started")


async def test_a_backend_that_can_not_be_read_is_no_verdict(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(BACKEND, lambda held: held["spec"].update(state="Closed"))
    api.before = nth(1, "get", BACKEND, UNREADABLE)
    assert (await operator.reconcile()).requeue
    assert "later" in message(operator.start(), "RequestValid")


async def test_a_problem_of_the_request_waits_for_a_live_backend(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(BACKEND, lambda held: held["spec"].update(runtimes=[{"name": "another"}]))
    api.before = nth(1, "get", BACKEND, UNREADABLE)
    assert (await operator.reconcile()).requeue
    assert conditions(operator.start())["RequestValid"] == ("False", "ErrUnreachable")


def without_terms(api: FakeApi) -> None:
    api.edit(JOB, lambda job: job["metadata"]["annotations"].pop(TERMS))


@pytest.mark.parametrize("gone", ["deleted", "spoiled", "unreadable"])
async def test_a_backend_that_goes_in_the_middle_is_not_needed_any_more(
    api: FakeApi, operator: FakeOperator, gone: str
) -> None:
    await crashed_before(api, operator, "get", JOB)
    if gone == "spoiled":
        api.edit(BACKEND, lambda backend: backend["spec"].update(runtimes="all"))
    else:
        del api.objects[BACKEND, NAMESPACE, "default"]
    if gone == "unreadable":
        api.before = always("get", BACKEND, UNREADABLE)
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_a_backend_that_is_edited_in_the_middle_is_no_difference(api: FakeApi, operator: FakeOperator) -> None:
    # What the TrainJob was written with is known from the TrainJob itself.
    await crashed_before(api, operator, "get", JOB)
    api.edit(BACKEND, lambda backend: backend["spec"].update(gpuResource="amd.com/gpu"))
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert '"generation":1' in api.one(JOB)["metadata"]["annotations"][TERMS]


async def test_a_gpu_resource_that_is_edited_before_a_failed_step_is_tried_again_is_no_difference(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(gpusPerNode=8))
    api.before = nth(1, "patch", COPY, unanswered("patch", COPY))
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Starting"
    api.edit(BACKEND, lambda backend: backend["spec"].update(gpuResource="amd.com/gpu"))
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert api.one(JOB)["spec"]["trainer"]["resourcesPerNode"] == {"limits": {"nvidia.com/gpu": 8}}
    assert all(gate["proven"] for gate in api.one(BACKEND)["status"]["gates"])


@pytest.mark.parametrize(
    "said",
    ["", "[]", "{}", "{", '{"name": 5, "gpuResource": "x.y/z"}', '{"name":"default","gpuResource":"amd.com/gpu"}'],
)
async def test_a_job_that_says_something_else_of_its_backend_is_refused_with_the_path(
    api: FakeApi, operator: FakeOperator, said: str
) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(gpusPerNode=1))
    await crashed_before(api, operator, "get", JOB)
    api.edit(JOB, lambda job: job["metadata"]["annotations"].update({TERMS: said}))
    start = await operator.settle()
    assert conditions(start)["ReadBack"] == ("False", "ErrRejected")
    assert ("resourcesPerNode" if "amd" in said else TERMS) in message(start, "ReadBack")


@pytest.mark.parametrize("gone", ["deleted", "spoiled", "unreadable"])
async def test_a_job_that_says_nothing_of_its_backend_is_not_judged_without_it(
    api: FakeApi, operator: FakeOperator, gone: str
) -> None:
    await crashed_before(api, operator, "get", JOB)
    without_terms(api)
    held = api.one(BACKEND)
    if gone == "spoiled":
        api.edit(BACKEND, lambda backend: backend["spec"].update(runtimes="all"))
    else:
        del api.objects[BACKEND, NAMESPACE, "default"]
    if gone == "unreadable":
        api.before = always("get", BACKEND, UNREADABLE)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Starting"
    assert conditions(operator.start())["ReadBack"] == ("False", "ErrUnreachable")
    assert len(api.all(JOB)) == 1
    api.before = lambda _request: None
    api.objects[BACKEND, NAMESPACE, "default"] = held
    assert TERMS in message(await operator.settle(), "ReadBack")


@pytest.mark.parametrize(
    ("what", "metadata", "want"),
    [
        ("another's", {"annotations": {}}, ("False", "ErrRejected")),
        (
            "owned by another",
            {"ownerReferences": [{"uid": "x", "kind": "TrainJob", "name": "y"}]},
            ("False", "ErrRejected"),
        ),
        ("being deleted", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, ("Unknown", "CopyLeaving")),
    ],
)
async def test_a_copy_that_changed_hands_before_it_had_an_owner(
    api: FakeApi, operator: FakeOperator, what: str, metadata: Object, want: tuple[str, str]
) -> None:
    await crashed_before(api, operator, "patch", COPY)
    api.edit(COPY, lambda copy: copy["metadata"].update(metadata))
    await operator.reconcile()
    assert conditions(operator.start())["OwnerSet"] == want, what


async def test_a_leftover_copy_that_is_being_deleted_is_waited_for(api: FakeApi, operator: FakeOperator) -> None:
    copy = sign(api, {"kind": COPY, "spec": {}}, deletionTimestamp="2026-01-01T00:00:00Z")
    api.put(copy)
    await operator.reconcile()
    assert conditions(operator.start())["RuntimeCopied"] == ("Unknown", "CopyLeaving")
    del api.objects[COPY, NAMESPACE, NAME]
    assert (await operator.settle())["status"]["phase"] == "Gated"


@pytest.mark.parametrize(("verb", "spec"), [("delete", {}), ("patch", None)])
@pytest.mark.parametrize(
    ("error", "phase"),
    [(refusal("x", COPY, 422, "Invalid", "no"), "Refused"), (refusal("x", COPY, 429, "TooMany", "later"), "Gated")],
    ids=str,
)
async def test_a_leftover_copy_that_can_not_be_cleared_away(
    api: FakeApi, operator: FakeOperator, verb: str, spec: Object | None, error: Any, phase: str
) -> None:
    left = {"kind": COPY, "spec": make_runtime()["spec"] if spec is None else spec}
    api.put(sign(api, left))
    api.before = nth(1, verb, COPY, error)
    await operator.reconcile()
    assert conditions(operator.start())["RuntimeCopied"][0] == "False"
    assert (await operator.settle())["status"]["phase"] == phase


@pytest.mark.parametrize("kind", [JOB, "DispatchStart"])
async def test_whose_a_leftover_is_waits_for_a_live_read(api: FakeApi, operator: FakeOperator, kind: str) -> None:
    owner = {"kind": JOB, "name": NAME, "uid": "x"}
    other = {"dispatch.phpboyscout.uk/start": "other", "dispatch.phpboyscout.uk/start-uid": "o"}
    metadata: Object = {"ownerReferences": [owner]} if kind == JOB else {"annotations": other}
    api.put(sign(api, {"kind": COPY, "spec": make_runtime()["spec"]}, **metadata))
    api.before = nth(1, "get", kind, unanswered("get", kind))
    assert (await operator.reconcile()).requeue
    assert len(api.all(COPY)) == 1


async def test_an_unanswered_create_whose_outcome_can_not_be_read_stays_in_flight(
    api: FakeApi, operator: FakeOperator
) -> None:
    reads = always("get", JOB, UNREADABLE)
    lost = always("create", JOB, unanswered())
    api.before = lambda request: reads(request) or lost(request)
    for _ in range(2):
        assert (await operator.reconcile()).requeue
        assert operator.start()["status"]["phase"] == "InFlight"
    api.before = lambda _request: None
    operator.now += 60
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_an_unanswered_create_may_meet_anothers_train_job(api: FakeApi, operator: FakeOperator) -> None:
    api.before = nth(1, "create", JOB, unanswered())
    await operator.reconcile()
    api.put({"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {}})
    operator.now += 60
    start = await operator.settle()
    assert conditions(start)["TrainJobCreated"] == ("False", "ErrRejected")


async def test_a_name_that_was_taken_and_is_free_again_is_tried_again(api: FakeApi, operator: FakeOperator) -> None:
    api.before = nth(1, "create", JOB, refusal("create", JOB, 409, "AlreadyExists", "exists"))
    assert (await operator.reconcile()).requeue
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def stopping(api: FakeApi, operator: FakeOperator) -> None:
    """Bring a start to Stopping, with its TrainJob and copy still there."""
    api.admit = lambda request, body: {**body, "spec": {}} if request.kind == JOB else body
    await crashed_before(api, operator, "delete", JOB)
    assert operator.start()["status"]["phase"] == "Stopping"


@pytest.mark.parametrize("kind", [JOB, COPY])
async def test_a_stop_that_can_not_see_what_is_left_is_tried_until_known(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    await stopping(api, operator)
    api.before = always("get", kind, UNREADABLE)
    assert (await operator.reconcile()).requeue
    assert conditions(operator.start())["Started"] == ("False", "ErrOutcomeUnknown")
    api.before = lambda _request: None
    await operator.reconcile()
    api.collect()
    assert (await operator.settle())["status"]["phase"] == "Refused"


async def test_a_train_job_that_takes_its_time_to_go_is_waited_for(api: FakeApi, operator: FakeOperator) -> None:
    await stopping(api, operator)
    api.edit(JOB, lambda job: job["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    result = await operator.reconcile()
    assert result.requeue_after
    assert operator.start()["status"]["phase"] == "Stopping"


async def test_an_unowned_copy_that_can_not_be_deleted_is_tried_until_known(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = lambda request: (
        refusal("x", request.kind, 422, "Invalid", "no") if str(request) == "create TrainJob" else None
    )
    api.after = always("delete", COPY, unanswered("delete", COPY))
    await operator.reconcile()
    assert conditions(operator.start())["Started"] == ("False", "ErrOutcomeUnknown")
    api.after = lambda _request: None
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))


async def test_a_stop_whose_conditions_somebody_took_away_still_ends(api: FakeApi, operator: FakeOperator) -> None:
    await stopping(api, operator)
    api.edit("DispatchStart", lambda start: start["status"].update(conditions=[]))
    await operator.reconcile()
    api.collect()
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))


@pytest.mark.parametrize("kind", [JOB, COPY])
async def test_what_turns_up_late_and_can_not_be_read_is_looked_at_again(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0))
    await operator.settle()
    api.put(sign(api, {"kind": kind, "spec": {}}))
    api.before = nth(1, "get", kind, UNREADABLE)
    assert (await operator.reconcile()).requeue
    await operator.settle()
    assert api.all(kind) == []


@pytest.mark.parametrize("kind", [JOB, COPY])
async def test_what_turns_up_late_and_can_not_be_deleted_is_tried_again(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(nodes=0))
    await operator.settle()
    api.put(sign(api, {"kind": kind, "spec": {}}))
    api.before = nth(1, "delete", kind, unanswered("delete", kind))
    assert (await operator.reconcile()).requeue
    await operator.settle()
    assert api.all(kind) == []


async def test_an_action_that_nobody_knows_is_an_error_of_ours() -> None:
    client: Any = FakeApi()
    with pytest.raises(TypeError, match="unknown action"):
        await carry_out(client, NAMESPACE, Action(Slot.COPY), timeout=1.0)


async def test_a_second_start_of_a_submission_is_refused_while_the_first_one_lives(
    api: FakeApi, operator: FakeOperator
) -> None:
    await operator.settle()
    job, copy = api.one(JOB), api.one(COPY)
    api.put(make_start("second"), observedGeneration=-1)
    start = await operator.settle("second")
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))
    assert (api.one(JOB), api.one(COPY)) == (job, copy)
