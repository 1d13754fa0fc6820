"""The page of the command line: the help of every command of every program that the package installs."""

from collections.abc import Iterator

import click

from dispatch_operator.cli.main import main as operator
from dispatch_operator.plugin.main import main as plugin
from reference.markdown import block

PROGRAMS = {"dispatch-operator": operator, "kubectl dispatch": plugin}
SHAPE = {"terminal_width": 100, "max_content_width": 100}
INTRODUCTION = """\
What `--help` prints. What is promised of the commands, and what their exit codes mean, stands in
[the contract](../contract.md#command-line); [kubectl dispatch](../kubectl.md) has examples.
"""


def pages() -> dict[str, str]:
    """Return the one page."""
    return {"command-line.md": "\n".join(["# Command line", INTRODUCTION, *sections()])}


def sections() -> Iterator[str]:
    """Yield the section of each program and of each of its commands."""
    for name, program in PROGRAMS.items():
        yield from _sections(program, name, None)


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, **{**command.context_settings, **SHAPE})
    yield f"## {context.command_path}"
    yield block(command.get_help(context), "text")
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            if (inner := command.get_command(context, each)) is not None and not inner.hidden:
                yield from _sections(inner, each, context)
