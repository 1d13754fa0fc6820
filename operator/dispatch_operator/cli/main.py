"""The command line (docs/contract.md, Command line)."""

import click

from dispatch_operator.cli.offline import check_runtime_command, crds_command, render_command
from dispatch_operator.cli.run import run_command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Turn DispatchStarts into TrainJobs of Kubeflow Trainer that wait behind a start gate."""


main.add_command(run_command)
main.add_command(render_command)
main.add_command(check_runtime_command)
main.add_command(crds_command)

if __name__ == "__main__":
    main()
