"""A refusal after the TrainJob was created: what was made is deleted until that is known."""

from support.earlier_starts import copy_of
from support.fake_api import FakeApi, nth, unanswered
from support.operator import FakeOperator, conditions

COPY, JOB = "TrainingRuntime", "TrainJob"


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
