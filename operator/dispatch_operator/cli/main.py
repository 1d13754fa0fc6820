"""The command line (docs/contract.md, Command line)."""

import click

from dispatch_operator import __version__
from dispatch_operator.cli.offline import crds_command, render_command
from dispatch_operator.cli.output import Commands
from dispatch_operator.cli.run import run_command
from dispatch_operator.cli.runtimes import adapt_runtime_command, check_runtime_command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dispatch-operator", message="%(prog)s %(version)s")
def main() -> None:
    """Turn DispatchStarts into TrainJobs of Kubeflow Trainer that wait behind a start gate."""


main.add_command(run_command)
main.add_command(render_command)
main.add_command(check_runtime_command)
main.add_command(adapt_runtime_command)
main.add_command(crds_command)

if __name__ == "__main__":
    main()
