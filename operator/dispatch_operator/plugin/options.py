"""Options that many commands have: which cluster and namespace, as kubectl has them, and how to print."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """Add the options that say which cluster, and which namespace of it."""
    for option in (
        click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="The kubeconfig file."),
        click.option("--context", metavar="NAME", help="The context of the kubeconfig, if not its current one."),
        click.option("-n", "--namespace", metavar="NAME", help="The namespace, if not the context's."),
    ):
        command = option(command)
    return command


def output_option(command: F) -> F:
    """Add the option for JSON."""
    return click.option(
        "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Format."
    )(command)


def given_to_all(context: click.Context, commands: Iterable[str], options: Mapping[str, str | None]) -> None:
    """Let what is said before a command's name stand for each command, unless that is told otherwise."""
    given = {name: value for name, value in options.items() if value is not None}
    context.default_map = dict.fromkeys(commands, given)
