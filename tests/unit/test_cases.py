"""The worked examples of the contract, through the functions that the operator uses and through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dispatch_operator.cli.main import main
from dispatch_operator.render.prologue import prologue

CASES = Path(__file__).parents[1] / "data" / "cases"
NAMES = sorted(path.name for path in CASES.iterdir())


def load(case: str, part: str) -> Any:
    return yaml.safe_load((CASES / case / f"{part}.yaml").read_text())


def render(case: str, *more: str) -> tuple[int, str, str]:
    files = [str(CASES / case / f"{part}.yaml") for part in ("start", "backend", "runtime")]
    arguments = ["render", "-f", files[0], "--backend", files[1], "--runtime", files[2], *more]
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stdout, result.stderr


def with_marked_prologue(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = items[1]["spec"]["trainer"]["command"]
    assert command[2] == prologue()
    command[2] = "<prologue>"
    return items


@pytest.mark.parametrize("case", [name for name in NAMES if "items" in load(name, "want")])
def test_renders_what_the_example_wants_as_yaml_and_as_json(case: str) -> None:
    want = load(case, "want")["items"]
    code, out, err = render(case)
    assert (code, err) == (0, "")
    assert with_marked_prologue(list(yaml.safe_load_all(out))) == want
    code, out, err = render(case, "-o", "json")
    assert (code, err) == (0, "")
    listed = json.loads(out)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert with_marked_prologue(listed["items"]) == want


@pytest.mark.parametrize("case", [name for name in NAMES if "class" in load(name, "want")])
def test_refuses_what_the_example_refuses_and_names_no_more_and_no_fewer(case: str) -> None:
    want = load(case, "want")
    code, out, err = render(case)
    assert (code, out) == (1, "")
    lines = [line.split(": ", 2) for line in err.splitlines()]
    classes = [line[0] for line in lines]
    assert ("ErrInvalid" if "ErrInvalid" in classes else classes[0]) == want["class"]
    assert sorted({line[1] for line in lines}) == want["names"]
    assert all(line[2] for line in lines)


def test_every_example_is_tried() -> None:
    assert len(NAMES) >= 23
    assert all(("items" in load(name, "want")) != ("class" in load(name, "want")) for name in NAMES)
