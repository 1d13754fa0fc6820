"""The command line (docs/contract.md, Command line)."""

from collections.abc import Mapping

import click

from dispatch_operator import __version__
from dispatch_operator.cli.on_demand import Listed, OnDemand

COMMANDS: Mapping[str, Listed] = {
    "run": Listed("dispatch_operator.cli.run", "run_command", "Run the operator until SIGTERM or SIGINT."),
    "render": Listed(
        "dispatch_operator.cli.offline",
        "render_command",
        "Print what a DispatchStart becomes, or why it is refused.",
    ),
    "check-runtime": Listed(
        "dispatch_operator.cli.runtimes",
        "check_runtime_command",
        "Say whether a TrainingRuntime or ClusterTrainingRuntime is fit for Starts, and if not why.",
    ),
    "adapt-runtime": Listed(
        "dispatch_operator.cli.runtimes",
        "adapt_runtime_command",
        "Write a runtime that is fit for Starts, made of one that is not.",
    ),
    "check-operator": Listed(
        "dispatch_operator.cli.check_operator",
        "check_operator_command",
        "Say whether an operator works, by its /readyz, and if not why.",
    ),
    "crds": Listed(
        "dispatch_operator.cli.offline",
        "crds_command",
        "Print the CustomResourceDefinitions of DispatchStart and DispatchBackend.",
    ),
}


@click.group(
    cls=OnDemand, listed=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="dispatch-operator", message="%(prog)s %(version)s")
def main() -> None:
    """Turn DispatchStarts into TrainJobs of Kubeflow Trainer that wait behind a start gate."""


if __name__ == "__main__":
    main()
