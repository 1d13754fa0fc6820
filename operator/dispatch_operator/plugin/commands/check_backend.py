"""The command `kubectl dispatch check-backend`."""

import click

from dispatch_operator.cli.output import REFUSED, Command
from dispatch_operator.plugin.names import BACKEND
from dispatch_operator.plugin.options import cluster_options, output_option


@click.command("check-backend", cls=Command)
@click.argument("name", type=BACKEND, default="default")
@cluster_options
@output_option
def check_backend_command(name: str, output: str, **target: str | None) -> None:
    """Say whether a DispatchBackend takes Starts, and if not why.

    Its state, each gate that the operator proves, what requests may ask for, each of its runtimes, checked as
    check-runtime does it, and in Kueue mode its queue, its ClusterQueue, its check and its priority class. Beside each
    problem stands what to do about it. What you may not read is told. NAME is default, when it is left out.

    \b
    Exit code:
      0  nothing is wrong, as far as you may look
      1  something is
      2  there is no such DispatchBackend, you may not read it, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch check-backend -n team-a
      kubectl dispatch check-backend default -n team-a -o json
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    from dispatch_operator.plugin.backend_check import check
    from dispatch_operator.plugin.session import Target, run

    if not run(Target(**target), lambda session: check(session, name, as_json=output == "json")):
        raise SystemExit(REFUSED)
