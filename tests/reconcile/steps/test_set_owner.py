"""Step 7: the copy gets its owner."""

from collections.abc import Callable
from typing import Any

import pytest

from support.builders import NAME, NAMESPACE
from support.fake_api import FakeApi, always, nth, refusal
from support.operator import FakeOperator, conditions

COPY, JOB = "TrainingRuntime", "TrainJob"


def crash_before(number: int) -> Callable[[Any], None]:
    counter = iter(range(1, 1_000))

    def fault(_request: Any) -> None:
        if next(counter) == number:
            raise SystemExit

    return fault


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
