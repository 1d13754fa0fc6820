"""The command `kubectl dispatch explain`."""

import click

from dispatch_operator.cli.output import Command
from dispatch_operator.plugin.names import START
from dispatch_operator.plugin.options import cluster_options, output_option


@click.command("explain", cls=Command)
@click.argument("name", type=START)
@cluster_options
@output_option
def explain_command(name: str, output: str, **target: str | None) -> None:
    """Say why a Start does not run, or how it ended, and what to do.

    First its status is read, then, of one that may run, its TrainJob, its Workload, its pods and the Events about
    them. What you may not read is told, and left out.

    \b
    Exit code:
      0  it is explained
      2  there is no such DispatchStart, you may not read it, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch explain llama-s1 -n team-a
      kubectl dispatch explain llama-s1 -o json
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    from dispatch_operator.plugin.session import Target, run
    from dispatch_operator.plugin.show import explain

    run(Target(**target), lambda session: explain(session, name, as_json=output == "json"))
