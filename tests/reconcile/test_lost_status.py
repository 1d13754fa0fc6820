"""A status that is lost in whole or in part: no running job is stopped, none is started twice, none runs again."""

from collections.abc import Callable
from typing import Any

import pytest

from support.builders import NAME, NAMESPACE, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, always, nth, unanswered
from support.operator import FakeOperator, conditions, message
from support.records import condition, watched

Object = dict[str, Any]
Change = Callable[[Object], object]
COPY, JOB, START = "TrainingRuntime", "TrainJob", "DispatchStart"
OPENED = "dispatch.phpboyscout.uk/opened"
KUEUE = {"queue": "team-a", "admissionCheck": "dispatch-start"}
FAILED = {"type": "Failed", "status": "True", "reason": "NonZeroExitCode", "message": "it failed"}
COMPLETE = {"type": "Complete", "status": "True", "reason": "AllJobsCompleted", "message": "all jobs completed"}


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else {}))
    return api


async def begun(api: FakeApi, gate: str) -> FakeOperator:
    """Return an operator that has brought the start to rest."""
    api.edit(START, lambda start: start["spec"].update(gate=gate))
    operator = FakeOperator(api)
    await operator.settle()
    if gate == "Open":
        api.edit(JOB, lambda job: job.update(status={"jobsStatus": [{"name": "node", "active": 1, "ready": 1}]}))
        assert (await operator.settle())["status"]["phase"] == "Running"
    api.requests.clear()
    return operator


def loses(api: FakeApi, change: Change) -> None:
    api.edit(START, lambda start: change(start["status"]))


def ends(api: FakeApi, how: Object) -> None:
    api.edit(JOB, lambda job: job.update(status={"conditions": [how]}))


def reference(uid: str) -> Object:
    return {"name": f"{NAMESPACE}/{NAME}", "uid": uid}


ALL: dict[str, Change] = {
    "everything": lambda status: status.clear(),
    "everything but the default": lambda status: [status.clear(), status.update(observedGeneration=-1)],
}
PARTS: dict[str, Change] = {
    "the conditions": lambda status: status.pop("conditions", None),
    "the phase": lambda status: status.pop("phase", None),
    "the reference": lambda status: status.pop("reference", None),
    "the copy": lambda status: status.pop("copy", None),
    "the source": lambda status: status.pop("source", None),
    "the copy and the source": lambda status: [status.pop("copy", None), status.pop("source", None)],
    "the reference is another": lambda status: status.update(reference=reference("another")),
    "phase and conditions": lambda status: [status.pop("phase", None), status.pop("conditions", None)],
    "somebody says Succeeded": lambda status: status.update(phase="Succeeded"),
    "somebody says Failed": lambda status: status.update(phase="Failed"),
    "somebody says Lost": lambda status: status.update(phase="Lost"),
    "somebody says Pending": lambda status: status.update(phase="Pending"),
}
OF_OPEN: dict[str, Change] = {
    "an older status": lambda status: [
        status.clear(),
        status.update(phase="Starting", conditions=[make_condition("Started", "Unknown")]),
    ],
    "somebody says Refused": lambda status: [status.clear(), status.update(phase="Refused")],
    "somebody says Stopping": lambda status: [
        status.clear(),
        status.update(phase="Stopping", conditions=[make_condition("Started", "False", "ErrRejected")]),
    ],
}


@pytest.mark.parametrize("lost", [*ALL, *PARTS, *OF_OPEN])
async def test_a_running_job_is_recorded_anew_and_never_stopped(api: FakeApi, lost: str) -> None:
    operator = await begun(api, "Open")
    before, job = api.one(START)["status"], api.one(JOB)
    loses(api, (ALL | PARTS | OF_OPEN)[lost])
    start = await operator.settle()
    assert api.one(JOB) == job
    assert set(api.writes()) <= {"patch DispatchStart status"}
    assert {**start["status"], "conditions": conditions(start)} == {
        **before,
        "conditions": conditions({"status": before}),
    }
    ends(api, FAILED)
    assert (await operator.settle())["status"]["outcome"]["state"] == "Failed"


