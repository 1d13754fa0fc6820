"""A group of commands of which each is imported when it is called: the help of all imports none."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click

from dispatch_operator.cli.output import Commands
from dispatch_operator.kube.on_demand import import_models_on_demand


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage among what is imported: there is none, now and later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class Listed(NamedTuple):
    """A command's module and function, and its line in the help."""

    module: str
    name: str
    sentence: str


class OnDemand(Commands):
    """Imports a command when it is called, so that the help and the offline commands don't import kopf."""

    def __init__(self, *args: Any, listed: Mapping[str, Listed], **extra: Any) -> None:  # noqa: ANN401 - click's own.
        super().__init__(*args, **extra)
        self._listed = listed

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own.
        """Return the commands' names, in the help's order."""
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's own.
        """Return a command, and import what it needs."""
        if cmd_name not in self._listed:
            return None
        import_models_on_demand()
        found = self._listed[cmd_name]
        with _uncollected():
            command: click.Command = getattr(import_module(found.module), found.name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's own.
        """Write what each command does, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.sentence) for name, command in self._listed.items()])
