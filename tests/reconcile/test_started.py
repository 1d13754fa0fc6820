"""After Started: the gate, the mirror, and what is left alone, over a fake API."""

from typing import Any

import pytest

from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, Request, always, nth, refusal, unanswered
from support.invariants import broken_invariants
from support.operator import FakeOperator, conditions, message
from support.records import watched

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


@pytest.fixture
async def operator(api: FakeApi) -> FakeOperator:
    """An operator that has brought one start to Gated."""
    operator = FakeOperator(api)
    await operator.settle()
    api.requests.clear()
    return operator


def set_gate(api: FakeApi, gate: str) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(gate=gate))


def set_job(api: FakeApi, *, jobs: list[Object] | None = None, **conditions_: str | tuple[str, str]) -> None:
    """Write a TrainJob's status as Trainer would: conditions by type, as a reason or a reason and a message."""

    def change(job: Object) -> None:
        job["status"] = {
            "conditions": [
                {
                    "type": kind,
                    "status": "False" if kind == "Suspended" and said == "Resumed" else "True",
                    "reason": said if isinstance(said, str) else said[0],
                    "message": "" if isinstance(said, str) else said[1],
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
                for kind, said in conditions_.items()
            ],
            "jobsStatus": jobs or [],
        }

    api.edit(JOB, change)


def put_pod(api: FakeApi, status: Object, name: str = "pod-0") -> None:
    labels = {
        "dispatch.phpboyscout.uk/job-id": make_start()["spec"]["request"]["job"],
        "dispatch.phpboyscout.uk/submission": "1",
    }
    api.put({"kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}}, **status)


def ended(code: int, reason: str = "Error", message: str = "", at: str = "2026-01-01T00:00:01Z") -> Object:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": at}}
    return {"phase": "Failed", "containerStatuses": [{"name": "node", "state": state}]}


async def test_opening_writes_suspend_and_status_once(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Open")
    start = await operator.settle()
    assert api.one(JOB)["spec"]["suspend"] is False
    assert start["status"]["phase"] == "Queued"
    assert "Reconciling" not in conditions(start)
    assert api.writes() == ["patch TrainJob", "patch DispatchStart status"]


async def test_a_start_created_open_opens_only_after_started_is_recorded(api: FakeApi) -> None:
    set_gate(api, "Open")
    operator = FakeOperator(api)
    start = await operator.settle()
    assert start["status"]["phase"] == "Queued"
    assert api.writes()[3:] == ["patch DispatchStart status", "patch TrainJob", "patch DispatchStart status"]


@pytest.mark.parametrize(
    ("jobs", "want"),
    [
        ([], "Queued"),
        ([{"name": "node", "active": 1, "ready": 0}], "Queued"),
        ([{"name": "node", "active": 1, "ready": 1}], "Running"),
    ],
)
async def test_the_job_counts_tell_queued_from_running(
    api: FakeApi, operator: FakeOperator, jobs: list[Object], want: str
) -> None:
    set_gate(api, "Open")
    await operator.settle()
    set_job(api, jobs=jobs, Suspended="Resumed")
    assert (await operator.settle())["status"]["phase"] == want


async def test_held_closes_and_open_releases(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Open")
    await operator.settle()
    set_job(api, jobs=[{"name": "node", "active": 1, "ready": 1}], Suspended="Resumed")
    set_gate(api, "Held")
    start = await operator.settle()
    assert (api.one(JOB)["spec"]["suspend"], start["status"]["phase"]) == (True, "Held")
    set_gate(api, "Open")
    start = await operator.settle()
    assert api.one(JOB)["spec"]["suspend"] is False
    assert start["status"]["phase"] in {"Queued", "Running"}


async def test_held_is_told_once_the_cluster_holds_the_job(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Open")
    await operator.settle()
    set_job(api, jobs=[{"name": "node", "active": 1, "ready": 1}], Suspended="Resumed")
    await operator.settle()
    set_gate(api, "Held")
    api.before = always("patch", JOB, refusal("patch", JOB, 429, "TooManyRequests", "slow"))
    assert (await operator.reconcile()).requeue
    assert operator.start()["status"]["phase"] == "Holding"
    assert conditions(operator.start())["Reconciling"] == ("True", "Closing")
    assert "slow" in message(operator.start(), "Reconciling")
    api.before = lambda _request: None
    assert (await operator.settle())["status"]["phase"] == "Held"


async def test_a_hold_before_queued_was_recorded_is_told_as_held(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Open")

    def changes_their_mind(request: Request) -> None:
        if str(request) == "patch TrainJob":
            api.after = lambda _request: None
            set_gate(api, "Held")

    api.after = changes_their_mind
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(JOB)["spec"]["suspend"]) == ("Held", True)


async def test_held_before_it_was_ever_open_is_as_closed(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Held")
    start = await operator.settle()
    assert start["status"]["phase"] == "Gated"
    assert api.writes() == ["patch DispatchStart status"]


async def test_a_gate_that_a_human_opened_is_closed_again(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(JOB, lambda job: job["spec"].update(suspend=False))
    await operator.settle()
    assert api.one(JOB)["spec"]["suspend"] is True


@pytest.mark.parametrize(
    "error",
    [refusal("patch", JOB, 429, "TooManyRequests", "slow"), refusal("patch", JOB, 422, "Invalid", "no"), unanswered()],
    ids=str,
)
async def test_a_gate_that_can_not_be_moved_is_tried_again(api: FakeApi, operator: FakeOperator, error: Any) -> None:
    set_gate(api, "Open")
    api.before = nth(1, "patch", JOB, error)
    result = await operator.reconcile()
    start = operator.start()
    assert result.requeue
    assert (start["status"]["phase"], conditions(start)["Reconciling"]) == ("Gated", ("True", "Opening"))
    assert (await operator.settle())["status"]["phase"] == "Queued"
    assert "Reconciling" not in conditions(operator.start())


@pytest.mark.parametrize("gate", ["Closed", "Open"])
@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("gone", lambda api: api.objects.pop((COPY, NAMESPACE, NAME))),
        ("changed", lambda api: api.edit(COPY, lambda copy: copy["spec"].update(mlPolicy={}))),
        ("replaced", lambda api: api.edit(COPY, lambda copy: copy["metadata"].update(uid="another"))),
    ],
)
async def test_a_copy_that_was_altered_while_gated_keeps_the_gate_closed(
    api: FakeApi, operator: FakeOperator, gate: str, what: str, change: Any
) -> None:
    change(api)
    set_gate(api, gate)
    start = await operator.settle()
    assert what in message(start, "RuntimeCopied")
    assert conditions(start)["RuntimeCopied"] == ("False", "ErrRejected")
    assert start["status"]["phase"] == "Gated"
    assert api.one(JOB)["spec"]["suspend"] is True


async def test_a_copy_that_was_restored_opens(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(COPY, lambda copy: copy["spec"].update(mlPolicy={}))
    set_gate(api, "Open")
    await operator.settle()
    api.edit(COPY, lambda copy: copy.update(spec=make_runtime()["spec"]))
    start = await operator.settle()
    assert start["status"]["phase"] == "Queued"
    assert conditions(start)["RuntimeCopied"] == ("True", "Copied")


async def with_an_adopted_copy(api: FakeApi) -> FakeOperator:
    """Start on a leftover copy that somebody edited and edited back, before this Start took it over."""
    start = make_start()
    api.put(start)
    leftover = make_runtime()
    leftover |= {"kind": COPY, "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 3}}
    leftover["metadata"]["annotations"] = {
        "dispatch.phpboyscout.uk/start": start["metadata"]["name"],
        "dispatch.phpboyscout.uk/start-uid": api.one("DispatchStart")["metadata"]["uid"],
    }
    for obj in (make_runtime(), make_backend(), leftover):
        api.put(obj)
    operator = FakeOperator(api)
    await operator.settle()
    return operator


@pytest.mark.parametrize(("edits_copy", "phase"), [(False, "Queued"), (True, "Gated")])
async def test_an_adopted_copy_is_compared_with_what_started_recorded(*, edits_copy: bool, phase: str) -> None:
    api = FakeApi()
    operator = await with_an_adopted_copy(api)
    uid = api.one(COPY)["metadata"]["uid"]
    assert operator.start()["status"]["copy"] == {"name": NAME, "uid": uid, "generation": 3}
    # The source may change now: the job has its copy.
    api.edit("ClusterTrainingRuntime", lambda source: source["spec"].update(mlPolicy={}))
    if edits_copy:
        api.edit(COPY, lambda copy: copy["spec"].update(mlPolicy={}))
    set_gate(api, "Open")
    assert (await operator.settle())["status"]["phase"] == phase


async def test_the_generation_of_a_copy_counts_only_where_it_was_compared() -> None:
    # An operator that goes on with another's TrainJob has not seen the source that the copy was equal to.
    api = FakeApi()
    for status in ("seen", "unseen"):
        operator = await with_an_adopted_copy(api)
        held = operator.start()["status"]
        api.edit("DispatchStart", lambda start: [start["status"].clear(), start["metadata"].pop("managedFields")])
        if status == "seen":
            kept = {"copy": held["copy"], "source": held["source"]}
            api.edit("DispatchStart", lambda start, kept=kept: start["status"].update(kept))
        api.edit("ClusterTrainingRuntime", lambda source: source["spec"].update(mlPolicy={}))
        await operator.settle()
        assert ("generation" in operator.start()["status"]["copy"]) is (status == "seen")
        api = FakeApi()


@pytest.mark.parametrize("lost", ["gone", "replaced"])
async def test_a_copy_that_is_lost_says_the_way_out(api: FakeApi, operator: FakeOperator, lost: str) -> None:
    if lost == "gone":
        api.remove(COPY, NAMESPACE, NAME)
    else:
        api.edit(COPY, lambda copy: copy["metadata"].update(uid="another"))
    set_gate(api, "Open")
    start = await operator.settle()
    command = f"kubectl delete dispatchstart llama-s1 --namespace {NAMESPACE}"
    assert f"{command}, and submit under another number" in message(start, "RuntimeCopied")
    assert message(start, "Ready") == message(start, "RuntimeCopied")


async def test_a_copy_that_was_restored_but_whose_source_changed_stays_gated(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.edit("ClusterTrainingRuntime", lambda source: source["spec"].update(mlPolicy={}))
    api.edit(COPY, lambda copy: copy["spec"].update(mlPolicy={}))
    set_gate(api, "Open")
    start = await operator.settle()
    assert conditions(start)["RuntimeCopied"] == ("False", "ErrRejected")


async def test_a_copy_whose_source_is_not_known_any_more_stays_gated(api: FakeApi, operator: FakeOperator) -> None:
    source = {"kind": "Secret", "name": "torch", "uid": "other", "generation": 1}
    api.edit(COPY, lambda copy: copy["spec"].update(mlPolicy={}))
    api.edit("DispatchStart", lambda held: held["status"].update(source=source))
    set_gate(api, "Open")
    api.requests.clear()
    start = await operator.settle()
    assert conditions(start)["RuntimeCopied"] == ("False", "ErrRejected")
    assert {request.kind for request in api.requests if request.verb == "get"} == {COPY}


@pytest.mark.parametrize("kind", [COPY, "ClusterTrainingRuntime"])
async def test_a_copy_that_can_not_be_checked_is_not_opened_and_tried_again(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    api.edit(COPY, lambda copy: copy["spec"].update(mlPolicy={}))
    set_gate(api, "Open")
    api.before = always("get", kind, refusal("get", kind, 503, "ServiceUnavailable", "later"))
    result = await operator.reconcile()
    assert result.requeue
    start = operator.start()
    assert conditions(start)["RuntimeCopied"] == ("True", "Copied")
    assert conditions(start)["Ready"] == ("False", "ErrUnreachable")
    assert api.one(JOB)["spec"]["suspend"] is True


async def test_success_is_final_and_survives_the_train_job(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Open")
    await operator.settle()
    set_job(api, Complete=("JobsCompleted", "jobset completed successfully"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Succeeded"
    assert start["status"]["outcome"] == {"state": "Succeeded", "message": "jobset completed successfully"}
    assert conditions(start)["Succeeded"] == ("True", "Succeeded")
    assert conditions(start)["Ready"][0] == "True"
    del api.objects[JOB, NAMESPACE, NAME]
    set_gate(api, "Held")
    start = await operator.settle()
    assert start["status"]["phase"] == "Succeeded"
    assert start["status"]["observedGeneration"] == start["metadata"]["generation"]


@pytest.mark.parametrize(
    ("pods", "want_cause", "want_code"),
    [
        ([], "JobsFailed", None),
        ([ended(3)], "NonZeroExitCode", 3),
        ([ended(137, "OOMKilled")], "OOMKilled", 137),
        ([{"phase": "Failed", "reason": "Evicted", "message": "low on disk"}], "Evicted", None),
        (
            [ended(125, message="dispatch-prologue: the working directory can not be entered")],
            "WorkDirMissing",
            125,
        ),
        ([ended(125, message="dispatch-prologue: DISPATCH_K8S_RESTART is not a number")], "NonZeroExitCode", 125),
        ([ended(1, at="2026-01-01T00:00:09Z"), ended(7, at="2026-01-01T00:00:02Z")], "NonZeroExitCode", 7),
        (
            [
                {
                    "containerStatuses": [
                        {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
                    ],
                },
            ],
            "ImagePullBackOff",
            None,
        ),
    ],
)
async def test_a_failure_names_its_cause(
    api: FakeApi, operator: FakeOperator, pods: list[Object], want_cause: str, want_code: int | None
) -> None:
    for number, status in enumerate(pods):
        put_pod(api, status, f"pod-{number}")
    set_job(api, Failed=("JobsFailed", "jobset failed"))
    start = await operator.settle()
    outcome = start["status"]["outcome"]
    assert start["status"]["phase"] == "Failed"
    assert (outcome["state"], outcome["cause"], outcome.get("exitCode")) == ("Failed", want_cause, want_code)
    assert outcome["message"]
    for kind in ("Succeeded", "Ready"):
        assert conditions(start)[kind] == ("False", want_cause)
    assert conditions(start)["Stalled"] == ("True", want_cause)


async def test_a_failure_whose_pods_can_not_be_listed_has_the_train_jobs_own_reason(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.before = always("list", "Pod", refusal("list", "Pod", 403, "Forbidden", "no"))
    set_job(api, Failed=("JobsFailed", "jobset failed"))
    start = await operator.settle()
    outcome = {"state": "Failed", "cause": "JobsFailed", "errorKind": "Unknown", "message": "jobset failed"}
    assert start["status"]["outcome"] == outcome


async def test_a_deadline_tells_of_an_image_that_could_not_be_pulled(api: FakeApi, operator: FakeOperator) -> None:
    put_pod(api, {"phase": "Pending"}, "pod-1")
    put_pod(api, {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, "pod-2")
    put_pod(
        api, {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}
    )
    set_job(api, Failed=("DeadlineExceeded", "exceeded its deadline"))
    start = await operator.settle()
    assert start["status"]["outcome"]["cause"] == "DeadlineExceeded"
    assert "no such image" in start["status"]["outcome"]["message"]


async def test_a_train_job_that_vanished_is_lost_and_not_created_again(api: FakeApi, operator: FakeOperator) -> None:
    del api.objects[JOB, NAMESPACE, NAME]
    start = await operator.settle()
    assert start["status"]["phase"] == "Lost"
    assert conditions(start)["Stalled"] == ("True", "Lost")
    assert api.writes() == ["patch DispatchStart status"]
    api.collect()
    await operator.settle()
    assert api.all(JOB) == []


async def test_a_train_job_of_ours_that_turns_up_after_lost_is_deleted(api: FakeApi, operator: FakeOperator) -> None:
    job = api.one(JOB)
    del api.objects[JOB, NAMESPACE, NAME]
    await operator.settle()
    del job["metadata"]["uid"]
    api.put(job)
    await operator.settle()
    assert api.all(JOB) == []
    assert operator.start()["status"]["phase"] == "Lost"


async def test_a_second_train_job_is_never_opened(api: FakeApi, operator: FakeOperator) -> None:
    set_gate(api, "Open")
    api.edit(JOB, lambda job: job["metadata"].update(uid="another"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Lost"
    assert all(job["spec"]["suspend"] for job in api.all(JOB))


async def test_a_train_job_missing_from_the_cache_alone_is_not_lost(api: FakeApi, operator: FakeOperator) -> None:
    operator.watch()
    operator.store.drop(watched(api.one(JOB)))
    await operator.reconcile(stale=True)
    assert operator.start()["status"]["phase"] == "Gated"
    assert api.writes() == []


async def test_a_train_job_that_can_not_be_read_is_not_lost(api: FakeApi, operator: FakeOperator) -> None:
    operator.watch()
    operator.store.drop(watched(api.one(JOB)))
    api.before = always("get", JOB, unanswered("get"))
    assert (await operator.reconcile(stale=True)).requeue
    assert api.writes() == []


async def test_restarts_of_the_job_set_are_counted(api: FakeApi, operator: FakeOperator) -> None:
    api.put({"kind": "JobSet", "metadata": {"name": NAME, "namespace": NAMESPACE}}, restarts=2)
    start = await operator.settle()
    assert start["status"]["restarts"] == 2
    del api.objects["JobSet", NAMESPACE, NAME]
    set_job(api, Complete="JobsCompleted")
    assert (await operator.settle())["status"]["restarts"] == 2


async def test_every_condition_follows_the_generation_after_the_end(api: FakeApi, operator: FakeOperator) -> None:
    set_job(api, Failed="JobsFailed")
    await operator.settle()
    set_gate(api, "Open")
    start = await operator.settle()
    assert {entry["observedGeneration"] for entry in start["status"]["conditions"]} == {start["metadata"]["generation"]}
    assert broken_invariants(start["status"]) == []


async def test_transition_times_move_only_with_the_status(api: FakeApi, operator: FakeOperator) -> None:
    before = {entry["type"]: entry["lastTransitionTime"] for entry in operator.start()["status"]["conditions"]}
    operator.now += 100
    set_gate(api, "Open")
    start = await operator.settle()
    assert {entry["type"]: entry["lastTransitionTime"] for entry in start["status"]["conditions"]} == before


async def test_a_reference_that_somebody_emptied_is_no_trainjob(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["status"]["reference"].update(uid=""))
    api.remove(JOB, NAMESPACE, NAME)
    set_gate(api, "Open")
    start = await operator.settle()
    assert start["status"]["phase"] == "Lost"
    assert not [write for write in api.writes() if "TrainJob" in write]


@pytest.mark.parametrize(
    ("said", "want"),
    [({"Complete": "JobsCompleted"}, "Succeeded"), ({"Failed": "JobsFailed"}, "Failed"), ({}, "Lost")],
)
async def test_one_wait_does_for_every_end(api: FakeApi, operator: FakeOperator, said: Any, want: str) -> None:
    assert conditions(operator.start())["Finished"] == ("False", "Gated")
    if said:
        set_job(api, **said)
    else:
        api.remove(JOB, NAMESPACE, NAME)
    start = await operator.settle()
    assert conditions(start)["Finished"] == ("True", want)
    assert start["status"]["outcome"]["state"] == want


@pytest.mark.parametrize(("gate", "want"), [("Closed", "Gated"), ("Open", "Queued"), ("Held", "Gated")])
async def test_the_printed_reason_tells_the_phases_apart(
    api: FakeApi, operator: FakeOperator, gate: str, want: str
) -> None:
    set_gate(api, gate)
    assert conditions(await operator.settle())["Ready"] == ("True", want)


async def test_the_first_epoch_is_text_for_it_may_exceed_64_bits(api: FakeApi) -> None:
    api.edit("DispatchStart", lambda start: start["spec"]["request"].update(generation=18_000_000))
    start = await FakeOperator(api).settle()
    assert start["status"]["epoch"] == "18000000000001000000"
    assert start["status"]["restarts"] == 0
