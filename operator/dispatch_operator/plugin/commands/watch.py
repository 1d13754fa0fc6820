"""The command `kubectl dispatch watch`."""

import click

from dispatch_operator.cli.output import Command
from dispatch_operator.plugin.options import cluster_options


@click.command("watch", cls=Command)
@click.option("-A", "--all-namespaces", is_flag=True, help="Those of all namespaces.")
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Those whose labels it selects.")
@cluster_options
def watch_command(*, all_namespaces: bool, selector: str, **target: str | None) -> None:
    """Show the Starts of a namespace, or of all, as they change.

    On a terminal it is a table that changes in place; piped, a line for each change. Ctrl-C ends it.

    \b
    Exit code:
      130  ended by Ctrl-C
        2  you may not list them, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch watch -n team-a
      kubectl dispatch watch -A | grep Failed
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    from dispatch_operator.plugin.session import Target, run
    from dispatch_operator.plugin.table import watch

    if all_namespaces and target.get("namespace"):
        raise click.UsageError("--namespace and --all-namespaces can't be combined: leave one of them out")
    run(Target(**target), lambda session: watch(session, everywhere=all_namespaces, selector=selector))
