"""Properties of what is rendered: nothing of the request is lost or changed, whatever it is."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api.enums import Gate, Retry
from dispatch_operator.render.escaping import escape_dollars
from dispatch_operator.render.prologue import prologue
from dispatch_operator.render.terms import read_terms
from support.builders import NAME, RUNTIME, make_backend, make_runtime, make_start
from support.container_expansion import expand
from support.records import start_of
from support.rendering import (
    problems,
    read_backend,
    render_copy,
    render_train_job,
    target_name,
    terms_of,
)

# Characters that a request may hold, with those that Kubernetes makes something of far more often than by chance.
allowed = st.one_of(
    st.sampled_from("$()A é\u4e2d😀\n"),
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufffe\uffff").filter(
        lambda character: not "\x7f" <= character <= "\x9f",
    ),
)
texts = st.text(allowed, max_size=30)
keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda key: not key.startswith(("PET_", "DISP"))
)
programs = texts.filter(lambda item: item and not item.startswith("-"))
commands = st.tuples(programs, st.lists(texts, max_size=6)).map(lambda pair: [pair[0], *pair[1]])
free_keys = keys.map(lambda key: f"X{key}")
requests = st.fixed_dictionaries(
    {
        "generation": st.integers(0, 18_000_000),
        "submission": st.integers(1, 999_999),
        "attempt": st.integers(0, 10**9),
        "command": commands,
        "env": st.dictionaries(free_keys, texts, max_size=6),
        "workDir": texts,
        "nodes": st.integers(1, 100),
        "gpusPerNode": st.integers(0, 16),
        "procsPerNode": st.integers(0, 16),
        "timeLimit": st.sampled_from(["", "0", "90s", "1h", "1ns"]),
    },
)


def rendered(start: dict[str, Any], backend: dict[str, Any] | None = None) -> dict[str, Any]:
    return render_train_job(start, terms_of(read_backend(backend or make_backend())), make_runtime()["spec"])


@given(texts, st.booleans())
def test_a_text_arrives_byte_for_byte_through_kubernetes_expansion(text: str, garbles: bool) -> None:
    assert expand(escape_dollars(text), {"A": "wrong", "": "wrong"}, garbles=garbles) == text.encode()


@given(requests, st.booleans())
def test_nothing_of_a_request_is_lost_reordered_or_changed(request: dict[str, Any], garbles: bool) -> None:
    start = make_start(**copy.deepcopy(request))
    assert problems(start, read_backend(make_backend()), make_runtime()) == ()
    trainer = rendered(start)["spec"]["trainer"]
    known = {entry["name"]: entry.get("value", "") for entry in trainer["env"]}
    command = [expand(item, known, garbles=garbles) for item in trainer["command"]]
    assert command == [
        b"/bin/sh",
        b"-c",
        prologue().encode(),
        b"dispatch-prologue",
        *(i.encode() for i in request["command"]),
    ]
    env = [(entry["name"], expand(entry.get("value", ""), {"A": "x"}, garbles=garbles)) for entry in trainer["env"]]
    assert env[: len(request["env"])] == sorted((key, value.encode()) for key, value in request["env"].items())
    assert [name for name, _ in env[len(request["env"]) :]] == [
        "DISPATCH_JOB_ID",
        "DISPATCH_SUBMISSION",
        "DISPATCH_ATTEMPT",
        "DISPATCH_K8S_EPOCH_PREFIX",
        "DISPATCH_K8S_RESTART",
        "DISPATCH_K8S_POD_UID",
        *(["DISPATCH_K8S_WORKDIR"] if request["workDir"] else []),
    ]
    assert dict(env).get("DISPATCH_K8S_WORKDIR", b"") == request["workDir"].encode()
    assert int(dict(env)["DISPATCH_K8S_EPOCH_PREFIX"]) == request["generation"] * 10**6 + request["submission"]
    assert trainer["numNodes"] == request["nodes"]
    assert trainer.get("numProcPerNode", 0) == request["procsPerNode"]
    assert (
        trainer.get("resourcesPerNode", {"limits": {"nvidia.com/gpu": 0}})["limits"]["nvidia.com/gpu"]
        == request["gpusPerNode"]
    )


@given(requests)
def test_rendering_is_deterministic_and_changes_nothing(request: dict[str, Any]) -> None:
    start, runtime = make_start(**request), make_runtime()
    before = json.dumps([start, runtime])
    backend = read_backend(make_backend())
    one = json.dumps([render_copy(start, runtime), render_train_job(start, terms_of(backend), runtime["spec"])])
    shuffled = copy.deepcopy(start)
    spec = shuffled["spec"]["request"]["spec"]
    spec["env"] = dict(reversed(spec["env"].items()))
    other = json.dumps([render_copy(shuffled, runtime), render_train_job(shuffled, terms_of(backend), runtime["spec"])])
    assert one == other
    assert json.dumps([start, runtime]) == before


@given(requests, st.sampled_from([None, {"queue": "team-a", "admissionCheck": "dispatch-start"}]))
def test_no_explicit_zero_value_is_written(request: dict[str, Any], kueue: dict[str, str] | None) -> None:
    """The command's items are the exception: an empty argument is one."""

    def zeroes(value: Any, path: str) -> list[str]:
        if isinstance(value, dict):
            return [found for key, item in value.items() for found in zeroes(item, f"{path}.{key}")]
        if isinstance(value, list) and not path.endswith(".command"):
            return [found for item in value for found in zeroes(item, path)]
        return [path] if value in (False, 0, "", None) or value in ({}, []) else []

    backend = make_backend(**({"kueue": kueue} if kueue else {}))
    assert zeroes(rendered(make_start(**request), backend), "") == []


