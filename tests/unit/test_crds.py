"""The CRDs: current, structural, and saying what the contract says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dispatch_operator.api import duration
from dispatch_operator.api.crds import crds, file_name
from dispatch_operator.api.enums import BackendGate, Gate, Phase, Retry
from generate_crds import write
from support.builders import make_backend
from support.records import backend_of

FILES = Path(__file__).parents[2] / "crds"
START, BACKEND = crds()


def schema(crd: dict[str, Any]) -> Any:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def at(crd: dict[str, Any], path: str) -> Any:
    found = schema(crd)
    for step in path.split("."):
        found = found["properties"][step]
    return found


def fields(part: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, part
    for name, inner in part.get("properties", {}).items():
        yield from fields(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in part:
            yield from fields(part[key], f"{path}[]")


def test_the_files_are_current(tmp_path: Path) -> None:
    write(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in FILES.iterdir()}, "run: make crds"
    for crd in crds():
        assert yaml.safe_load(written[file_name(crd)]) == crd


@pytest.mark.parametrize("crd", [START, BACKEND])
def test_every_field_is_described_and_structural(crd: dict[str, Any]) -> None:
    for path, part in fields(schema(crd)):
        assert not {"$ref", "anyOf", "oneOf", "title", "examples", "$defs"} & part.keys(), path
        assert "type" in part or part.get("x-kubernetes-preserve-unknown-fields") is True, path
        assert not ("properties" in part and "additionalProperties" in part), path
        if path.endswith("[]") or path == ".metadata":
            continue
        assert part["description"].endswith((".", "v1alpha1", "DispatchStart", "DispatchBackend")), path


def test_what_is_required_is_the_contracts() -> None:
    required = {
        path: part["required"] for path, part in fields(schema(START)["properties"]["spec"]) if "required" in part
    }
    assert required == {"": ["request"], ".request": ["job", "submission", "spec"]}
    assert at(BACKEND, "spec")["required"] == ["runtimes", "probeRuntime"]


def test_defaults_are_the_contracts() -> None:
    defaults = {path: part["default"] for path, part in fields(schema(START)) if "default" in part}
    assert defaults == {
        ".spec.backend": "default",
        ".spec.gate": "Closed",
        ".spec.retry": "OnChange",
        ".spec.request.generation": 0,
        ".spec.request.attempt": 0,
        ".spec.request.spec.extensions.kubeflow/RuntimeRef.kind": "ClusterTrainingRuntime",
        ".spec.request.spec.gpusPerNode": 0,
        ".spec.request.spec.procsPerNode": 0,
        ".status": {"observedGeneration": -1},
    }
    defaults = {path: part["default"] for path, part in fields(schema(BACKEND)) if "default" in part}
    assert defaults == {
        ".spec.state": "Open",
        ".spec.runtimes[].kind": "ClusterTrainingRuntime",
        ".spec.gpuResource": "nvidia.com/gpu",
        ".spec.timeLimitRequired": False,
        ".spec.probeRuntime.kind": "ClusterTrainingRuntime",
        ".spec.timeouts": {},
        ".spec.timeouts.call": "30s",
        ".spec.timeouts.workload": "60s",
        ".spec.timeouts.hold": "3s",
        ".status": {"observedGeneration": -1},
    }


def test_words_are_the_vocabularys() -> None:
    assert at(START, "spec.gate")["enum"] == list(Gate)
    assert at(START, "spec.retry")["enum"] == list(Retry)
    assert at(START, "status.phase")["enum"] == list(Phase)
    assert at(BACKEND, "status.gates")["items"]["properties"]["name"]["enum"] == list(BackendGate)


def test_verdicts_are_left_to_the_operator() -> None:
    """No limit of a request field is in the CRD; the limits there are keep the API server's work bounded."""
    limits = {
        "minimum",
        "maximum",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "enum",
        "maxItems",
        "maxProperties",
    }
    found = {
        path: sorted(limits & part.keys()) for path, part in fields(at(START, "spec.request")) if limits & part.keys()
    }
    assert found == {
        ".spec.command": ["maxItems"],
        ".spec.env": ["maxProperties"],
        ".spec.timeLimit": ["maxLength"],
        ".spec.extensions": ["maxProperties"],
    }
    assert at(START, "spec.request.spec.command")["maxItems"] == 100_000


def test_rules_say_what_a_user_can_do() -> None:
    rules = {
        path: [(rule["rule"], rule["message"]) for rule in part["x-kubernetes-validations"]]
        for path, part in fields(schema(START))
        if "x-kubernetes-validations" in part
    }
    assert all("can't" in message for found in rules.values() for _, message in found)
    del rules[".spec.request"], rules[".spec.request.spec"]
    assert {path: [rule for rule, _ in found] for path, found in rules.items()} == {
        ".spec.backend": ["self == oldSelf"],
        ".spec.gate": [
            "self != 'Closed' || oldSelf == 'Closed' || oldSelf == 'Cancelled'",
            "oldSelf != 'Cancelled' || self == 'Cancelled'",
        ],
    }


