"""What is printed, and that it was: a lost output must not look like a verdict."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from dispatch_operator.api.quoting import escaped
from dispatch_operator.checks.problems import Problem

PROGRAM = "dispatch-operator"
REFUSED = 1
UNWRITABLE = 2
"""Exit code: 1 would say that something was refused."""


class OutputError(click.ClickException):
    """Standard output could not be written: its disk is full, or its reader is gone."""

    exit_code = UNWRITABLE


class Command(click.Command):
    """A command whose --help is printed, or said to be lost."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401 - click's own
        """Parse the arguments; --help prints here."""
        with written():
            return super().make_context(*args, **extra)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, with the examples as this program is called."""
        return super().get_help(ctx).replace(PROGRAM, ctx.find_root().info_name or PROGRAM)


class Commands(click.Group, Command):
    """A group of commands whose --help and --version are printed, or said to be lost."""


def print_out(text: str) -> None:
    """Write text to standard output.

    Raises:
        OutputError: It could not be written.
    """
    with written():
        click.echo(text, nl=False)


def tell(line: str) -> None:
    """Write a line for people to standard error, escaped; where that can't be written, the exit code still tells."""
    with suppress(OSError):
        click.echo(escaped(line), err=True)


def refuse(found: Iterable[Problem], *, with_remedies: bool = False) -> NoReturn:
    """Print problems and exit."""
    for problem in found:
        tell(f"{problem.error_class}: {problem}" + (f"; remedy: {problem.remedy}" if with_remedies else ""))
    raise SystemExit(REFUSED)


@contextmanager
def written() -> Iterator[None]:
    """Write to standard output.

    Raises:
        OutputError: It could not be written.
    """
    try:
        yield
    except OSError as error:
        # What is left in the buffer must not be tried once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"the output can't be written: {error.strerror}") from error
