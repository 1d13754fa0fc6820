"""`python -m demo [--kueue] [--cluster current]`: play a demo, and leave nothing behind."""

import time

import click

from controlplane import running
from demo import plain, queued
from demo.current import playground
from demo.scene import DEPLOY, NAMESPACE, ROOT, RUNTIME, Scene, say


@click.command()
@click.option("--kueue", is_flag=True, help="Show a start in Kueue's queue.")
@click.option(
    "--cluster",
    type=click.Choice(["embedded", "current"]),
    default="embedded",
    show_default=True,
    help="A control plane of the demo's own, or the cluster that kubectl talks to, after asking.",
)
def main(*, kueue: bool, cluster: str) -> None:
    """Show the operator at work."""
    if cluster == "embedded":
        _on_embedded(kueue=kueue)
    elif kueue:
        raise click.UsageError("--kueue needs the embedded cluster, whose queue it may set up: leave --cluster out")
    else:
        with playground() as scene:
            plain.play(scene)


def _on_embedded(*, kueue: bool) -> None:
    begun = time.monotonic()
    programs = "Kubernetes, JobSet, Trainer and Kueue" if kueue else "Kubernetes, JobSet and Trainer"
    say(f"Bringing up {programs} (built once: about 20 minutes on 2 cores, then cached)")
    with running(kueue=kueue, extra_manifests=sorted((ROOT / "crds").glob("*.yaml"))) as cluster:
        ready = time.monotonic()
        cluster.kubectl("create", "namespace", NAMESPACE)
        if kueue:
            queued.play(Scene(cluster))
        else:
            cluster.kubectl("apply", f"--filename={DEPLOY / RUNTIME}")
            plain.play(Scene(cluster))
    done = time.monotonic()
    say(f"Done: {done - ready:.0f} s, after {ready - begun:.0f} s for the control plane; nothing is left running.")


if __name__ == "__main__":
    main(prog_name="python -m demo")
