"""The commands `kubectl dispatch open`, `hold` and `cancel`, which write spec.gate."""

import sys
from collections.abc import Mapping

import click

from dispatch_operator.api.enums import Gate
from dispatch_operator.cli.output import Command
from dispatch_operator.plugin.names import START
from dispatch_operator.plugin.options import cluster_options


@click.command("open", cls=Command)
@click.argument("name", type=START)
@cluster_options
def open_command(name: str, **target: str | None) -> None:
    """Open the start gate: the job may run.

    A Start that has not started yet is opened as soon as it has. A job that was held runs again from its beginning.

    \b
    Exit code:
      0  the gate is to be open, or was already
      1  it has ended, so that a gate changes nothing; the API server refuses the change; or it stays closed,
         because the copy of its runtime is not what was submitted
      2  there is no such DispatchStart, you may not change it, or the cluster can't be asked

    \b
    Example:
      kubectl dispatch open llama-s1 -n team-a
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    _move(name, Gate.OPEN, target)


@click.command("hold", cls=Command)
@click.argument("name", type=START)
@cluster_options
def hold_command(name: str, **target: str | None) -> None:
    """Hold the start gate: the job stops, and can be opened again.

    Its pods go away. When it is opened it runs again from its beginning, in the same epoch. A Start that has never been
    open is kept closed.

    \b
    Exit code:
      0  the gate is to be held, or was already
      1  it has ended, so that a gate changes nothing; or the API server refuses the change
      2  there is no such DispatchStart, you may not change it, or the cluster can't be asked

    \b
    Example:
      kubectl dispatch hold llama-s1 -n team-a
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    _move(name, Gate.HELD, target)


@click.command("cancel", cls=Command)
@click.argument("name", type=START)
@click.option("-y", "--yes", is_flag=True, help="Don't ask; needed where nobody can be asked.")
@cluster_options
def cancel_command(name: str, *, yes: bool, **target: str | None) -> None:
    """Cancel a Start for good: its job is stopped.

    Its TrainJob is deleted; the DispatchStart and its status stay. Nothing brings it back: another submission is
    another DispatchStart. On a terminal it asks first.

    \b
    Exit code:
      0  it is to be cancelled, or was already
      1  it has ended, the API server refuses the change, or you said no
      2  there is no such DispatchStart, you may not change it, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch cancel llama-s1 -n team-a
      kubectl dispatch cancel llama-s1 -n team-a --yes
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("cancelling is for good, and there is no terminal to ask: say --yes")
        click.confirm(
            f"Cancel {name} for good? Its job, if it has one, is stopped, and nothing brings it back",
            abort=True,
            err=True,
        )
    _move(name, Gate.CANCELLED, target)


def _move(name: str, gate: Gate, target: Mapping[str, str | None]) -> None:
    from dispatch_operator.plugin.moving import move
    from dispatch_operator.plugin.session import Target, run

    run(Target(**target), lambda session: move(session, name, gate))