@pytest.mark.parametrize("lost", PARTS)
@pytest.mark.parametrize("gate", ["Closed", "Open"])
async def test_a_gated_job_is_recorded_anew_and_opens_when_it_is_wanted(api: FakeApi, lost: str, gate: str) -> None:
    operator = await begun(api, "Closed")
    before, uid = api.one(START)["status"], api.one(JOB)["metadata"]["uid"]
    loses(api, PARTS[lost])
    api.edit(START, lambda start: start["spec"].update(gate=gate))
    start = await operator.settle()
    assert api.one(JOB)["metadata"]["uid"] == uid
    for part in ("reference", "copy", "source"):
        assert start["status"][part] == before[part]
    assert start["status"]["phase"] == ("Queued" if gate == "Open" else "Gated")
    assert conditions(start)["Started"] == ("True", "Started")


@pytest.mark.parametrize("lost", ALL)
@pytest.mark.parametrize("gate", ["Closed", "Open"])
async def test_a_gated_job_that_nothing_tells_of_is_neither_opened_nor_stopped(
    api: FakeApi, lost: str, gate: str
) -> None:
    operator = await begun(api, "Closed")
    before, job = api.one(START)["status"], api.one(JOB)
    loses(api, ALL[lost])
    api.edit(START, lambda start: start["spec"].update(gate=gate))
    start = await operator.settle()
    assert api.one(JOB) == job
    assert (start["status"]["phase"], conditions(start)["Ready"]) == ("Gated", ("False", "ReferenceLost"))
    assert "reference" not in start["status"]
    told = message(start, "Ready")
    assert "delete it" in told
    assert f'{{"status":{{"reference":{{"name":"{NAMESPACE}/{NAME}","uid":"{job["metadata"]["uid"]}"}}}}}}' in told
    # What is lost once more, or seen once more, changes nothing.
    loses(api, ALL[lost])
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert api.one(JOB) == job
    loses(api, lambda status: status.update(reference=before["reference"]))
    start = await operator.settle()
    assert (start["status"]["reference"], start["status"]["copy"]) == (before["reference"], before["copy"])
    assert start["status"]["phase"] == ("Queued" if gate == "Open" else "Gated")


async def test_a_job_that_nothing_tells_of_and_that_is_deleted_is_lost(api: FakeApi) -> None:
    operator = await begun(api, "Closed")
    loses(api, ALL["everything"])
    await operator.settle()
    api.remove(JOB, NAMESPACE, NAME)
    start = await operator.settle()
    assert start["status"]["phase"] == "Lost"
    assert (api.all(JOB), api.all(COPY)) == ([], [])


@pytest.mark.parametrize("lost", [*ALL, "phase and conditions"])
@pytest.mark.parametrize("gate", ["Closed", "Open"])
async def test_a_lost_status_starts_nothing_anew(api: FakeApi, lost: str, gate: str) -> None:
    operator = await begun(api, gate)
    loses(api, (ALL | PARTS)[lost])
    api.remove(JOB, NAMESPACE, NAME)
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["outcome"]["state"]) == ("Lost", "Lost")
    assert message(start, "Succeeded").startswith(f"TrainJob {NAMESPACE}/{NAME} vanished")
    assert api.all(JOB) == []


REMNANTS: dict[str, Object] = {
    "a phase of Started": {"phase": "Queued"},
    "a phase of the end": {"phase": "Succeeded"},
    "Started": {"conditions": [make_condition("Started")]},
    "Succeeded": {"conditions": [make_condition("Succeeded", "False", "Evicted")]},
    "Finished": {"conditions": [make_condition("Finished", reason="Failed")]},
    "an outcome": {"outcome": {"state": "Failed"}},
    "an outcome, and a phase of before": {"phase": "Pending", "outcome": {"state": "Failed"}},
    "a final class": {"conditions": [make_condition("Started", "False", "ErrInvalid")]},
    "a refusal's outcome": {"outcome": {"state": "Refused"}},
    "Finished as Refused": {"conditions": [make_condition("Finished", reason="Refused")]},
    "the phase Stopping": {"phase": "Stopping"},
}


