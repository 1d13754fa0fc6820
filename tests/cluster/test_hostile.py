"""Hostile objects on the real API server: what it stores of them gets its verdict, and no other object waits for it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.builders import JOB, make_start
from support.operator import conditions

from .conftest import Team

Object = dict[str, Any]


def nested(levels: int) -> Object:
    value: Object = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def job_id(number: int) -> str:
    """Return a different ULID for every number."""
    return JOB[:-3] + f"{number:03d}"


def unknown_keys(number: int) -> Object:
    extensions = make_start()["spec"]["request"]["spec"]["extensions"]
    extensions["dispatch/Image"].update({f"key-{key}": 1 for key in range(number)})
    return {"extensions": extensions}


HOSTILE: list[tuple[str, Object, tuple[str, str]]] = [
    ("eight thousand unknown keys", unknown_keys(8_000), ("False", "ErrInvalid")),
    ("nested hundreds of levels deep", {"recovery": nested(900)}, ("True", "Started")),
    ("nested thousands of levels deep", {"recovery": nested(9_000)}, ("True", "Started")),
    ("names of variables by the thousand", {"env": {f"{key} no": "" for key in range(9_000)}}, ("False", "ErrInvalid")),
    (
        "122 large values, each with a problem",
        {"env": {f"A{key}": "\x7f" + "x" * 10_000 for key in range(122)}},
        ("False", "ErrInvalid"),
    ),
    ("a mebibyte of commas", {"command": ["," * 100_000] * 11}, ("True", "Started")),
]


@pytest.mark.usefixtures("operator")
def test_each_gets_its_verdict_and_no_other_waits(team: Team) -> None:
    path = f"/apis/dispatch.phpboyscout.uk/v1alpha1/namespaces/{team.namespace}/dispatchstarts"
    for number, (_, fields, _) in enumerate(HOSTILE):
        start = make_start(f"hostile-{number}", job=job_id(number), **fields)
        start["metadata"]["namespace"] = team.namespace
        with deep_recursion():
            body = json.dumps(start)
        # kubectl itself does not read it.
        team.cluster.kubectl("create", "--raw", path, "--filename=-", input=body)
    team.apply(make_start("good", job=job_id(999)))
    team.until_phase("good", "Gated")
    for number, (what, _, verdict) in enumerate(HOSTILE):
        with deep_recursion():
            found = team.until_phase(f"hostile-{number}", "Gated", "Refused", seconds=60)
        assert conditions(found)["Started"] == verdict, what


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Let this process, too, read and write what is nested more deeply than Python's recursion goes."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
