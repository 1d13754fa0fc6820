"""The program `kubectl-dispatch`, which kubectl finds as `kubectl dispatch` (docs/kubectl.md)."""

import os
from collections.abc import Mapping

import click

from dispatch_operator import __version__
from dispatch_operator.cli.main import COMMANDS as OF_THE_OPERATOR
from dispatch_operator.cli.on_demand import Listed, OnDemand
from dispatch_operator.plugin.options import cluster_options, given_to_all

PROGRAM = "kubectl-dispatch"
COMPLETE_VARIABLE = "_KUBECTL_DISPATCH_COMPLETE"
"""By which a shell asks the program for completions, as click has it."""
_SHARED = ("render", "check-runtime", "adapt-runtime")
_HERE = "dispatch_operator.plugin.commands"

COMMANDS: Mapping[str, Listed] = {
    "status": Listed(f"{_HERE}.status", "status_command", "Show a Start and all that belongs to it, as a tree."),
    "explain": Listed(
        f"{_HERE}.explain", "explain_command", "Say why a Start does not run, or how it ended, and what to do."
    ),
    "open": Listed(f"{_HERE}.gate", "open_command", "Open the start gate: the job may run."),
    "hold": Listed(f"{_HERE}.gate", "hold_command", "Hold the start gate: the job stops, and can be opened again."),
    "cancel": Listed(f"{_HERE}.gate", "cancel_command", "Cancel a Start for good: its job is stopped."),
    "wait": Listed(f"{_HERE}.wait", "wait_command", "Wait until a Start has ended; the exit code says how."),
    "watch": Listed(f"{_HERE}.watch", "watch_command", "Show the Starts of a namespace, or of all, as they change."),
    "logs": Listed(f"{_HERE}.logs", "logs_command", "Print what the trainer's pods have written."),
    "check-backend": Listed(
        f"{_HERE}.check_backend", "check_backend_command", "Say whether a DispatchBackend takes Starts, and if not why."
    ),
    **{name: OF_THE_OPERATOR[name] for name in _SHARED},
    "completion": Listed(f"{_HERE}.completion", "completion_command", "Print a script that completes this in a shell."),
}


@click.group(
    cls=OnDemand, listed=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@cluster_options
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, /, **options: str | None) -> None:
    """See what becomes of DispatchStarts, why, and what to do next.

    \b
    Exit code, where a command does not say more:
      0  done
      1  the answer is no: refused, not fit, or nothing there that could be done
      2  the command can't be carried out: a wrong option, no such object, no right, or a cluster that does not answer
    130  ended by Ctrl-C
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    given_to_all(context, COMMANDS, options)


def run() -> None:
    """Run the program, called as kubectl calls it."""
    completes = COMPLETE_VARIABLE in os.environ
    main(prog_name=PROGRAM if completes else "kubectl dispatch", complete_var=COMPLETE_VARIABLE)


if __name__ == "__main__":
    run()
