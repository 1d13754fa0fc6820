"""The command line (docs/contract.md, Command line)."""

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click

from dispatch_operator import __version__
from dispatch_operator.cli.output import Commands
from dispatch_operator.kube.on_demand import import_models_on_demand


class Command(NamedTuple):
    """A command's module and function, and its line in the help."""

    module: str
    name: str
    sentence: str


COMMANDS: Mapping[str, Command] = {
    "run": Command("run", "run_command", "Run the operator until SIGTERM or SIGINT."),
    "render": Command("offline", "render_command", "Print what a DispatchStart becomes, or why it is refused."),
    "check-runtime": Command(
        "runtimes",
        "check_runtime_command",
        "Say whether a TrainingRuntime or ClusterTrainingRuntime is fit for Starts, and if not why.",
    ),
    "adapt-runtime": Command(
        "runtimes", "adapt_runtime_command", "Write a runtime that is fit for Starts, made of one that is not."
    ),
    "crds": Command(
        "offline", "crds_command", "Print the CustomResourceDefinitions of DispatchStart and DispatchBackend."
    ),
}


class OnDemand(Commands):
    """Imports a command when it is called, so that the help and the offline commands don't import kopf."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own.
        """Return the commands' names, in the help's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's own.
        """Return a command, and import what it needs."""
        if cmd_name not in COMMANDS:
            return None
        import_models_on_demand()
        module = import_module(f"{__package__}.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, COMMANDS[cmd_name].name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's own.
        """Write what each command does, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.sentence) for name, command in COMMANDS.items()])


@click.group(cls=OnDemand, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dispatch-operator", message="%(prog)s %(version)s")
def main() -> None:
    """Turn DispatchStarts into TrainJobs of Kubeflow Trainer that wait behind a start gate."""


if __name__ == "__main__":
    main()
