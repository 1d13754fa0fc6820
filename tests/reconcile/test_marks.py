"""Whose a TrainJob is when somebody, such as a webhook, strips or changes its marks: it is never left behind."""

from collections.abc import Callable
from typing import Any

import pytest

from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, Request, nth, unanswered
from support.operator import FakeOperator, conditions, message

Object = dict[str, Any]
Change = Callable[[Object], object]
COPY, JOB, START = "TrainingRuntime", "TrainJob", "DispatchStart"
GROUP = "dispatch.phpboyscout.uk"
OF_START = f"{GROUP}/start"
UID = f"{OF_START}-uid"


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi(collects=True)
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == START else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


def stores(api: FakeApi, kind: str, change: Change) -> None:
    """Let a mutating webhook change the metadata of what is created."""

    def webhook(request: Request, body: Object) -> Object:
        if (request.verb, request.kind) == ("create", kind):
            change(body["metadata"])
        return body

    api.admit = webhook


def without(part: str, key: str) -> Change:
    return lambda meta: meta[part].pop(key)


STRIPPED: dict[str, tuple[Change, str]] = {
    "start-uid is dropped": (without("annotations", UID), f"metadata.annotations[{UID}]"),
    "start-uid is emptied": (lambda meta: meta["annotations"].update({UID: ""}), f"metadata.annotations[{UID}]"),
    "start is dropped": (without("annotations", OF_START), f"metadata.annotations[{OF_START}]"),
    "all annotations are dropped": (lambda meta: meta.pop("annotations"), f"metadata.annotations[{UID}]"),
    "all labels are dropped": (lambda meta: meta.pop("labels"), f"metadata.labels[{GROUP}/job-id]"),
    "the job's label is changed": (
        lambda meta: meta["labels"].update({f"{GROUP}/job-id": "x"}),
        f"metadata.labels[{GROUP}/job-id]",
    ),
    "the submission's label is dropped": (
        without("labels", f"{GROUP}/submission"),
        f"metadata.labels[{GROUP}/submission]",
    ),
    "the owner is dropped": (lambda meta: meta.pop("ownerReferences"), "metadata.ownerReferences[0]"),
}
BARE: dict[str, tuple[Change, str]] = {
    "start-uid names another": (
        lambda meta: meta["annotations"].update({UID: "another"}),
        f"metadata.annotations[{UID}]",
    ),
    "another owns it": (
        lambda meta: meta["ownerReferences"][0].update(kind="Workflow", uid="w", name="w"),
        "metadata.ownerReferences[0]",
    ),
    "nothing is kept": (
        lambda meta: [meta.pop(part) for part in ("labels", "annotations", "ownerReferences")],
        "metadata.ownerReferences[0]",
    ),
}


@pytest.mark.parametrize(("change", "path"), (STRIPPED | BARE).values(), ids=[*STRIPPED, *BARE])
async def test_what_a_webhook_makes_of_a_train_job_is_read_back_told_and_stopped(
    api: FakeApi, operator: FakeOperator, change: Change, path: str
) -> None:
    stores(api, JOB, change)
    made: list[str] = []
    api.watches.append(lambda kind, obj, _: made.append(obj["metadata"]["uid"]) if kind == JOB else None)
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["ReadBack"]) == ("Refused", ("False", "ErrRejected"))
    assert path in message(start, "ReadBack")
    assert start["status"]["reference"]["uid"] == made[0]
    assert (api.all(JOB), api.all(COPY)) == ([], [])


@pytest.mark.parametrize(("change", "path"), STRIPPED.values(), ids=STRIPPED)
@pytest.mark.parametrize("lost", [False, True])
async def test_what_bears_one_of_our_marks_is_known_after_a_crash_too(
    api: FakeApi, operator: FakeOperator, change: Change, path: str, lost: bool
) -> None:
    stores(api, JOB, change)

    def crash(request: Any) -> None:
        if any(str(made) == "create TrainJob" for made in api.requests[:-1]):
            raise SystemExit(str(request))

    if lost:
        api.after = nth(1, "create", JOB, unanswered())
        await operator.reconcile()
    else:
        api.before = crash
        with pytest.raises(SystemExit):
            await operator.reconcile()
        api.before = lambda _request: None
        assert api.all(JOB)
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["ReadBack"]) == ("Refused", ("False", "ErrRejected"))
    assert path in message(start, "ReadBack")
    assert (api.all(JOB), api.all(COPY)) == ([], [])


