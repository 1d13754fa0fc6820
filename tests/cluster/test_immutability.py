"""What was submitted can't be changed, field by field; what an absent field means may be written out."""

import json
import re
from typing import Any

import pytest

from controlplane.kubectl import KubectlError
from support.builders import RUNTIME, make_start

from .conftest import Team

Object = dict[str, Any]
IMAGE = {"ref": "registry.example/llama:1"}
OTHER_JOB = "01J9ZQ4V8Y3N5T7R2C6W1X0ABM"
WRITTEN_OUT: Object = {
    "generation": 0,
    "attempt": 0,
    "native": {},
    "spec": {
        "env": {},
        "workDir": "",
        "gpusPerNode": 0,
        "procsPerNode": 0,
        "timeLimit": "",
        "name": "",
        "checkpoint": "",
        "recovery": {},
        "extensions": {"kubeflow/RuntimeRef": {"kind": "ClusterTrainingRuntime"}},
    },
}
FULL: Object = {
    "native": {"requeue": False},
    "env": {"SEED": "7"},
    "workDir": "/workspace",
    "timeLimit": "1h30m",
    "name": "llama",
    "checkpoint": "/checkpoints",
    "recovery": {"most": 3},
}


def start(native: Object | None = None, **spec: Any) -> Object:
    made = make_start()
    request = made["spec"]["request"]
    del request["generation"], request["attempt"]
    request |= {} if native is None else {"native": native}
    request["spec"] |= spec
    return made


def change(team: Team, request: Object) -> None:
    """Say a merge patch of the request to the API server, which does not store it."""
    body = json.dumps({"spec": {"request": request}})
    team.kubectl("patch", "dispatchstart", "llama-s1", "--type=merge", "--dry-run=server", f"--patch={body}")


def test_what_an_absent_field_means_may_be_written_out_and_left_out_again(team: Team) -> None:
    team.apply(start())
    change(team, WRITTEN_OUT)
    for field, value in WRITTEN_OUT["spec"].items():
        change(team, {"spec": {field: value}})
    team.patch("dispatchstart", "llama-s1", {"spec": {"request": WRITTEN_OUT}})
    absent = {field: None for field in WRITTEN_OUT["spec"] if field != "extensions"}
    change(team, {"native": None, "spec": {**absent, "extensions": {"kubeflow/RuntimeRef": {"kind": None}}}})


@pytest.mark.parametrize(
    ("stored", "written", "is_equal"),
    [
        ("1h30m", "90m", True),
        ("1h30m", "1.5h", True),
        ("1h30m", "5400s", True),
        ("1s", "1000000us", True),
        ("0", "", True),
        ("0", "0s", True),
        ("0", None, True),
        ("1h30m", "91m", False),
        ("1h30m", "", False),
        ("1h30m", None, False),
        ("1ns", "1.9ns", False),
        # What the operator will refuse is as it was, too.
        ("soon", "soon", True),
        ("soon", "later", False),
        ("9999999h", "9999999h", True),
        ("9999999h", "9999998h", False),
    ],
)
def test_a_time_limit_is_compared_by_what_it_means(
    team: Team, stored: str, written: str | None, is_equal: bool
) -> None:
    team.apply(start(timeLimit=stored))
    if is_equal:
        change(team, {"spec": {"timeLimit": written}, "native": {}})
    else:
        with pytest.raises(KubectlError, match=re.escape("spec.request.spec.timeLimit")):
            change(team, {"spec": {"timeLimit": written}})


@pytest.mark.parametrize("stored", [{}, FULL])
def test_a_change_is_refused_with_the_name_of_its_field(team: Team, stored: Object) -> None:
    team.apply(start(**stored))
    top: Object = {"job": OTHER_JOB, "generation": 1, "submission": 2, "attempt": 1, "native": {"restart": 1, "b": 2}}
    spec: Object = {
        "command": ["true"],
        "env": {"MORE": "1"},
        "workDir": "/",
        "nodes": 2,
        "gpusPerNode": 1,
        "procsPerNode": 1,
        "timeLimit": "1s",
        "name": "other",
        "checkpoint": "/other",
        "recovery": {"most": 4},
        "extensions": {"dispatch/Image": {"ref": "registry.example/other"}},
    }
    changes = [(f"spec.request.{field}", {field: value}) for field, value in top.items()]
    changes += [(f"spec.request.spec.{field}", {"spec": {field: value}}) for field, value in spec.items()]
    for extension in (
        {"other/One": {}},
        {"dispatch/SharedCheckpoint": {}},
        {"dispatch/Image": {"ref": None, "image": "registry.example/llama:1"}},
        {"kubeflow/RuntimeRef": {"kind": "TrainingRuntime"}},
        {"kubeflow/RuntimeRef": {"name": None, "named": RUNTIME}},
        {"dispatch/Image": None},
    ):
        changes.append(("spec.request.spec.extensions", {"spec": {"extensions": extension}}))
    for field in stored:
        absent: Object = {field: None} if field in top else {"spec": {field: None}}
        changes.append((f"spec.request.{'' if field in top else 'spec.'}{field}", absent))
    for named, body in changes:
        with pytest.raises(KubectlError, match="can't be changed; create another DispatchStart") as refused:
            change(team, body)
        assert re.findall(r"(spec[.]\S+): Invalid value", str(refused.value)) == [named], body


def test_every_change_is_named_at_once(team: Team) -> None:
    team.apply(start())
    with pytest.raises(KubectlError) as refused:
        change(team, {"attempt": 1, "spec": {"nodes": 2, "env": {"A": "1"}}})
    for field in ("spec.request.attempt", "spec.request.spec.nodes", "spec.request.spec.env"):
        assert field in str(refused.value)