def test_the_copy_is_the_sources_spec_verbatim() -> None:
    runtime = make_runtime()
    runtime["metadata"] |= {"uid": "u", "generation": 4, "labels": {"argocd": "x"}, "annotations": {"a": "b"}}
    runtime["spec"]["unknown"] = {"empty": [], "null": None, "nested": [{"a": ""}]}
    start = make_start()
    start["metadata"] |= {"uid": "s", "labels": {"argocd": "x"}}
    made = render_copy(start, runtime)
    assert made["spec"] == runtime["spec"]
    assert made["metadata"]["annotations"]["dispatch.phpboyscout.uk/source"] == f"ClusterTrainingRuntime/{RUNTIME} u 4"
    assert "argocd" not in json.dumps(made["metadata"])


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({"uid": "u"}, f"ClusterTrainingRuntime/{RUNTIME} u"),
        ({"generation": 2}, f"ClusterTrainingRuntime/{RUNTIME} 2"),
        ({}, f"ClusterTrainingRuntime/{RUNTIME}"),
    ],
)
def test_the_source_leaves_out_what_a_file_lacks(metadata: dict[str, Any], source: str) -> None:
    runtime = make_runtime()
    runtime["metadata"] |= metadata
    assert render_copy(make_start(), runtime)["metadata"]["annotations"]["dispatch.phpboyscout.uk/source"] == source


@pytest.mark.parametrize(
    ("labels", "policy", "want"),
    [
        ({"trainer.kubeflow.org/framework": "deepspeed"}, {"torch": {}}, "deepspeed"),
        ({}, {"numNodes": 1, "torch": {}}, "torch"),
        ({}, {"jax": {}, "numNodes": 1}, "jax"),
        ({}, {"mpi": None, "torch": {}}, "torch"),
        ({}, {"numNodes": 1}, "plain"),
        (None, None, "plain"),
    ],
)
def test_the_copy_bears_the_framework_by_which_the_kubeflow_sdk_lists_it(labels: Any, policy: Any, want: str) -> None:
    runtime = make_runtime()
    runtime["metadata"]["labels"] = labels
    runtime["spec"]["mlPolicy"] = policy
    assert render_copy(make_start(), runtime)["metadata"]["labels"]["trainer.kubeflow.org/framework"] == want


@pytest.mark.parametrize(
    ("metadata", "spec", "want"),
    [
        ({"name": "default"}, {}, '{"gpuResource":"nvidia.com/gpu","name":"default"}'),
        (
            {"name": "b", "uid": "u", "generation": 3},
            {"gpuResource": "a.b/c", "kueue": {"queue": "q", "admissionCheck": "c", "priorityClass": "p"}},
            '{"admissionCheck":"c","generation":3,"gpuResource":"a.b/c","name":"b","priorityClass":"p","queue":"q","uid":"u"}',
        ),
    ],
)
def test_the_train_job_says_what_it_took_from_its_backend(metadata: Any, spec: Any, want: str) -> None:
    backend = make_backend(**spec)
    backend["metadata"] = metadata
    made = rendered(make_start(), backend)["metadata"]["annotations"]["dispatch.phpboyscout.uk/backend"]
    assert made == want
    labels = rendered(make_start(), backend)["metadata"]["labels"]
    assert labels.get("kueue.x-k8s.io/priority-class") == spec.get("kueue", {}).get("priorityClass")
    assert read_terms(made) == terms_of(read_backend(backend))


def test_a_file_without_namespace_renders_none() -> None:
    start = make_start()
    del start["metadata"]["namespace"]
    assert "namespace" not in rendered(start)["metadata"]
    assert "namespace" not in render_copy(start, make_runtime())["metadata"]


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ({}, NAME),
        ({"submission": 999_999}, NAME.removesuffix("1") + "999999"),
        ({"submission": 0}, ""),
        ({"submission": "1"}, ""),
        ({"job": "x"}, ""),
        ({"job": None}, ""),
        ({"command": [], "nodes": 0}, NAME),
    ],
)
def test_the_name_is_known_whenever_job_and_submission_are_right(request_: dict[str, Any], name: str) -> None:
    assert target_name(make_start(**request_)) == name


@pytest.mark.parametrize("start", [{}, {"spec": None}, {"spec": 5}, {"spec": {"request": []}}])
def test_an_object_without_a_request_has_no_name(start: dict[str, Any]) -> None:
    assert target_name(start) == ""


@pytest.mark.parametrize(
    ("spec", "frame"),
    [
        ({}, ("default", Gate.CLOSED, Retry.ON_CHANGE)),
        ({"backend": "b", "gate": "Open", "retry": "Never"}, ("b", Gate.OPEN, Retry.NEVER)),
        ({"gate": "Held", "request": 5}, ("default", Gate.HELD, Retry.ON_CHANGE)),
        ({"backend": 5, "gate": "open", "retry": True}, ("", Gate.CLOSED, Retry.ON_CHANGE)),
        ({"backend": ""}, ("", Gate.CLOSED, Retry.ON_CHANGE)),
        ({"backend": "."}, ("", Gate.CLOSED, Retry.ON_CHANGE)),
        ({"backend": "a/b"}, ("", Gate.CLOSED, Retry.ON_CHANGE)),
        ({"backend": "..."}, ("...", Gate.CLOSED, Retry.ON_CHANGE)),
        ({"backend": None, "gate": None}, ("default", Gate.CLOSED, Retry.ON_CHANGE)),
    ],
)
def test_the_frame_is_read_from_whatever_is_there(spec: dict[str, Any], frame: tuple[str, Gate, Retry]) -> None:
    read = start_of({"spec": spec})
    assert (read.backend, read.gate, read.retry) == frame
