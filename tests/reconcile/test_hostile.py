"""Objects that no operator of ours wrote: whatever they hold, they get a verdict, in time that grows with their size."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.models import read_backend, read_start
from dispatch_operator.checks.start import start_problems
from dispatch_operator.kube.errors import ApiError, answered
from dispatch_operator.reconcile.events import events
from support.builders import make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, Fault, Request, always
from support.invariants import broken_invariants
from support.operator import FakeOperator, conditions, message
from support.work import growth

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
async def test_any_spec_and_any_status_come_to_a_rest_that_says_something(
    status: Object, gate: Any, retry: Any, backend: Any, request: Any
) -> None:
    api = FakeApi()
    held = make_backend()
    api.put(make_runtime())
    api.put(held, **held.pop("status", {}))
    # Keys that are words of an enum are plain text in JSON.
    status = json.loads(json.dumps(status))
    start = make_start()
    start["spec"] = {"gate": gate, "retry": retry, "backend": backend, "request": request}
    api.put(start, **status)
    operator = FakeOperator(api, checks_invariants=False)
    settled = await operator.settle()
    assert settled["status"]["phase"] in set(Phase)
    assert settled["status"]["observedGeneration"] == settled["metadata"]["generation"]
    ready = next(one for one in settled["status"]["conditions"] if one["type"] == "Ready")
    assert ready["reason"]
    assert ready["message"]
    assert len(api.all(JOB)) <= 1
    if not api.all(JOB):
        assert api.all(COPY) == []


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


class Hostile(NamedTuple):
    """What of a request is hostile, by its size."""

    what: str
    fields: Callable[[int], Object]
    says: tuple[str, str, str]
    """Status and reason of Started, and what its message begins with."""


def image(unknown: Callable[[int], Any]) -> Callable[[int], Object]:
    def fields(size: int) -> Object:
        extensions = make_start()["spec"]["request"]["spec"]["extensions"]
        extensions["dispatch/Image"].update(unknown(size))
        return {"extensions": extensions}

    return fields


def extensions(more: Callable[[int], Any]) -> Callable[[int], Object]:
    return lambda size: {"extensions": make_start()["spec"]["request"]["spec"]["extensions"] | more(size)}


LARGE = 8_000
INVALID, UNSUPPORTED = ("False", "ErrInvalid"), ("False", "ErrUnsupported")
HOSTILE = [
    Hostile(
        "unknown keys of an extension",
        image(lambda size: {f"key-{number}": 1 for number in range(size)}),
        (*INVALID, "dispatch/Image: [key-0] is not a known key; dispatch/Image: [key-1] is not"),
    ),
    Hostile(
        "extensions that nobody knows",
        extensions(lambda size: {f"other/X{number}": {} for number in range(size)}),
        (*UNSUPPORTED, "other/X0: extension other/X0 is not supported on Kubeflow; other/X1: "),
    ),
    Hostile(
        "extensions that are no objects",
        extensions(lambda size: {f"other/X{number}": 1 for number in range(size)}),
        (*INVALID, "other/X0: must be an object, not 1; other/X1: "),
    ),
    Hostile(
        "names that no variable has",
        lambda size: {"env": {f"{number} is no name": "x" for number in range(size)}},
        (*INVALID, "env: has 8,000 entries, and at most 122 are possible without workDir; env: the name "),
    ),
    Hostile(
        "values that are no strings",
        lambda size: {"env": {f"A{number}": number for number in range(size)}},
        (*INVALID, "env: A0 must be a string, not 0; env: A1 must be"),
    ),
    Hostile(
        "122 large values, each with a problem",
        lambda size: {"env": {f"A{number}": "\x7f" + "$(B)" * (size // 4) for number in range(122)}},
        (*INVALID, 'env: the value of "A0" has the character U+007F at 0, which Trainer can\'t carry; env: '),
    ),
    Hostile(
        "an empty command of many items",
        lambda size: {"command": [""] * size},
        (*INVALID, "command: its first item must be a program, neither empty nor beginning with -, not"),
    ),
    Hostile(
        "items that are no strings",
        lambda size: {"command": [{}] * size},
        (*INVALID, "command: item 0 must be a string, not an object; command: item "),
    ),
    Hostile(
        "a time limit of many parts beside one of many digits",
        lambda size: {"timeLimit": "9" * size + "h" + "1h" * size},
        (*INVALID, 'timeLimit: "999'),
    ),
    Hostile(
        "a program",
        lambda size: {"command": ["x", *["$(A)" * (size // 4)] * 10]},
        ("True", "Started", "the TrainJob exists"),
    ),
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.what)
async def test_large_objects_get_the_verdict_of_small_ones(api: FakeApi, hostile: Hostile) -> None:
    fields = hostile.fields(LARGE)
    api.edit("DispatchStart", lambda held: held["spec"]["request"]["spec"].update(fields))
    operator = FakeOperator(api)
    start = await operator.settle()
    assert (*conditions(start)["Started"], message(start, "Started")[: len(hostile.says[2])]) == hostile.says
    assert broken_invariants(start["status"]) == []
    assert len(json.dumps(start["status"])) < 200_000
    # One look came to it, and a second one has nothing to add.
    assert api.writes().count("patch DispatchStart status") <= 2


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.what)
def test_the_work_of_a_verdict_grows_as_the_object_does(hostile: Hostile) -> None:
    backend, runtime = read_backend(make_backend()), make_runtime()

    def verdict(size: int) -> None:
        start = make_start(**hostile.fields(size))
        list(start_problems(read_start(start), backend, runtime))

    assert growth(verdict, 400) < 2.2


TOO_LARGE = answered("patch", "DispatchStart", 500, '{"message": "etcdserver: request is too large"}', None)


def roomy_for(characters: int) -> Fault:
    """Return a fault of a status that is larger than the room that the object leaves in etcd."""

    def refuses(request: Request) -> ApiError | None:
        writes = (request.verb, request.kind) == ("patch", "DispatchStart")
        return TOO_LARGE if writes and len(json.dumps(request.body)) > characters else None

    return refuses


@pytest.fixture
def crowded(api: FakeApi) -> FakeApi:
    """A request with a thousand problems."""
    env = {f"{number} is no name": "x" for number in range(1_000)}
    api.edit("DispatchStart", lambda held: held["spec"]["request"]["spec"].update(env=env))
    return api


async def test_a_status_that_is_too_large_for_etcd_is_told_briefly(crowded: FakeApi) -> None:
    crowded.before = roomy_for(5_000)
    operator = FakeOperator(crowded)
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    assert conditions(start)["Started"] == ("False", "ErrInvalid")
    assert message(start, "Started").startswith("env: has 1,000 entries, and at most 122 are possible")
    assert message(start, "Started").endswith("characters; the object is too large for more of them to be stored)")
    written = len(crowded.writes())
    await operator.reconcile()
    assert len(crowded.writes()) == written


async def test_a_status_for_which_there_is_no_room_at_all_is_told_in_an_event(crowded: FakeApi) -> None:
    crowded.before = roomy_for(0)
    operator = FakeOperator(crowded)
    result = await operator.reconcile()
    # It is tried again with backoff: somebody may make room.
    assert result.requeue
    assert crowded.writes() == ["patch DispatchStart status"] * 2
    (told,) = [event for before, after in operator.announced for event in events(before, after)]
    assert (told.type, told.reason) == ("Warning", "ErrInvalid")


async def test_a_train_job_that_is_too_large_for_etcd_is_refused_for_good(api: FakeApi) -> None:
    api.before = always("create", JOB, TOO_LARGE)
    start = await FakeOperator(api).settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))
    assert "request is too large" in message(start, "Started")
    assert api.all(COPY) == []


@pytest.mark.parametrize("jump", [-1e9, 1e9])
async def test_a_clock_that_jumps_loses_nothing(api: FakeApi, operator: FakeOperator, jump: float) -> None:
    operator.now += jump
    api.edit("DispatchStart", lambda held: held["spec"].update(gate="Open"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Queued"
