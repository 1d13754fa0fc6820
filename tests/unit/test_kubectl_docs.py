"""docs/kubectl.md says what the plugin does: its commands, its exit codes, and what it prints."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dispatch_operator.plugin.main import COMMANDS
from dispatch_operator.plugin.waiting import DELETED, EXIT_CODES, TIMED_OUT
from support.builders import make_backend, make_condition, make_runtime
from support.pages import Page, words
from support.plugin import World, world_of

ROOT = Path(__file__).parents[2]
PAGE = Page(ROOT / "docs" / "kubectl.md")
GOLDEN = "\n".join(path.read_text() for path in sorted((ROOT / "tests" / "data" / "golden" / "kubectl").iterdir()))


def examples(command: str) -> list[str]:
    """Return what the page shows of a command."""
    return re.findall(rf"^```\n(\$ kubectl dispatch {command}\b.*?)^```$", PAGE.text, re.MULTILINE | re.DOTALL)


def test_every_command_stands_in_the_table() -> None:
    assert PAGE.words("kubectl dispatch") == [f"kubectl dispatch {name}" for name in COMMANDS]


def test_every_end_stands_with_its_exit_code() -> None:
    told = {words(row[1])[0]: int(row[0]) for row in PAGE.table("Wait for the end")[: len(EXIT_CODES)]}
    assert told == dict(EXIT_CODES)
    assert [int(row[0]) for row in PAGE.table("Wait for the end")[len(EXIT_CODES) :]] == [DELETED, TIMED_OUT]


def test_what_is_shown_of_a_start_is_what_is_printed() -> None:
    shown = [*examples("explain"), *examples("status")]
    assert len(shown) == 3
    assert [example for example in shown if example not in GOLDEN] == []


def test_what_is_shown_of_the_gate_is_what_is_printed() -> None:
    async def started(world: World) -> None:
        await world.started()

    (shown,) = examples("open")
    assert f"$ kubectl dispatch open llama-s1\n{world_of(started).ask('open', 'llama-s1').stdout}" == shown


def test_what_is_shown_of_a_backend_is_what_is_printed() -> None:
    backend = make_backend()
    backend["status"]["gates"][1] |= {"proven": False, "reason": "a pod of the probe ran"}
    backend["status"]["conditions"] = [make_condition("Ready", "False", "ObserveOnly", "x")]
    world = World()
    world.put(backend, make_runtime())
    (shown,) = examples("check-backend")
    assert f"$ kubectl dispatch check-backend\n{world.ask('check-backend').stdout}" == shown


def of_the_quick_start(name: str) -> World:
    """Return the world in which the quick start asks about one of its samples, with the CRDs' defaults written out."""

    def read(path: str) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / path).read_text())
        return found

    async def applied(world: World) -> None:
        runtime, backend, start = read("runtimes/torch-dispatch.yaml"), make_backend(), read(f"samples/{name}.yaml")
        backend["spec"]["runtimes"] = read("samples/backend.yaml")["spec"]["runtimes"]
        start["metadata"]["namespace"] = backend["metadata"]["namespace"]
        start["spec"] = {"backend": "default", "gate": "Closed", "retry": "OnChange", **start["spec"]}
        world.put(runtime, backend, start)
        await world.operator.settle(name)

    return world_of(applied)


@pytest.mark.parametrize("name", ["hello", "refused"])
def test_what_the_quick_start_shows_is_what_is_printed(name: str) -> None:
    page = Page(ROOT / "docs" / "quick-start.md")
    command = f"$ kubectl dispatch explain {name} -n team-a\n"
    (shown,) = [block.text for block in page.blocks if block.text.startswith(command)]
    printed = of_the_quick_start(name).ask("explain", name, "-n", "team-a")
    assert (printed.exit_code, printed.stderr) == (0, "")
    assert shown.rstrip("\n") == f"{command}{printed.stdout}".rstrip("\n")
