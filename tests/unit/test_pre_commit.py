"""A commit is checked by what `make lint` runs, no more and no less."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CONFIGURATION: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())


def lint_commands() -> list[str]:
    """Return what `make lint` runs: its prerequisites first, then its recipe."""
    text = (ROOT / "Makefile").read_text()
    variables = dict(re.findall(r"^(\w+) := (.*)$", text, re.MULTILINE))
    (lint,) = re.findall(r"^lint: ([^#\n]*)(?:##.*)?\n((?:\t.*\n)+)", text, re.MULTILINE)
    prerequisites, recipe = lint
    made = [f"make --silent {target}" for target in prerequisites.split()]
    return [expanded(line.strip(), variables) for line in [*made, *recipe.splitlines()]]


def expanded(text: str, variables: dict[str, str]) -> str:
    while found := re.search(r"\$\((\w+)\)", text):
        text = text.replace(found[0], variables[found[1]])
    return text


def test_the_hooks_run_what_make_lint_runs() -> None:
    (repository,) = CONFIGURATION["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == lint_commands()


def test_the_hooks_fetch_nothing_and_look_at_the_whole_repository() -> None:
    (repository,) = CONFIGURATION["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert (hook["language"], hook["pass_filenames"], hook["always_run"]) == ("system", False, True)
