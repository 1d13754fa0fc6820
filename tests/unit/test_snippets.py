"""What the documentation shows can be used as it stands: objects are valid, commands and their options exist."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml

from controlplane import kubectl
from dispatch_operator.api.crds import crds
from dispatch_operator.api.models.backend import read_backend
from dispatch_operator.checks.request import request_problems
from dispatch_operator.cli.main import main
from dispatch_operator.plugin.main import main as plugin
from dispatch_operator.records.reading import read_dispatch_start
from support.commands import commands, options
from support.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = [Page(path) for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))]
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for crd in crds()
}
VALUES = yaml.safe_load((ROOT / "deploy/chart/dispatch-operator/values.yaml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
SHOWN = {"", "sh"}
"""Languages of blocks whose every line is a command, or none of it is."""
TRANSCRIPT = "console"
PROGRAMS = {"dispatch-operator", "kubectl", "helm", "make"}


class Told(NamedTuple):
    """A command, and where it stands."""

    where: str
    words: list[str]


def told() -> Iterator[Told]:
    """Yield every command that the pages show."""
    for page in PAGES:
        name = str(page.path.relative_to(ROOT))
        for block in page.blocks:
            if block.language in {*SHOWN, TRANSCRIPT}:
                for words in commands(block.text, transcript=block.language == TRANSCRIPT):
                    yield Told(f"{name}:{block.line}", words)
        for code in page.code:
            if code.split()[0:1] and code.split()[0] in PROGRAMS:
                for words in commands(code):
                    yield Told(name, words)


def of(program: str) -> list[Told]:
    return [one for one in told() if one.words[0] == program and len(one.words) > 1]


def test_commands_are_read_as_a_shell_reads_them() -> None:
    text = "a -f x | b --set 'k={1,2}' \\\n  --more\nc && d   # and why\n"
    assert list(commands(text)) == [["a", "-f", "x"], ["b", "--set", "k={1,2}", "--more"], ["c"], ["d"]]
    assert list(commands("$ a -x\nprinted\n", transcript=True)) == [["a", "-x"]]
    assert options(["get", "-n", "team", "--output=json", "-", "--", "5"]) == ["-n", "--output"]


def objects() -> Iterator[Any]:
    for page in PAGES:
        for block in page.blocks:
            if block.language == "yaml":
                for document in yaml.safe_load_all(block.text):
                    yield pytest.param(document, id=f"{page.path.relative_to(ROOT)}:{block.line}")


@pytest.mark.parametrize("shown", list(objects()))
def test_an_object_that_is_shown_is_valid(shown: object) -> None:
    assert shown
    if not isinstance(shown, Mapping) or shown.get("kind") not in SCHEMAS:
        return
    spec, kind = shown["spec"], shown["kind"]
    assert list(unknown(spec, SCHEMAS[kind])) == []
    complete = {**shown, "metadata": {"namespace": "team-a", "uid": "1", "generation": 1, **shown["metadata"]}}
    if kind == "DispatchStart":
        assert list(request_problems(read_dispatch_start(complete).reading)) == []
    else:
        assert read_backend(complete).spec


def unknown(value: object, schema: Mapping[str, Any], path: str = "spec") -> Iterator[str]:
    """Yield the path of each key that a CRD does not have."""
    if isinstance(value, Mapping) and "properties" in schema:
        for key, inner in value.items():
            if key in schema["properties"]:
                yield from unknown(inner, schema["properties"][key], f"{path}.{key}")
            elif not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{path}.{key}"


def test_a_key_that_a_kind_does_not_have_is_seen() -> None:
    assert list(unknown({"kueue": {"queue": "a", "check": "b"}}, SCHEMAS["DispatchBackend"])) == ["spec.kueue.check"]


@pytest.mark.parametrize(
    ("program", "many", "found"),
    [
        (main, 20, [Told(where, words[1:]) for where, words in of("dispatch-operator")]),
        (plugin, 10, [Told(where, words[2:]) for where, words in of("kubectl") if words[1] == "dispatch"]),
    ],
    ids=["dispatch-operator", "kubectl dispatch"],
)
def test_every_option_of_our_commands_exists(program: click.Group, many: int, found: list[Told]) -> None:
    context = click.Context(program)
    for where, words in found:
        known = {"--version", *(name for each in program.params for name in each.opts)}
        if words and not words[0].startswith("-") and not words[0].isupper():
            command = program.get_command(context, words[0])
            assert command, (where, words)
            known |= {name for each in command.params for name in each.opts}
        assert set(options(words)) <= known | {"--help"}, (where, words)
    assert len(found) > many


def test_every_target_and_variable_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)) | {".venv/.installed"}
    found = of("make")
    for where, (_, *words) in found:
        for word in words:
            variable, equals, _ = word.partition("=")
            assert (f"$({variable})" in MAKEFILE) if equals else word in targets, (where, word)
    assert len(found) > 10


def test_every_value_that_is_set_is_the_charts() -> None:
    found = of("helm")
    for where, words in found:
        for option, value in pairwise(words):
            if option in {"--set", "--set-string"}:
                place: object = VALUES
                for key in re.sub(r"\[\d+\]", "", value.partition("=")[0]).split(".")[:2]:
                    assert not isinstance(place, Mapping) or place == {} or key in place, (where, value)
                    place = place.get(key) if isinstance(place, Mapping) else None
    assert len(found) > 8


@cache
def help_of(*verbs: str) -> str:
    """Return what kubectl says of a command and of the options that all have."""
    return kubectl.run(*verbs, "--help") + kubectl.run("options")


def test_every_option_of_kubectl_exists() -> None:
    found = of("kubectl")
    for where, (_, *words) in found:
        if words[0] == "dispatch":
            continue
        verbs = [word for word in words if re.fullmatch("[a-z-]+", word)]
        known = help_of(*_verb(words, verbs))
        for option in options(words[: words.index("--")] if "--" in words else words):
            text = rf"(^|\s){re.escape(option)}\b" if option.startswith("--") else rf"(^|\s){option[:2]}, "
            assert re.search(text, known), (where, option, words)
    assert len(found) > 50


def _verb(words: list[str], plain: list[str]) -> list[str]:
    """Return the command of kubectl that some words call: one, or two such as `create secret docker-registry`."""
    # What stands before the command, such as `-n team-a`, is an option and its value.
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[1 if "=" in rest[0] else 2 :]
    groups = {"create", "config", "rollout", "auth", "set"}
    depth = 3 if rest[:2] == ["create", "secret"] else 2 if rest[0] in groups and rest[1:2] and rest[1] in plain else 1
    return rest[:depth]


def test_every_path_in_a_command_exists() -> None:
    for where, words in told():
        for word in words:
            if re.match(r"(deploy|crds|requirements|docs|tests)/", word):
                assert (ROOT / word).exists(), (where, word)


def test_the_readme_shows_what_the_quick_start_has() -> None:
    quick = {tuple(words) for block in Page(ROOT / "docs/quick-start.md").blocks for words in commands(block.text)}
    readme = [block for block in Page(ROOT / "README.md").blocks if block.language == "sh"]
    assert readme
    assert {tuple(words) for block in readme for words in commands(block.text)} <= quick


def test_the_versions_are_those_that_the_tests_run_on() -> None:
    page = Page(ROOT / "docs" / "versions.md")
    tested = {row[0]: row[1] for row in page.table("Versions")}
    for program, (folder, module) in {
        "Kubernetes": ("kubernetes", "k8s.io/kubernetes"),
        "Kubeflow Trainer": ("controllers", "github.com/kubeflow/trainer/v2"),
        "JobSet": ("controllers", "sigs.k8s.io/jobset"),
        "Kueue": ("controllers", "sigs.k8s.io/kueue"),
        "Helm": ("helm", "helm.sh/helm/v4"),
    }.items():
        required = (ROOT / "tools" / "go" / folder / "go.mod").read_text()
        (version,) = re.findall(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", required, re.MULTILINE)
        assert version == tested[program]
