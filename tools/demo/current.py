"""The cluster that kubectl talks to: what the demo puts there, after asking, and takes away again."""

import json
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from controlplane import kubectl
from demo.scene import DEPLOY, ROOT, RUNTIME, Scene, say

TRAINER = "https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"
DEADLINE_SECONDS = 300.0
"""A cluster that is not simulated has images to pull."""


class Part(NamedTuple):
    """What must be there, and is installed and taken away again where it is missing."""

    what: str
    kind: str
    name: str
    manifest: tuple[str, ...]
    ready: tuple[str, ...]
    """Arguments of `kubectl wait`."""
    objects: str
    """The kind whose objects would go with it: where somebody else has made some meanwhile, it stays."""


PARTS = (
    Part(
        "Kubeflow Trainer 2.3.0 and JobSet 0.12.0, into the namespace kubeflow-system",
        "customresourcedefinition",
        "trainjobs.trainer.kubeflow.org",
        (f"--kustomize={TRAINER}",),
        ("deployment", "--all", "--namespace=kubeflow-system", "--for=condition=Available"),
        "trainjobs",
    ),
    Part(
        "the CRDs of DispatchStart and DispatchBackend",
        "customresourcedefinition",
        "dispatchstarts.dispatch.phpboyscout.uk",
        (f"--filename={ROOT / 'crds'}",),
        (f"--filename={ROOT / 'crds'}", "--for=condition=Established"),
        "dispatchstarts",
    ),
    Part(
        "the ClusterTrainingRuntime torch-dispatch",
        "clustertrainingruntime",
        "torch-dispatch",
        (f"--filename={DEPLOY / RUNTIME}",),
        (),
        "trainjobs",
    ),
)


class CurrentCluster:
    """The cluster of kubectl's current context, which stays the same whatever becomes of the context meanwhile.

    Args:
        folder: For a copy of the kubeconfig and the operator's log.
    """

    def __init__(self, folder: Path) -> None:
        self.logs = folder
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(kubectl.run("config", "view", "--raw", "--minify", "--flatten", "--output=json"))

    @property
    def described(self) -> str:
        """The context and where its API server is."""
        config = json.loads(self.kubeconfig.read_text())
        return f"{config['current-context']} ({config['clusters'][0]['cluster']['server']})"

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # As subprocess.run calls it.
        """Run kubectl and return what it printed.

        Raises:
            KubectlError: It failed.
        """
        return kubectl.run(*arguments, input=input, environment={"KUBECONFIG": str(self.kubeconfig)})

    def has(self, kind: str, name: str) -> bool:
        """Whether an object is there; one whose kind is not served is not."""
        try:
            return bool(self.kubectl("get", kind, name, "--ignore-not-found", "--output=name"))
        except kubectl.KubectlError as error:
            if "the server doesn't have a resource type" in error.stderr:
                return False
            raise


@contextmanager
def playground() -> Iterator[Scene]:
    """A namespace of the demo's own on the current cluster, with what it needs, for the length of a `with` block.

    Raises:
        click.Abort: The answer was no; nothing was changed.
        click.ClickException: There is no cluster, or the demo can't say what it would change in this one.
    """
    with tempfile.TemporaryDirectory(prefix="dispatch-operator-") as folder, ExitStack() as stack:
        try:
            cluster = CurrentCluster(Path(folder))
            missing = [part for part in PARTS if not cluster.has(part.kind, part.name)]
        except kubectl.KubectlError as error:
            raise click.ClickException(f"no cluster to show it on: {error}") from error
        if PARTS[0] in missing and cluster.has(PARTS[0].kind, "jobsets.jobset.x-k8s.io"):
            raise click.ClickException(
                "this cluster has JobSet, but not Kubeflow Trainer, whose manifests would replace that JobSet; "
                "install Trainer 2.3 yourself, and run this again"
            )
        namespace = f"dispatch-demo-{secrets.token_hex(3)}"
        _ask(cluster.described, namespace, missing)
        for part in missing:
            stack.callback(_remove, cluster, part)
            _install(cluster, part)
        stack.callback(_delete, cluster, namespace)
        cluster.kubectl("create", "namespace", namespace)
        yield Scene(cluster, namespace, DEADLINE_SECONDS)
    say("Done.")


def _ask(cluster: str, namespace: str, missing: list[Part]) -> None:
    click.echo(f"The cluster is {cluster}.\nOn it this demo will")
    for part in missing:
        click.echo(f"  - install {part.what}, which is missing")
    click.echo(f"  - create the namespace {namespace}, and run a small job in it")
    click.echo("  - run the operator on this machine, with your own rights, for that namespace alone")
    click.confirm("and in the end take away again what it has put there. Go on?", abort=True)


def _install(cluster: CurrentCluster, part: Part) -> None:
    say(f"Installing {part.what}")
    cluster.kubectl("apply", "--server-side", *part.manifest)
    if part.ready:
        cluster.kubectl("wait", *part.ready, f"--timeout={DEADLINE_SECONDS:g}s")


def _remove(cluster: CurrentCluster, part: Part) -> None:
    if cluster.kubectl("get", part.objects, "--all-namespaces", "--output=name"):
        say(f"Leaving {part.what} where it is: somebody uses it")
        return
    say(f"Removing {part.what}")
    cluster.kubectl("delete", "--ignore-not-found", *part.manifest)


def _delete(cluster: CurrentCluster, namespace: str) -> None:
    say(f"Removing the namespace {namespace}")
    cluster.kubectl("delete", "namespace", namespace, "--ignore-not-found")