@pytest.mark.parametrize("path", ["spec.request", "spec.request.spec"])
def test_each_field_of_a_request_has_a_rule_that_names_it(path: str) -> None:
    part = at(START, path)
    named = [rule["fieldPath"] for rule in part["x-kubernetes-validations"]]
    assert sorted(named) == sorted(f".{name}" for name in part["properties"] if name != "spec")
    for rule in part["x-kubernetes-validations"]:
        field = rule["fieldPath"].removeprefix(".")
        assert set(re.findall(r"(?:self|oldSelf)[.](\w+)", rule["rule"])) == {field}
        # What has a default, or is required, is always there; CEL fails at any other that is not asked for.
        always = "default" in part["properties"][field] or field in part.get("required", ())
        assert always != (f"has(self.{field})" in rule["rule"] and f"has(oldSelf.{field})" in rule["rule"])


def test_a_timeouts_rule_is_the_models() -> None:
    rule, bound = at(BACKEND, "spec.timeouts.call")["x-kubernetes-validations"]
    assert bound["message"] == "must be at most 1h"
    pattern = rule["rule"].removeprefix("self.matches('").removesuffix("')")
    assert pattern == f"^({duration.POSITIVE})$"
    assert "'" not in pattern
    assert "\\" not in pattern
    assert re.fullmatch(pattern, "1h0s.5ms")


@pytest.mark.parametrize(("text", "fits"), [("168h", True), ("1ns", True), ("0s", False), ("0", False), ("-1h", False)])
def test_how_long_an_ended_job_is_kept_is_above_zero(text: str, fits: bool) -> None:
    """Zero would read as "at once" and as "without a limit"."""
    (rule,) = at(BACKEND, "spec.keepEnded")["x-kubernetes-validations"]
    assert "leave it out to keep ended jobs for ever" in rule["message"]
    assert bool(re.fullmatch(rule["rule"].removeprefix("self.matches('").removesuffix("')"), text)) == fits
    assert (backend_of(make_backend(keepEnded=text)).keep_ended is not None) == fits


@pytest.mark.parametrize(
    ("text", "excessive"),
    [
        *(
            (text, False)
            for text in ("1h", "3600000000000ns", "3600000000us", "59.99999999999999m", "0.00000000000001h")
        ),
        *((text, False) for text in ("9999h", "999999m", "1m1000000ms", "00000000000000001s", "3600000.00000ms")),
        *((text, True) for text in ("100000h", "1ns99999.5h", "000100000h", "1000000m", "1000000.5m1s", "999999999s")),
        *((text, True) for text in ("100000000000ms", f"{'9' * 60}ns", "10000000000000ns", "5s123456789012345us")),
    ],
)
def test_what_cel_can_not_add_up_is_refused_before_it_tries(text: str, excessive: bool) -> None:
    """CEL's durations overflow at 292 years, and what overflows is refused with CEL's words instead of ours."""
    assert bool(re.search(duration.EXCESSIVE, text)) == excessive
    assert not excessive or duration.seconds(text) > 3600
    assert excessive or duration.seconds(f"{text}{text}{text}") < 9_200_000_000


def test_a_gpu_resource_is_refused_with_words_too() -> None:
    """The API server shows the pattern of a schema, and the message of a rule."""
    part = at(BACKEND, "spec.gpuResource")
    (rule,) = part["x-kubernetes-validations"]
    assert re.fullmatch(part["pattern"], "nvidia.com/gpu")
    assert not re.fullmatch(part["pattern"], "cpu")
    assert "a domain, a slash and a name, such as nvidia.com/gpu" in rule["message"]
    assert rule["rule"] == "self.contains('/') && !self.startsWith('requests.') && !self.contains('kubernetes.io/')"


@pytest.mark.parametrize(("name", "fits"), [("team-a", True), ("a.b-c", True), ("Bad Name!", False), ("a.", False)])
def test_the_rule_of_a_name_is_the_models(name: str, fits: bool) -> None:
    for field in ("queue", "admissionCheck"):
        (rule,) = at(BACKEND, f"spec.kueue.{field}")["x-kubernetes-validations"]
        pattern = rule["rule"].removeprefix("self.matches('").removesuffix("')")
        assert bool(re.fullmatch(pattern, name)) == fits


def test_the_name_of_a_backend_is_not_empty() -> None:
    assert at(START, "spec.backend")["minLength"] == 1


def test_columns_and_names_are_the_contracts() -> None:
    columns = [[column["name"] for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]] for crd in crds()]
    assert columns == [
        ["Phase", "Job", "Submission", "TrainJob", "Reason", "Age"],
        ["State", "Queue", "Ready", "Reason", "Age"],
    ]
    assert [crd["spec"]["names"]["shortNames"] for crd in crds()] == [["dstart"], ["dbackend"]]
    assert [crd["metadata"]["name"].split(".")[0] for crd in crds()] == ["dispatchstarts", "dispatchbackends"]
    assert all(crd["spec"]["versions"][0]["subresources"] == {"status": {}} for crd in crds())
