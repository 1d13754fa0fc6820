"""The command `kubectl dispatch logs`."""

import click

from dispatch_operator.cli.output import Command
from dispatch_operator.plugin.names import START
from dispatch_operator.plugin.options import cluster_options


@click.command("logs", cls=Command)
@click.argument("name", type=START)
@click.option("-f", "--follow", is_flag=True, help="Go on until the pods have ended.")
@click.option(
    "--tail", type=click.IntRange(min=-1), default=-1, metavar="LINES", help="The last lines of each pod alone."
)
@click.option("-c", "--container", default="node", show_default=True, help="Another container of the trainer's pods.")
@click.option(
    "--prefix/--no-prefix", default=None, help="Name the pod before each line; by itself when there are several."
)
@cluster_options
def logs_command(
    name: str, *, follow: bool, tail: int, container: str, prefix: bool | None, **target: str | None
) -> None:
    """Print what the trainer's pods have written.

    One pod after the other, or with --follow as it comes. A pod whose log can not be had is told on standard error.

    \b
    Exit code:
      0  the log of at least one pod was printed
      1  there is no pod, or no log of one
      2  there is no such DispatchStart, you may not read it or the logs, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch logs llama-s1 -n team-a --tail 20
      kubectl dispatch logs llama-s1 -n team-a --follow
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    from dispatch_operator.plugin.log_reading import Wanted, print_logs
    from dispatch_operator.plugin.session import Target, run

    wanted = Wanted(container, follow, None if tail < 0 else tail, prefix)
    run(Target(**target), lambda session: print_logs(session, name, wanted))
