"""The command `kubectl dispatch status`."""

import click

from dispatch_operator.cli.output import Command
from dispatch_operator.plugin.names import START
from dispatch_operator.plugin.options import cluster_options, output_option


@click.command("status", cls=Command)
@click.argument("name", type=START)
@cluster_options
@output_option
def status_command(name: str, output: str, **target: str | None) -> None:
    """Show a Start and all that belongs to it, as a tree.

    Each line is an object: the Start, its backend, the copy of its runtime, its TrainJob, and below that Kueue's
    Workload, the JobSet and the pods; what state it is in; and what it waits for. What you may not read is told.

    \b
    Exit code:
      0  it is shown
      2  there is no such DispatchStart, you may not read it, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch status llama-s1 -n team-a
      kubectl dispatch status llama-s1 -o json
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    from dispatch_operator.plugin.session import Target, run
    from dispatch_operator.plugin.show import status

    run(Target(**target), lambda session: status(session, name, as_json=output == "json"))
