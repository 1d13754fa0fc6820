"""Step 5: the copy of the runtime, and what an earlier Start has left under its name."""

from collections.abc import Callable
from typing import Any

import pytest

from support.builders import NAME, NAMESPACE, make_runtime, make_start
from support.earlier_starts import copy_of, of_another
from support.fake_api import FakeApi, always, unanswered
from support.operator import FakeOperator, conditions, message

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"


def crash_before(number: int) -> Callable[[Any], None]:
    counter = iter(range(1, 1_000))

    def fault(_request: Any) -> None:
        if next(counter) == number:
            raise SystemExit

    return fault


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
    ("phase", "want_phase"),
    [("Refused", "Gated"), ("Cancelled", "Gated"), ("Pending", "Refused"), ("Lost", "Refused"), ("Gated", "Refused")],
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
