"""`python -m demo [--kueue]`: play a demo on a control plane of its own, and leave nothing running."""

import time

import click

from controlplane import running
from demo import plain, queued
from demo.scene import ROOT, Scene, say


@click.command()
@click.option("--kueue", is_flag=True, help="Show a start in Kueue's queue.")
def main(*, kueue: bool) -> None:
    """Show the operator at work."""
    begun = time.monotonic()
    programs = "Kubernetes, JobSet, Trainer and Kueue" if kueue else "Kubernetes, JobSet and Trainer"
    say(f"Bringing up {programs} (built once: about 20 minutes on 2 cores, then cached)")
    with running(kueue=kueue, extra_manifests=sorted((ROOT / "crds").glob("*.yaml"))) as cluster:
        ready = time.monotonic()
        (queued if kueue else plain).play(Scene(cluster))
    done = time.monotonic()
    say(f"Done: {done - ready:.0f} s, after {ready - begun:.0f} s for the control plane; nothing is left running.")


if __name__ == "__main__":
    main(prog_name="python -m demo")
