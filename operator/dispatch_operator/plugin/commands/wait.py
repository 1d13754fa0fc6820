"""The command `kubectl dispatch wait`."""

import click

from dispatch_operator.cli.output import Command
from dispatch_operator.plugin.names import START
from dispatch_operator.plugin.options import cluster_options, output_option


@click.command("wait", cls=Command)
@click.argument("name", type=START)
@click.option("--timeout", metavar="DURATION", help="The longest to wait, such as 90s or 1h30m. When absent for ever.")
@cluster_options
@output_option
def wait_command(name: str, timeout: str | None, output: str, **target: str | None) -> None:
    """Wait until a Start has ended; the exit code says how.

    Each new phase is a line on standard error; the end is one on standard output.

    \b
    Exit code:
        0  it succeeded
        1  it was refused for good
        3  its job failed
        4  it was lost: its TrainJob vanished after it was started
        5  it was cancelled
        6  the DispatchStart was deleted
      124  it has not ended within --timeout
        2  there is no such DispatchStart, you may not read it, or the cluster can't be asked

    \b
    Examples:
      kubectl dispatch wait llama-s1 -n team-a --timeout 2h
      kubectl dispatch wait llama-s1 -o json
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    from dispatch_operator.api import duration
    from dispatch_operator.plugin.session import Target, run
    from dispatch_operator.plugin.waiting import wait

    try:
        seconds = None if timeout is None else duration.seconds(timeout)
    except ValueError as error:
        raise click.BadParameter(f'"{timeout}" is no duration: write 90s or 1h30m', param_hint="--timeout") from error
    code = run(Target(**target), lambda session: wait(session, name, seconds, as_json=output == "json"))
    raise SystemExit(code)