@pytest.mark.parametrize(("change", "_path"), BARE.values(), ids=BARE)
async def test_what_bears_no_mark_is_recorded_with_what_was_changed_before_anything_else_is_done(
    api: FakeApi, operator: FakeOperator, change: Change, _path: str
) -> None:
    stores(api, JOB, change)
    await operator.reconcile()
    writes = api.writes()
    assert writes[writes.index("create TrainJob") + 1] == "patch DispatchStart status"


async def test_a_status_that_somebody_wrote_meanwhile_does_not_make_the_uid_forgotten(
    api: FakeApi, operator: FakeOperator
) -> None:
    stores(api, JOB, BARE["nothing is kept"][0])

    def writes(request: Request) -> None:
        if str(request) == "get TrainJob" and api.one(START)["metadata"]["generation"] == 1:
            api.edit(START, lambda start: start["spec"].update(gate="Open"))

    api.before = writes
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["ReadBack"]) == ("Refused", ("False", "ErrRejected"))
    assert (api.all(JOB), api.all(COPY)) == ([], [])


async def test_a_uid_that_an_earlier_start_of_the_name_created_is_not_another_ones(
    api: FakeApi, operator: FakeOperator
) -> None:
    stores(api, JOB, BARE["nothing is kept"][0])

    def recreates(request: Request) -> None:
        start = api.one(START)
        if str(request) == "get TrainJob" and start["metadata"]["uid"] != "again":
            del api.objects[START, NAMESPACE, "llama-s1"]
            api.put({**start, "metadata": {**start["metadata"], "uid": "again"}})

    api.before = recreates
    await operator.settle()
    assert conditions(operator.start())["Started"] == ("False", "ErrRejected")
    assert len(api.all(JOB)) == 1


@pytest.mark.parametrize("owner", [{"kind": "DispatchStart", "name": "other", "uid": "o"}, {"kind": "Job", "uid": "j"}])
async def test_a_train_job_that_another_controls_is_never_touched(
    api: FakeApi, operator: FakeOperator, owner: Object
) -> None:
    api.put({**make_start("other"), "metadata": {"name": "other", "namespace": NAMESPACE, "uid": "o"}})
    meta = {"name": NAME, "namespace": NAMESPACE, "ownerReferences": [{"controller": True, **owner}]}
    api.put({"kind": JOB, "metadata": meta, "spec": {"suspend": False}})
    start = await operator.settle()
    assert conditions(start)["Started"] == ("False", "ErrRejected")
    assert len(api.all(JOB)) == 1


async def test_a_train_job_whose_controller_is_gone_is_waited_for(api: FakeApi, operator: FakeOperator) -> None:
    owner = {"kind": START, "name": "gone", "uid": "gone-uid", "controller": True}
    meta = {"name": NAME, "namespace": NAMESPACE, "ownerReferences": [owner]}
    api.collects = False
    api.put({"kind": JOB, "metadata": meta, "spec": {"suspend": True}})
    start = await operator.settle()
    assert conditions(start)["Started"] == ("Unknown", "TrainJobLeaving")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (without("annotations", UID), f"metadata.annotations[{UID}]"),
        (lambda meta: meta.pop("annotations"), f"metadata.annotations[{OF_START}]"),
        (lambda meta: meta["annotations"].update({f"{GROUP}/comment": "x"}), f"metadata.annotations[{GROUP}/comment]"),
    ],
)
async def test_a_copy_whose_marks_were_not_kept_is_deleted_and_refused(
    api: FakeApi, operator: FakeOperator, change: Change, path: str
) -> None:
    stores(api, COPY, change)
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["RuntimeCopied"]) == ("Refused", ("False", "ErrRejected"))
    assert path in message(start, "RuntimeCopied")
    assert (api.all(JOB), api.all(COPY)) == ([], [])


@pytest.mark.parametrize("gate", ["Closed", "Open"])
async def test_marks_that_somebody_takes_away_later_change_nothing(
    api: FakeApi, operator: FakeOperator, gate: str
) -> None:
    await operator.settle()
    api.edit(JOB, lambda job: [job["metadata"].pop(part) for part in ("labels", "annotations", "ownerReferences")])
    api.edit(START, lambda start: start["spec"].update(gate=gate))
    start = await operator.settle()
    assert start["status"]["phase"] == ("Queued" if gate == "Open" else "Gated")
    failed = {"type": "Failed", "status": "True", "reason": "NonZeroExitCode", "message": "it failed"}
    api.edit(JOB, lambda job: job.update(status={"conditions": [failed]}))
    assert (await operator.settle())["status"]["phase"] == "Failed"
