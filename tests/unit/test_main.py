"""The command line imports a command, and what it needs, when it is called."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dispatch_operator.cli.main import COMMANDS, main

RUNTIME = Path(__file__).parents[2] / "deploy" / "runtimes" / "torch-dispatch.yaml"
LEFT_OUT = """
import sys
from dispatch_operator.cli.main import main
main(sys.argv[2:], standalone_mode=False)
print(*sorted(set(sys.argv[1].split(",")) & sys.modules.keys()))
"""


def test_the_help_has_the_first_sentence_of_every_command() -> None:
    told = {name: main.get_command(click.Context(main), name) for name in COMMANDS}
    assert {name: command and command.get_short_help_str(1000) for name, command in told.items()} == {
        name: command.sentence for name, command in COMMANDS.items()
    }
    shown = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    assert all(f"{name} {command.sentence}" in shown for name, command in COMMANDS.items())


def test_a_command_that_does_not_exist_is_refused() -> None:
    result = CliRunner().invoke(main, ["start"])
    assert (result.exit_code, "No such command 'start'" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "left_out"),
    [
        (["--help"], "kopf,kubernetes_asyncio,aiohttp,pydantic,yaml"),
        (["check-runtime", "-f", str(RUNTIME)], "kopf,kubernetes_asyncio,aiohttp"),
        (["render", "--help"], "kopf,kubernetes_asyncio,aiohttp"),
        (["check-operator", "--help"], "kopf,kubernetes_asyncio,aiohttp"),
        (["crds"], "kopf,kubernetes_asyncio,aiohttp"),
    ],
)
def test_what_needs_no_cluster_does_without_kopf_and_the_client(arguments: list[str], left_out: str) -> None:
    command = [sys.executable, "-c", LEFT_OUT, left_out, *arguments]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1] == ""
