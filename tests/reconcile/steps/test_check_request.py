"""Steps 2 to 4: a request and its runtime are judged before anything is made."""

from typing import Any

from support.fake_api import FakeApi, nth, refusal
from support.operator import FakeOperator, conditions, message


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


async def test_a_runtime_that_can_not_be_read_is_tried_again(api: FakeApi, operator: FakeOperator) -> None:
    api.before = nth(1, "get", "ClusterTrainingRuntime", refusal("get", "x", 503, "ServiceUnavailable", "later"))
    result = await operator.reconcile()
    assert result.requeue
    assert conditions(operator.start())["RequestValid"] == ("False", "ErrUnreachable")
    assert (await operator.settle())["status"]["phase"] == "Gated"
