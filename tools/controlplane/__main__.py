"""The command line: `python -m controlplane up` and `python -m controlplane build`."""

import signal
from pathlib import Path

import click

from controlplane.build import CONTROLLERS, HELM, KUBERNETES, build
from controlplane.lifecycle import ControlPlane
from controlplane.progress import say


@click.group()
def main() -> None:
    """An embedded Kubernetes control plane with Kubeflow Trainer, JobSet and Kueue."""


@main.command()
@click.option("--kueue", is_flag=True, help="Start Kueue too.")
@click.option(
    "--manifests",
    "extra_manifests",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A file of CRDs or other objects to create at the start; may be repeated.",
)
def up(*, kueue: bool, extra_manifests: tuple[Path, ...]) -> None:
    """Keep a cluster running until Ctrl-C or SIGTERM."""
    # Python's answer to SIGTERM would be to end at once; that of an interrupt is to leave the block below in order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        plane = ControlPlane(kueue=kueue, extra_manifests=extra_manifests)
        with plane as cluster:
            for name, value in cluster.environment.items():
                click.echo(f"export {name}={value}")
            say(f"The logs are in {cluster.logs}; end with Ctrl-C.")
            plane.wait()
    except KeyboardInterrupt:
        say("stopped")
    except (OSError, RuntimeError) as error:
        raise click.ClickException("\n".join([str(error), *getattr(error, "__notes__", ())])) from error


@main.command(name="build")
@click.option("--helm", is_flag=True, help="Build helm too, which the chart's tests need.")
def build_programs(*, helm: bool) -> None:
    """Build the programs into the cache, as the first start would."""
    for target in (KUBERNETES, CONTROLLERS, HELM) if helm else (KUBERNETES, CONTROLLERS):
        click.echo(build(target).folder)


if __name__ == "__main__":
    main(prog_name="python -m controlplane")