@pytest.mark.parametrize("remnant", REMNANTS.values(), ids=REMNANTS)
async def test_any_remnant_of_started_or_of_an_end_forbids_a_create(api: FakeApi, remnant: Object) -> None:
    api.edit(START, lambda start: start.update(status=remnant))
    operator = FakeOperator(api, checks_invariants=False)
    await operator.settle()
    assert not [write for write in api.writes() if write.startswith("create")]


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        ({"subresource": "status", "time": "2026-01-01T00:00:00Z"}, "Lost"),
        ({"subresource": "status", "time": "2025-12-31T23:59:59Z"}, "Gated"),
        ({"time": "2026-01-01T00:00:00Z"}, "Gated"),
        ({"subresource": "status"}, "Gated"),
    ],
    ids=str,
)
async def test_a_status_was_lost_when_a_write_of_it_is_on_record_that_is_not_older_than_the_object(
    api: FakeApi, entry: Object, want: str
) -> None:
    api.edit(START, lambda start: start["metadata"].update(managedFields=[entry]))
    assert (await FakeOperator(api).settle())["status"]["phase"] == want


@pytest.mark.parametrize("how", [FAILED, COMPLETE])
@pytest.mark.parametrize("lost", [*ALL, *PARTS])
async def test_an_ended_job_is_never_run_again(api: FakeApi, how: Object, lost: str) -> None:
    operator = await begun(api, "Open")
    ends(api, how)
    before = (await operator.settle())["status"]
    api.requests.clear()
    loses(api, (ALL | PARTS)[lost])
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["outcome"]) == (before["phase"], before["outcome"])
    assert set(api.writes()) <= {"patch DispatchStart status"}
    api.remove(JOB, NAMESPACE, NAME)
    loses(api, (ALL | PARTS)[lost])
    start = await operator.settle()
    assert api.all(JOB) == []
    assert start["status"]["phase"] in {before["phase"], "Lost", "Failed", "Succeeded"}


@pytest.mark.parametrize("annotation", [None, "", "torch-dispatch u 1", "ClusterTrainingRuntime/torch-dispatch u one"])
async def test_a_source_that_the_copy_does_not_tell_stays_unknown(api: FakeApi, annotation: str | None) -> None:
    operator = await begun(api, "Closed")
    loses(api, lambda status: [status.pop("source"), status.pop("reference")])
    source = "dispatch.phpboyscout.uk/source"
    api.edit(COPY, lambda copy: copy["metadata"]["annotations"].pop(source))
    if annotation is not None:
        api.edit(COPY, lambda copy: copy["metadata"]["annotations"].update({source: annotation}))
    start = await operator.settle()
    assert "source" not in start["status"]
    assert start["status"]["reference"]["name"] == f"{NAMESPACE}/{NAME}"


async def test_an_outcome_that_was_lost_is_recorded_anew(api: FakeApi) -> None:
    operator = await begun(api, "Open")
    ends(api, FAILED)
    before = (await operator.settle())["status"]["outcome"]
    loses(api, lambda status: status.pop("outcome"))
    assert (await operator.settle())["status"]["outcome"] == before


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Lost"])
async def test_another_train_job_that_comes_late_is_deleted_at_every_end(api: FakeApi, phase: str) -> None:
    operator = await begun(api, "Open")
    job = api.one(JOB)
    if phase == "Lost":
        api.remove(JOB, NAMESPACE, NAME)
    else:
        ends(api, FAILED if phase == "Failed" else COMPLETE)
        await operator.settle()
        api.remove(JOB, NAMESPACE, NAME)
    await operator.settle()
    late = {**job, "metadata": {**job["metadata"], "uid": "late"}}
    late["metadata"]["annotations"] = {**late["metadata"]["annotations"], OPENED: "not its own"}
    api.put(late)
    start = await operator.settle()
    assert (start["status"]["phase"], api.all(JOB)) == (phase, [])


