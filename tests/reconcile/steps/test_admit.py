"""Step 1: whether the backend takes a Start."""

from typing import Any

import pytest

from support.builders import NAMESPACE, make_backend
from support.fake_api import FakeApi
from support.operator import FakeOperator, conditions, message
from support.records import watched

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"


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


async def test_a_backend_without_a_name_is_refused_and_never_asked_for(api: FakeApi, operator: FakeOperator) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(backend=""))
    start = await operator.settle()
    assert conditions(start)["RequestValid"] == ("False", "ErrInvalid")
    assert "backend" in message(start, "RequestValid")
    assert [request for request in api.requests if request.kind == "DispatchBackend"] == []
