"""Models: strict types, and everything that is wrong with a backend at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api.enums import BackendState, ErrorClass
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.api.models import InvalidObject, read_backend, read_start
from dispatch_operator.api.models.base import Model
from dispatch_operator.api.models.reading import dotted, without_nulls
from dispatch_operator.api.models.start import Extensions, Image, JobSpec, RuntimeRef, StartRequest, StartSpec
from dispatch_operator.checks.backend import backend_problem
from dispatch_operator.checks.request import FIELDS
from support.builders import make_backend, make_start

Object = dict[str, Any]


def test_a_backends_defaults_are_the_contracts() -> None:
    spec = read_backend(make_backend(runtimes=[{"name": "r"}], probeRuntime={"name": "r"})).spec
    assert (spec.state, spec.gpu_resource, spec.kueue) == (BackendState.OPEN, "nvidia.com/gpu", None)
    assert (spec.timeouts.call, spec.timeouts.workload, spec.timeouts.hold) == ("30s", "60s", "3s")
    assert spec.runtimes[0].kind is RuntimeKind.CLUSTER_TRAINING_RUNTIME
    assert spec.probe_runtime.kind is RuntimeKind.CLUSTER_TRAINING_RUNTIME


def test_a_backend_is_read_whole() -> None:
    spec = read_backend(
        make_backend(
            state="ReadOnly",
            runtimes=[{"kind": "TrainingRuntime", "name": "r"}],
            gpuResource="amd.com/gpu",
            kueue={"queue": "q", "admissionCheck": "c", "unknown": 5},
            timeouts={"call": "1.5s", "hold": None},
        ),
    ).spec
    assert spec.runtimes[0].kind is RuntimeKind.TRAINING_RUNTIME
    assert spec.kueue is not None
    assert (spec.kueue.queue, spec.kueue.admission_check) == ("q", "c")
    assert (spec.timeouts.call, spec.timeouts.workload, spec.timeouts.hold) == ("1.5s", "60s", "3s")


@pytest.mark.parametrize(
    ("stored", "want"), [("1h", "1h"), ("60m0.5s", "1h"), ("100000h", "1h"), ("9" * 60 + "h", "1h")]
)
def test_a_timeout_that_was_stored_before_there_was_a_bound_counts_as_the_longest(stored: str, want: str) -> None:
    spec = read_backend(make_backend(timeouts=dict.fromkeys(("call", "workload", "hold"), stored))).spec
    assert {spec.timeouts.call, spec.timeouts.workload, spec.timeouts.hold} == {want}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"state": "open"}, "spec.state must be 'Open', 'ReadOnly' or 'Closed', not \"open\""),
        ({"runtimes": None}, "spec.runtimes is required"),
        ({"runtimes": {}}, "spec.runtimes must be a list, not an object"),
        ({"runtimes": [None]}, "spec.runtimes[0] must be an object, not null"),
        ({"runtimes": [{"name": "r", "kind": "Pod"}]}, "spec.runtimes[0].kind must be"),
        ({"runtimes": [{}]}, "spec.runtimes[0].name is required"),
        ({"runtimes": [{"name": ""}]}, "spec.runtimes[0].name must have at least 1 character"),
        ({"probeRuntime": None}, "spec.probeRuntime is required"),
        ({"gpuResource": "cpu"}, "spec.gpuResource must be an extended resource: a domain, a slash"),
        ({"gpuResource": "hugepages-2Mi"}, "spec.gpuResource must be an extended resource: a domain, a slash"),
        ({"gpuResource": "Nvidia.com/gpu"}, "spec.gpuResource must be an extended resource: a domain, a slash"),
        ({"gpuResource": "nvidia.com/"}, "spec.gpuResource must be an extended resource: a domain, a slash"),
        ({"gpuResource": "nvidia.com/" + "x" * 64}, "spec.gpuResource must be an extended resource: a domain, a slash"),
        ({"gpuResource": "requests.nvidia.com/gpu"}, "spec.gpuResource must be an extended resource"),
        ({"gpuResource": "kubernetes.io/x"}, "spec.gpuResource must be an extended resource"),
        ({"gpuResource": "gpu.kubernetes.io/x"}, "spec.gpuResource must be an extended resource"),
        ({"gpuResource": "nvidia.com/gpu\n"}, "spec.gpuResource must be an extended resource"),
        (
            {"kueue": {"queue": "Bad Name!", "admissionCheck": "c"}},
            "spec.kueue.queue must be the name of an object: lower-case letters, digits, - and ., such as team-a, not",
        ),
        ({"kueue": {"queue": "q" * 64, "admissionCheck": "c"}}, "spec.kueue.queue must have at most 63 characters"),
        ({"kueue": {"queue": "q", "admissionCheck": "a/b"}}, "spec.kueue.admissionCheck must be the name of an object"),
        ({"kueue": {"queue": "q"}}, "spec.kueue.admissionCheck is required"),
        (
            {"timeouts": {"call": "0s"}},
            'spec.timeouts.call must be a duration greater than zero, such as 90s or 1m30s, not "0s"',
        ),
        ({"timeouts": {"call": "-1s"}}, "spec.timeouts.call must be a duration greater than zero"),
        ({"timeouts": {"call": "1d"}}, "spec.timeouts.call must be a duration greater than zero"),
        ({"timeouts": {"call": "0s0.0m"}}, "spec.timeouts.call must be a duration greater than zero"),
        ({"timeouts": {"call": 30}}, "spec.timeouts.call must be a string, not 30"),
    ],
)
def test_a_wrong_backend_is_invalid_and_says_where(spec: Object, fault: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read_backend(make_backend(**spec))
    assert str(caught.value).startswith(fault)
    assert len(caught.value.faults) == 1


def test_every_fault_of_a_backend_is_named() -> None:
    with pytest.raises(InvalidObject) as caught:
        read_backend({"spec": {"state": "x", "gpuResource": 5}})
    assert [fault.path for fault in caught.value.faults] == [
        ("spec", "state"),
        ("spec", "runtimes"),
        ("spec", "gpuResource"),
        ("spec", "probeRuntime"),
    ]


@pytest.mark.parametrize(
    ("state", "error_class"),
    [
        ("Open", None),
        ("ReadOnly", ErrorClass.READ_ONLY),
        ("Closed", ErrorClass.UNREACHABLE),
        (None, ErrorClass.UNREACHABLE),
    ],
)
def test_a_backends_state_is_the_first_word(state: str | None, error_class: ErrorClass | None) -> None:
    backend = read_backend(make_backend(state=state)) if state else None
    found = backend_problem("default", backend)
    assert (found.error_class if found else None) is error_class
    if found:
        assert found.name == "state"
        assert '"default"' in found.text


def test_a_name_that_no_backend_has_is_told_as_that() -> None:
    found = backend_problem("", None)
    assert found
    assert (found.error_class, str(found)) == (ErrorClass.INVALID, "backend: must be the name of a DispatchBackend")


def test_the_examples_in_the_models_are_right() -> None:
    """They stand in for what could not be read, and must not be reported themselves."""
    reading = read_start({})
    assert [fault.path for fault in reading.faults] == [("request",)]
    assert [text for _, check in FIELDS for text in check(reading.request)] == []
    for model in (StartSpec, StartRequest, JobSpec, Extensions, Image, RuntimeRef):
        assert issubclass(model, Model)
        for name, field in model.model_fields.items():
            for example in field.examples or ():
                alone = model.__pydantic_validator__.validate_assignment(model.model_construct(), name, example)
                assert alone is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("\ud800"), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def replaced(holder: Any, place: tuple[Any, ...], value: Any) -> Any:
    """Return a JSON value with another one at a place, if that place is there."""
    if not place:
        return value
    step, rest = place[0], place[1:]
    if isinstance(holder, dict):
        return {**holder, step: replaced(holder.get(step), rest, value)}
    if isinstance(holder, list):
        return [replaced(item, rest, value) if index == step else item for index, item in enumerate(holder)]
    return holder


PLACES = places(make_start(env={"A": "x"}, workDir="/x", timeLimit="1s", checkpoint="/x", gpusPerNode=1)["spec"])


@given(st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=3))
def test_no_shape_of_a_request_can_break_the_reading(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    start: Any = make_start(env={"A": "x"}, workDir="/x", timeLimit="1s", checkpoint="/x", gpusPerNode=1)
    for place, value in changes:
        start = replaced(start, ("spec", *place), value)
    reading = read_start(start)
    for fault in reading.faults:
        assert str(fault).isprintable()
    for _, check in FIELDS:
        for text in check(reading.request):
            assert text.isprintable()


def nested(levels: int) -> Object:
    value: Object = {}
    for _ in range(levels):
        value = {"a": value}
    return value


# What the API server takes where the CRD preserves unknown fields; Python's decoder takes a little less than 1,000.
@pytest.mark.parametrize("levels", [90, 400, 990, 50_000])
@pytest.mark.parametrize("field", ["native", "recovery", "extensions"])
def test_what_is_nested_deeply_breaks_no_reading(levels: int, field: str) -> None:
    start = make_start()
    request = start["spec"]["request"]
    spec = request["spec"]
    match field:
        case "native":
            request["native"] = nested(levels)
        case "recovery":
            spec["recovery"] = nested(levels)
        case _:
            spec["extensions"]["kubeflow/Other"] = nested(levels)
    reading = read_start(start)
    assert reading.faults == ()
    assert reading.request.spec.extensions.unknown == (("kubeflow/Other",) if field == "extensions" else ())
    # The store compares what it holds with what comes.
    assert read_start(start) == reading


@pytest.mark.parametrize("levels", [400, 50_000])
def test_what_is_nested_deeply_in_a_wrong_place_is_a_fault_like_any_other(levels: int) -> None:
    start = make_start()
    start["spec"]["request"]["spec"]["command"] = nested(levels)
    assert list(map(str, read_start(start).faults)) == ["request.spec.command must be a list, not an object"]
    backend = make_backend(gpuResource=nested(levels))
    with pytest.raises(InvalidObject, match=r"spec\.gpuResource must be a string, not an object"):
        read_backend(backend)


def test_null_is_absent_but_not_in_a_list() -> None:
    assert without_nulls({"a": None, "b": {"c": None}, "d": [None, {"e": None}], "\ud800": 1}) == {
        "b": {},
        "d": [None, {}],
        "\\ud800": 1,
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("spec", "command", 1), "spec.command[1]"),
        (("labels", "a.b/c", "x"), "labels[a.b/c].x"),
        (("a\nb",), "[a\\nb]"),
        (("x" * 61,), "[" + "x" * 60 + "… (61 characters)]"),
        ((0, "a"), "[0].a"),
    ],
)
def test_a_path_reads_like_one(path: tuple[Any, ...], text: str) -> None:
    assert dotted(path) == text