async def test_an_end_that_only_the_cache_contradicts_stays(api: FakeApi) -> None:
    operator = await begun(api, "Open")
    operator.watch()
    ends(api, FAILED)
    await operator.settle()
    operator.store.put(watched({**api.one(JOB), "status": {}}))
    before = api.one(START)
    await operator.reconcile()
    assert api.one(START) == before


@pytest.mark.parametrize(
    "change", [lambda job: job["metadata"].update(labels={}), lambda job: job["spec"].update(managedBy="x")]
)
async def test_what_differs_of_a_job_that_is_taken_up_is_told_and_stops_nothing(api: FakeApi, change: Change) -> None:
    operator = await begun(api, "Open")
    api.edit(JOB, change)
    loses(api, ALL["everything"])
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["ReadBack"]) == ("Running", ("False", "ErrRejected"))
    assert conditions(start)["Ready"] == ("True", "Running")
    told = message(start, "ReadBack")
    api.edit(START, lambda start: start["spec"].update(gate="Held"))
    start = await operator.settle()
    assert (start["status"]["phase"], message(start, "ReadBack")) == ("Held", told)


async def test_a_copy_that_is_gone_is_told_of_a_job_that_is_taken_up(api: FakeApi) -> None:
    operator = await begun(api, "Open")
    api.remove(COPY, NAMESPACE, NAME)
    loses(api, ALL["everything"])
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["OwnerSet"]) == ("Running", ("False", "ErrRejected"))


async def test_a_job_that_was_never_opened_and_differs_is_refused_when_it_is_taken_up(api: FakeApi) -> None:
    operator = await begun(api, "Closed")
    api.edit(JOB, lambda job: job["spec"].update(managedBy="x"))
    loses(api, PARTS["phase and conditions"])
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["ReadBack"]) == ("Refused", ("False", "ErrRejected"))
    assert (api.all(JOB), api.all(COPY)) == ([], [])


@pytest.mark.parametrize("kind", [JOB, COPY])
@pytest.mark.parametrize("gate", ["Closed", "Open"])
@pytest.mark.parametrize(
    "lost", [*ALL, "phase and conditions", "the reference is another", "the copy", "somebody says Lost"]
)
async def test_what_can_not_be_read_decides_nothing(api: FakeApi, kind: str, gate: str, lost: str) -> None:
    operator = await begun(api, gate)
    operator.checks_invariants = False
    before = api.one(START)["status"]
    loses(api, (ALL | PARTS)[lost])
    api.before = always("get", kind, unanswered("get", kind))
    for _ in range(3):
        await operator.reconcile()
        assert not {"delete", "create"} & {request.verb for request in api.requests}
    api.before = lambda _request: None
    start = await operator.settle()
    if gate == "Open" or lost not in ALL:
        assert start["status"]["reference"] == before["reference"]


async def test_a_taken_up_job_whose_owner_is_not_set_yet_is_given_it(api: FakeApi) -> None:
    operator = await begun(api, "Closed")
    before = api.one(START)["status"]
    api.edit(COPY, lambda copy: copy["metadata"].update(ownerReferences=[]))
    loses(api, PARTS["phase and conditions"])
    api.before = nth(1, "patch", COPY, unanswered("patch", COPY))
    start = await operator.settle()
    assert start["status"]["copy"] == before["copy"]
    assert api.one(COPY)["metadata"]["ownerReferences"]


