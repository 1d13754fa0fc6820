"""Step 8: what was stored is compared with what was written."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.kube.errors import ApiError
from support.builders import NAME, NAMESPACE
from support.earlier_starts import NOTHING_HAPPENED
from support.fake_api import FakeApi, nth, unanswered
from support.operator import FakeOperator, conditions, message

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"


def crash_before(number: int) -> Callable[[Any], None]:
    counter = iter(range(1, 1_000))

    def fault(_request: Any) -> None:
        if next(counter) == number:
            raise SystemExit

    return fault


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
