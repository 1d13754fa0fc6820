"""What a request is refused for, at, below and above each limit, and all of it at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.checks.problems import class_of
from dispatch_operator.checks.request import FIELDS, SHELL_ENV
from support.builders import RUNTIME, make_backend, make_runtime, make_start
from support.rendering import problems, read_backend

Request = dict[str, Any]
IMAGE = {"ref": "registry.example/llama:1"}
BIG = 131_071


def start_of(request: Request) -> Request:
    """Return a DispatchStart with fields of its request, or of the JobSpec in it, replaced."""
    start = make_start()
    top = start["spec"]["request"]
    for key, value in request.items():
        (top if key in ("job", "generation", "submission", "attempt", "native") else top["spec"])[key] = value
    return start


def refused(request: Request) -> list[tuple[str, str]]:
    """Return name and text of every problem of a request on a runtime that is fit."""
    found = problems(start_of(request), read_backend(make_backend()), make_runtime())
    assert all(len(problem.text) < 600 and str(problem).isprintable() for problem in found)
    return [(problem.name, problem.text) for problem in found]


def names(request: Request) -> set[str]:
    return {name for name, _ in refused(request)}


def with_extensions(**more: Any) -> Request:
    known = {"dispatch/Image": IMAGE, "kubeflow/RuntimeRef": {"name": RUNTIME}}
    return {"extensions": known | {key.replace("__", "/"): value for key, value in more.items()}}


def env_of(count: int) -> dict[str, str]:
    return {f"K{index:03}": "v" for index in range(count)}


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"job": "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"},
        {"job": "00000000000000000000000000"},
        {"generation": 0},
        {"generation": 18_000_000},
        {"submission": 1},
        {"submission": 999_999},
        {"attempt": 0},
        {"attempt": 10**18},
        {"command": ["x"] * 124},
        {"command": ["x", ""]},
        {"command": ["x", "-x"]},
        {"command": ["x" * BIG]},
        {"command": ["é" * (BIG // 2)]},
        {"command": ["\x01\x7e\xa0\ufffd\U0001fffe\u2028\t\n\x1b"]},
        {"env": {}},
        {"env": env_of(122)},
        {"env": env_of(122), "workDir": ""},
        {"env": env_of(121), "workDir": "/x"},
        {"env": {"__": "", "a1": "\n", "PATH": "", "HOME": "", "CDPATH": "", "ENV": "", "BASH_ENV": ""}},
        {"env": {"A": "x" * (BIG - 2)}},
        {"env": {"JAX_PROCESS_ID": "1", "DMLC_TASK_ID": "2", "PET_OTHER": "3", "Dispatch_x": "", "DISPATCH": ""}},
        {"workDir": "x" * 4096},
        {"workDir": "a b\n*"},
        {"nodes": 1},
        {"nodes": 100_000},
        {"gpusPerNode": 2_147_483_647},
        {"procsPerNode": 2_147_483_647},
        {"timeLimit": ""},
        {"timeLimit": "0"},
        {"timeLimit": "-0s"},
        {"timeLimit": "9223372036s"},
        {"checkpoint": ""},
        {"checkpoint": "/"},
        {"checkpoint": "s3://bucket"},
        {"checkpoint": "s3://bucket/run"},
        {"name": "", "recovery": {"any": [None]}, "native": {"requeue": True}},
        {"native": 5, "recovery": "free-form"},
        {"unknown": 5},
        {"env": None, "workDir": None, "timeLimit": None, "checkpoint": None, "native": None, "name": None},
        with_extensions(dispatch__SharedCheckpoint={}),
        with_extensions(dispatch__SharedCheckpoint={"any": 1}),
        with_extensions(dispatch__SharedCheckpoint=None, slurm__Partition=None),
        with_extensions(dispatch__Image={"ref": "x" * 500}),
        with_extensions(dispatch__Image={"ref": "é@:/.\u200b"}),
        with_extensions(kubeflow__RuntimeRef={"name": RUNTIME, "kind": None}),
        with_extensions(kubeflow__RuntimeRef={"name": RUNTIME, "kind": "ClusterTrainingRuntime"}),
    ],
)
def test_takes(request_: Request) -> None:
    assert refused(request_) == []


REFUSED: list[tuple[Request, str, str]] = [
    ({"job": ""}, "job", "is not a ULID"),
    ({"job": "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0AB"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABK0"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABk"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABI"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABL"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABO"}, "job", "is not a ULID"),
    ({"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABK\n"}, "job", "is not a ULID"),
    ({"job": None}, "job", "is required"),
    ({"job": 5}, "job", "must be a string, not 5"),
    ({"generation": -1}, "generation", "must be 0 to 18,000,000, not -1"),
    ({"generation": 18_000_001}, "generation", "not 18000001"),
    ({"generation": True}, "generation", "must be an integer, not true"),
    ({"generation": 1.0}, "generation", "must be an integer, not 1.0"),
    ({"generation": 10**5000}, "generation", "a number of thousands of digits"),
    ({"submission": 0}, "submission", "must be 1 to 999,999, not 0"),
    ({"submission": 1_000_000}, "submission", "not 1000000"),
    ({"submission": None}, "submission", "is required"),
    ({"attempt": -1}, "attempt", "must be 0 or more, not -1"),
    ({"attempt": "1"}, "attempt", 'must be an integer, not "1"'),
    ({"command": []}, "command", "must have at least one item"),
    ({"command": None}, "command", "must have at least one item"),
    ({"command": [""]}, "command", "its first item must be a program"),
    ({"command": ["-x"]}, "command", 'not "-x"'),
    ({"command": ["x"] * 125}, "command", "has 125 items, and at most 124 are possible"),
    ({"command": ["x", "y" * (BIG + 1)]}, "command", "item 1 has 131,072 bytes"),
    ({"command": ["é" * (BIG // 2 + 1)]}, "command", "item 0 has 131,072 bytes"),
    ({"command": ["x", "a\x00"]}, "command", "item 1 has the character U+0000 at 1"),
    ({"command": ["\x7f"]}, "command", "U+007F"),
    ({"command": ["\x85"]}, "command", "U+0085"),
    ({"command": ["\x9f"]}, "command", "U+009F"),
    ({"command": ["\ufffe"]}, "command", "U+FFFE"),
    ({"command": ["\uffff"]}, "command", "U+FFFF"),
    ({"command": ["\ud800"]}, "command", "U+D800"),
    ({"command": ["\udfff"]}, "command", "U+DFFF"),
    ({"command": "python"}, "command", 'must be a list, not "python"'),
    ({"command": {"0": "x"}}, "command", "must be a list, not an object"),
    ({"command": ["x", None]}, "command", "item 1 must be a string, not null"),
    ({"env": {"": "x"}}, "env", 'the name "" is not a C identifier'),
    ({"env": {"A=B": "x"}}, "env", "is not a C identifier"),
    ({"env": {"1A": "x"}}, "env", "is not a C identifier"),
    ({"env": {"A-B": "x"}}, "env", "is not a C identifier"),
    ({"env": {"É": "x"}}, "env", "is not a C identifier"),
    ({"env": {"A\n": "x"}}, "env", 'the name "A\\n" is not a C identifier'),
    ({"env": {"\ud800": "x"}}, "env", "is not a C identifier"),
    ({"env": {"DISPATCH_": "x"}}, "env", "begins with DISPATCH_"),
    ({"env": {"A": "x" * (BIG - 1)}}, "env", "131,072 bytes"),
    ({"env": {"A": "\x00"}}, "env", 'the value of "A" has the character U+0000'),
    ({"env": {"A": "\udc00"}}, "env", "U+DC00"),
    ({"env": env_of(123)}, "env", "has 123 entries, and at most 122 are possible without workDir"),
    ({"env": env_of(122), "workDir": "/x"}, "env", "at most 121 are possible with workDir"),
    ({"env": {"PET_NNODES": "1"}}, "env", "is one that Trainer sets for torch"),
    ({"env": {"A": 1}}, "env", "A must be a string, not 1"),
    ({"env": {"A": True}}, "env", "A must be a string, not true"),
    ({"env": ["A=1"]}, "env", "must be an object, not a list"),
    ({"workDir": "x" * 4097}, "workDir", "has 4,097 bytes"),
    ({"workDir": "é" * 2049}, "workDir", "has 4,098 bytes"),
    ({"workDir": "/\x80"}, "workDir", "the path has the character U+0080 at 1"),
    ({"workDir": 5}, "workDir", "must be a string"),
    ({"nodes": 0}, "nodes", "must be 1 to 100,000, not 0"),
    ({"nodes": None}, "nodes", "must be 1 to 100,000, not 0"),
    ({"nodes": 100_001}, "nodes", "not 100001"),
    ({"nodes": 1.0}, "nodes", "must be an integer"),
    ({"gpusPerNode": -1}, "gpusPerNode", "not -1"),
    ({"gpusPerNode": 2_147_483_648}, "gpusPerNode", "not 2147483648"),
    ({"procsPerNode": -1}, "procsPerNode", "not -1"),
    ({"procsPerNode": 2_147_483_648}, "procsPerNode", "not 2147483648"),
    ({"timeLimit": "-1ns"}, "timeLimit", "is negative"),
    ({"timeLimit": "1d"}, "timeLimit", "is not a duration such as"),
    ({"timeLimit": "\u0661s"}, "timeLimit", "is not a duration such as"),
    ({"timeLimit": "9223372036.000000001s"}, "timeLimit", "is longer than 9,223,372,036 seconds"),
    ({"timeLimit": "9" * 10_000 + "h"}, "timeLimit", "is longer than"),
    ({"timeLimit": 90}, "timeLimit", "must be a string, not 90"),
    ({"checkpoint": "relative"}, "checkpoint", "is neither an absolute path nor an s3:// URL with a bucket"),
    ({"checkpoint": "s3://"}, "checkpoint", "neither"),
    ({"checkpoint": "s3:///key"}, "checkpoint", "neither"),
    ({"checkpoint": "s3:/bucket"}, "checkpoint", "neither"),
    ({"checkpoint": "gs://bucket"}, "checkpoint", "neither"),
    ({"checkpoint": "s3://?x"}, "checkpoint", "neither"),
    ({"name": 5}, "name", "must be a string"),
    (with_extensions(dispatch__Image=None), "dispatch/Image", "this extension is required"),
    (with_extensions(dispatch__Image={}), "dispatch/Image", "ref must name the image"),
    (with_extensions(dispatch__Image={"ref": ""}), "dispatch/Image", "ref must name the image"),
    (with_extensions(dispatch__Image={"ref": "a b"}), "dispatch/Image", "U+0020"),
    (with_extensions(dispatch__Image={"ref": "a\u3000"}), "dispatch/Image", "U+3000"),
    (with_extensions(dispatch__Image={"ref": "a\x01"}), "dispatch/Image", "U+0001"),
    (with_extensions(dispatch__Image={"ref": "a\x7f"}), "dispatch/Image", "U+007F"),
    (with_extensions(dispatch__Image={"ref": "a\ud800"}), "dispatch/Image", "U+D800"),
    (with_extensions(dispatch__Image={"ref": "x" * 501}), "dispatch/Image", "ref has 501 characters"),
    (with_extensions(dispatch__Image={"ref": 5}), "dispatch/Image", "ref must be a string, not 5"),
    (with_extensions(dispatch__Image=IMAGE | {"tag": 1}), "dispatch/Image", "tag is not a known key"),
    (with_extensions(dispatch__Image="x"), "dispatch/Image", 'must be an object, not "x"'),
    (with_extensions(dispatch__SharedCheckpoint=[]), "dispatch/SharedCheckpoint", "must be an object, not a list"),
    (with_extensions(kubeflow__RuntimeRef=None), "kubeflow/RuntimeRef", "this extension is required"),
    (with_extensions(kubeflow__RuntimeRef={}), "kubeflow/RuntimeRef", "name must be that of a runtime"),
    (with_extensions(kubeflow__RuntimeRef={"name": ""}), "kubeflow/RuntimeRef", "name must be"),
    (with_extensions(kubeflow__RuntimeRef={"name": 5}), "kubeflow/RuntimeRef", "name must be a string"),
    (with_extensions(kubeflow__RuntimeRef={"name": RUNTIME, "kind": 5}), "kubeflow/RuntimeRef", "kind must be a string"),
    (
        with_extensions(kubeflow__RuntimeRef={"name": RUNTIME, "apiGroup": "x"}),
        "kubeflow/RuntimeRef",
        "apiGroup is not a known key",
    ),
    ({"extensions": 5}, "extensions", "must be an object"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "name", "says"), REFUSED)
def test_refuses(request_: Request, name: str, says: str) -> None:
    found = refused(request_)
    assert {one for one, _ in found} == {name}
    assert any(says in text for _, text in found)


@pytest.mark.parametrize("key", sorted(SHELL_ENV))
def test_refuses_a_name_that_a_shell_changes(key: str) -> None:
    assert refused({"env": {key: "x"}}) == [
        ("env", f'the name "{key}" is one that a shell changes on the way to the job')
    ]


@pytest.mark.parametrize("name", ["slurm/Partition", "dispatch/image", "x", "/", "", "kubeflow/RuntimeRef "])
def test_an_unknown_extension_is_not_supported(name: str) -> None:
    found = problems(start_of(with_extensions(**{name: {}})), read_backend(make_backend()), make_runtime())
    assert [(problem.error_class, problem.name, problem.text) for problem in found] == [
        (ErrorClass.UNSUPPORTED, name, f"extension {name} is not supported on Kubeflow"),
    ]


def test_an_unknown_extension_of_a_wrong_type_is_both() -> None:
    found = problems(start_of(with_extensions(a__b=5)), read_backend(make_backend()), make_runtime())
    assert [(problem.error_class, problem.name) for problem in found] == [
        (ErrorClass.INVALID, "a/b"),
        (ErrorClass.UNSUPPORTED, "a/b"),
    ]
    assert class_of(found) is ErrorClass.INVALID


def test_an_extensions_name_can_not_break_a_line() -> None:
    assert names(with_extensions(**{"a/\n\ud800" + "b" * 300: {}})) == {
        "a/\\n\\ud800" + "b" * 111 + "… (309 characters)"
    }


def test_several_problems_of_one_field_are_all_reported() -> None:
    found = refused({"env": {"1": "\x00", "DISPATCH_X": "x" * BIG, "PWD": ""}, "command": ["-", "\x00", 5]})
    assert [name for name, _ in found].count("env") == 5
    assert [name for name, _ in found].count("command") == 3


@pytest.mark.parametrize(
    ("start", "name", "says"),
    [
        ({}, "request", "is required"),
        ({"spec": None}, "request", "is required"),
        ({"spec": []}, "request", "is required"),
        ({"spec": {}}, "request", "is required"),
        ({"spec": {"request": None}}, "request", "is required"),
        ({"spec": {"request": 5}}, "request", "must be an object, not 5"),
        (
            {"spec": {"request": {"job": make_start()["spec"]["request"]["job"], "submission": 1}}},
            "spec",
            "is required",
        ),
    ],
)
def test_a_missing_request_or_spec_is_reported_under_its_name(start: Request, name: str, says: str) -> None:
    (found,) = problems(start, read_backend(make_backend()), make_runtime())
    assert (found.error_class, found.name, found.text) == (ErrorClass.INVALID, name, says)


def test_wrong_words_of_the_frame_are_reported_too() -> None:
    start = make_start(gate="open", retry="never")
    start["spec"]["backend"] = "x" * 254
    assert problems(start, read_backend(make_backend()), make_runtime())[0].text.startswith("must have at most 253")
    start["spec"]["backend"] = 5
    found = problems(start, read_backend(make_backend()), make_runtime())
    assert {problem.name: problem.text for problem in found} == {
        "backend": "must be a string, not 5",
        "gate": "must be 'Closed', 'Open', 'Held' or 'Cancelled', not \"open\"",
        "retry": "must be 'OnChange' or 'Never', not \"never\"",
    }


EXTENSIONS = ("dispatch/Image", "dispatch/SharedCheckpoint", "kubeflow/RuntimeRef")
DEFECTS: dict[str, list[object]] = {}
"""Everything that is wrong with one field by itself."""
for _request, _name, _ in REFUSED:
    if set(_request) == {_name}:
        DEFECTS.setdefault(_name, []).append(_request[_name])
    elif _name in EXTENSIONS:
        DEFECTS.setdefault(_name, []).append(_request["extensions"][_name])
del DEFECTS["extensions"]
DEFECTS["env"].remove({"PET_NNODES": "1"})  # It needs the runtime, which may not be named.


@given(
    st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in DEFECTS.items()}),
    st.sets(st.sampled_from(["a/B", "c/D", "e/F"])),
)
def test_every_refusal_is_reported_however_many(defects: dict[str, object], unknown: set[str]) -> None:
    extensions = {name: value for name, value in defects.items() if name in EXTENSIONS}
    request: Request = {name: value for name, value in defects.items() if name not in EXTENSIONS}
    request |= with_extensions(**extensions, **{name: {} for name in unknown})
    assert names(request) == {*defects, *unknown}


def test_the_order_of_the_fields_is_the_contracts() -> None:
    assert [name for name, _ in FIELDS] == [
        "job", "generation", "submission", "attempt", "command", "env", "workDir", "nodes", "gpusPerNode",
        "procsPerNode", "timeLimit", "checkpoint", "dispatch/Image", "kubeflow/RuntimeRef",
    ]  # fmt: skip