async def test_a_taken_up_job_whose_copy_is_going_waits_without_a_record(api: FakeApi) -> None:
    operator = await begun(api, "Closed")
    going = {"ownerReferences": [], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    api.edit(COPY, lambda copy: copy["metadata"].update(going))
    loses(api, PARTS["phase and conditions"])
    assert (await operator.reconcile()).requeue
    assert "phase" not in operator.start()["status"]


@pytest.mark.parametrize("gate", ["Closed", "Open"])
async def test_in_kueue_mode_the_train_job_tells_the_mode(gate: str) -> None:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(kueue=KUEUE), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else {}))
    api.admit = lambda request, body: (
        {**body, "spec": {**body["spec"], "suspend": True}} if request.kind == JOB else body
    )
    operator = FakeOperator(api)
    await operator.reconcile()
    job = api.one(JOB)["metadata"]
    gates = {"kueue.x-k8s.io/admission-gated-by": "dispatch.phpboyscout.uk/start-gate"}
    meta = {
        "name": "work",
        "namespace": NAMESPACE,
        "annotations": gates,
        "labels": {"kueue.x-k8s.io/job-uid": job["uid"]},
    }
    owner = {"kind": JOB, "name": NAME, "uid": job["uid"]}
    work = {"kind": "Workload", "metadata": {**meta, "ownerReferences": [owner]}, "spec": {"active": True}}
    api.put(work, admissionChecks=[{"name": "dispatch-start", "state": "Pending"}])
    api.edit(START, lambda start: start["spec"].update(gate=gate))
    start = await operator.settle()
    before = start["status"]
    loses(api, PARTS["the conditions"])
    assert conditions(await operator.settle()) == conditions({"status": before})
    if gate == "Open":
        assert api.one(JOB)["metadata"]["annotations"][OPENED] == job["uid"]
        api.edit(JOB, lambda held: held["spec"].update(suspend=False))
        before = (await operator.settle())["status"]
    loses(api, (ALL if gate == "Open" else PARTS)["everything" if gate == "Open" else "phase and conditions"])
    start = await operator.settle()
    assert conditions(start) == conditions({"status": before})
    assert condition(start, "WorkloadGated")["status"] == "True"


@pytest.mark.parametrize("field", ["reference", "copy", "source", "outcome", "conditions"])
@pytest.mark.parametrize("gate", ["Closed", "Open"])
async def test_a_field_that_an_older_crd_prunes_is_told_and_stops_nothing(
    api: FakeApi, caplog: pytest.LogCaptureFixture, field: str, gate: str
) -> None:
    operator = await begun(api, gate)
    operator.checks_invariants = False
    job = api.one(JOB)
    patch = api.patch

    async def prunes(kind: str, namespace: str, name: str, body: Object, **how: Any) -> Object:
        if kind == START:
            body = {**body, "status": {**body["status"], field: None}}
        return await patch(kind, namespace, name, body, **how)

    api.patch = prunes  # type: ignore[method-assign]
    loses(api, lambda status: status.pop(field, None))
    api.edit(START, lambda start: start["spec"].update(retry="OnChange", gate="Held" if gate == "Open" else gate))
    if field == "outcome":
        ends(api, FAILED)
    for _ in range(5):
        api.requests.clear()
        await operator.reconcile()
        assert len(api.writes()) <= 2
        assert not {"delete", "create"} & {request.verb for request in api.requests}
    assert f"dispatchstarts.dispatch.phpboyscout.uk, v1alpha1, does not keep status.{field}: upgrade" in caplog.text
    assert api.one(JOB)["metadata"]["uid"] == job["metadata"]["uid"]


async def test_nothing_stays_of_an_outcome_that_is_not_true(api: FakeApi) -> None:
    operator = await begun(api, "Open")
    loses(api, lambda status: status.update(phase="Failed", outcome={"state": "Failed", "pod": "x", "exitCode": 3}))
    ends(api, COMPLETE)
    start = await operator.settle()
    assert start["status"]["outcome"] == {"state": "Succeeded", "message": "all jobs completed"}
