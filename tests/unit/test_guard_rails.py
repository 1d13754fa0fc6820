"""What a backend's guard rails refuse, and what they let through."""

from typing import Any

import pytest

from dispatch_operator.api.models import read_backend, read_start
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.start import start_problems
from support.builders import make_backend, make_runtime, make_start

Object = dict[str, Any]
IMAGES = ["registry.example/*", "*/team-a/train:v?"]


def problems(rails: Object, **request: Any) -> list[Problem]:
    start, backend = read_start(make_start(**request)), read_backend(make_backend(**rails))
    return list(start_problems(start, backend, make_runtime()))


def with_image(ref: object) -> Object:
    return {"extensions": {"dispatch/Image": {"ref": ref}, "kubeflow/RuntimeRef": {"name": "torch-dispatch"}}}


@pytest.mark.parametrize(
    ("rails", "request_", "name", "words"),
    [
        ({"images": IMAGES}, with_image("docker.io/x"), "dispatch/Image", ['"docker.io/x"', '"registry.example/*"']),
        ({"images": IMAGES}, with_image("registry.example"), "dispatch/Image", []),
        ({"images": IMAGES}, with_image("https://registry.example/x"), "dispatch/Image", []),
        ({"images": IMAGES}, with_image("a/team-a/train:v1"), "dispatch/Image", []),
        ({"images": ["a.b"]}, with_image("aXb"), "dispatch/Image", []),
        ({"images": ["x" * 400] * 9}, with_image("y"), "dispatch/Image", ["… (", " characters)"]),
        ({"maxNodes": 2}, {"nodes": 3}, "nodes", ["3 are more", "2"]),
        ({"maxGpus": 15}, {"nodes": 2, "gpusPerNode": 8}, "gpusPerNode", ["16 GPUs", "15"]),
        ({"maxGpus": 0}, {"gpusPerNode": 1}, "gpusPerNode", []),
        ({"maxTimeLimit": "1h30m"}, {"timeLimit": "90m0.000000001s"}, "timeLimit", ["1h30m"]),
        ({"maxTimeLimit": "1h"}, {}, "timeLimit", ["requires one, of at most 1h"]),
        ({"maxTimeLimit": "1h"}, {"timeLimit": "0s"}, "timeLimit", ["requires one, of at most 1h"]),
        ({"timeLimitRequired": True}, {"timeLimit": ""}, "timeLimit", ["requires one"]),
    ],
)
def test_what_is_not_allowed_names_its_field_and_the_limit(
    rails: Object, request_: Object, name: str, words: list[str]
) -> None:
    (problem,) = problems(rails, **request_)
    assert (problem.error_class, problem.name) == ("ErrUnsupported", name)
    assert all(word in problem.text for word in words), problem.text


@pytest.mark.parametrize(
    ("rails", "request_"),
    [
        ({}, {"nodes": 100_000, "gpusPerNode": 8}),
        ({"images": IMAGES}, with_image("registry.example/")),
        ({"images": IMAGES}, with_image("registry.example/a/b@sha256:0")),
        ({"images": IMAGES}, with_image("any/team-a/train:v?")),
        ({"images": ["*"]}, with_image("x")),
        ({"images": ["a*b*c"]}, with_image("abc")),
        ({"maxNodes": 2}, {"nodes": 2}),
        ({"maxGpus": 16}, {"nodes": 2, "gpusPerNode": 8}),
        ({"maxGpus": 0}, {"nodes": 2}),
        ({"maxTimeLimit": "1h30m", "timeLimitRequired": True}, {"timeLimit": "90m"}),
        ({"timeLimitRequired": True}, {"timeLimit": "1ns"}),
        ({"timeLimitRequired": False}, {}),
    ],
)
def test_what_is_allowed(rails: Object, request_: Object) -> None:
    assert problems(rails, **request_) == []


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ({"nodes": 0, "gpusPerNode": -1}, {"nodes", "gpusPerNode"}),
        ({"nodes": "many", "gpusPerNode": 8}, {"nodes"}),
        ({"gpusPerNode": "many"}, {"gpusPerNode"}),
        ({"timeLimit": "soon"}, {"timeLimit"}),
        ({"timeLimit": 5}, {"timeLimit"}),
        ({"extensions": {"kubeflow/RuntimeRef": {"name": "torch-dispatch"}}}, {"dispatch/Image"}),
        (with_image(5), {"dispatch/Image"}),
    ],
)
def test_what_is_wrong_by_itself_is_told_once(request_: Object, names: set[str]) -> None:
    rails = {"images": ["a"], "maxNodes": 1, "maxGpus": 0, "maxTimeLimit": "1s"}
    found = problems(rails, **{"timeLimit": "1s", **with_image("a"), **request_})
    assert {problem.name for problem in found} == names
    assert all(problem.error_class == "ErrInvalid" for problem in found)


def test_all_that_is_not_allowed_is_told_at_once() -> None:
    rails = {"images": ["a"], "maxNodes": 1, "maxGpus": 0, "timeLimitRequired": True}
    found = problems(rails, nodes=2, gpusPerNode=1, procsPerNode=-1)
    assert [problem.name for problem in found] == [
        "procsPerNode",
        "dispatch/Image",
        "nodes",
        "gpusPerNode",
        "timeLimit",
    ]
