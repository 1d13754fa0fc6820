"""Objects that no operator of ours wrote: whatever they hold, a reconcile ends, and says something."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from support.builders import make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi
from support.operator import FakeOperator, conditions, message

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"

WORDS = st.sampled_from([*Phase, *ErrorClass, *Condition, "True", "False", "Unknown", "", "x", "2026-01-01T00:00:00Z"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.sampled_from(["type", "uid"]), inner, max_size=3)
    ),
    max_leaves=8,
)
CONDITION = st.fixed_dictionaries(
    {"type": WORDS, "status": WORDS}, optional={"reason": JSON, "message": JSON, "lastTransitionTime": JSON}
)
STATUS = st.fixed_dictionaries(
    {},
    optional={
        "phase": JSON,
        "observedGeneration": JSON,
        "conditions": st.lists(CONDITION, max_size=4) | JSON,
        "reference": JSON | st.fixed_dictionaries({"uid": WORDS}),
        "copy": JSON,
        "source": JSON,
        "outcome": JSON,
        "restarts": JSON,
        "evictions": JSON,
    },
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(status=STATUS, gate=JSON, retry=JSON, backend=JSON, request=JSON | st.just(make_start()["spec"]["request"]))
async def test_any_spec_and_any_status_end_a_look(
    status: Object, gate: Any, retry: Any, backend: Any, request: Any
) -> None:
    api = FakeApi()
    held = make_backend()
    api.put(make_runtime())
    api.put(held, **held.pop("status", {}))
    start = make_start()
    start["spec"] = {"gate": gate, "retry": retry, "backend": backend, "request": request}
    api.put(start, **status)
    operator = FakeOperator(api, checks_invariants=False)
    for _ in range(3):
        await operator.reconcile()
    assert len(api.all(JOB)) <= 1


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    backend = make_backend()
    api.put(make_runtime())
    api.put(backend, **backend.pop("status", {}))
    api.put(make_start(), observedGeneration=-1)
    return api


@pytest.fixture
async def operator(api: FakeApi) -> FakeOperator:
    """An operator that has brought one start to Gated."""
    operator = FakeOperator(api)
    await operator.settle()
    return operator


async def test_a_label_that_somebody_took_away_while_gated_is_no_loss(api: FakeApi, operator: FakeOperator) -> None:
    # The watch tells of a deletion; the live read tells the truth.
    api.edit(JOB, lambda job: job["metadata"].update(labels={}))
    start = await operator.settle()
    assert start["status"]["phase"] == "Gated"
    api.edit("DispatchStart", lambda held: held["spec"].update(gate="Open"))
    await operator.settle()
    assert api.one(JOB)["spec"]["suspend"] is False


async def test_a_status_that_somebody_emptied_is_written_again(api: FakeApi, operator: FakeOperator) -> None:
    job = api.one(JOB)
    api.edit("DispatchStart", lambda held: held.update(status={}))
    start = await operator.settle()
    assert start["status"]["phase"] == "Gated"
    assert api.one(JOB) == job


async def test_a_status_that_claims_a_start_that_never_was_is_lost(api: FakeApi) -> None:
    claimed = {
        "phase": "Gated",
        "reference": {"name": "x", "uid": "x"},
        "conditions": [make_condition("Started")],
    }
    api.edit("DispatchStart", lambda held: held.update(status=claimed))
    operator = FakeOperator(api)
    start = await operator.settle()
    assert start["status"]["phase"] == "Lost"
    assert api.all(JOB) == []


async def test_a_request_of_a_mebibyte_is_refused_whole(api: FakeApi) -> None:
    env = {f"{number} is no name": "x" * 100 for number in range(9_000)}
    api.edit("DispatchStart", lambda held: held["spec"]["request"]["spec"].update(env=env))
    operator = FakeOperator(api)
    start = await operator.settle()
    assert conditions(start)["Started"] == ("False", "ErrInvalid")
    assert len(message(start, "Started")) <= 32_768
    assert message(start, "Started").endswith("more")


@pytest.mark.parametrize("jump", [-1e9, 1e9])
async def test_a_clock_that_jumps_loses_nothing(api: FakeApi, operator: FakeOperator, jump: float) -> None:
    operator.now += jump
    api.edit("DispatchStart", lambda held: held["spec"].update(gate="Open"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Queued"
