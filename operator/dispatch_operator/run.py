"""The command `dispatch-operator run` (contract section 14)."""

import asyncio
import logging
import os
import socket

import click
import kopf

from dispatch_operator.cluster import NoClusterError, connected
from dispatch_operator.handlers import register, settings


@click.command("run")
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Serve this namespace; repeat it for more. The account needs a Role in each.",
)
@click.option("--all-namespaces", "-A", is_flag=True, help="Serve every namespace. The account needs a ClusterRole.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Connect with this file instead of KUBECONFIG or the pod's service account.",
)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How a log line looks."
)
@click.option("--verbose", "-v", is_flag=True, help="Log every request that fails and every event.")
@click.option(
    "--health",
    metavar="HOST:PORT",
    help="Answer GET /healthz here while the operator is alive, for a pod's probes.",
)
def run_command(  # noqa: PLR0913 - one argument an option.
    *,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    kubeconfig: str | None,
    log_format: str,
    verbose: bool,
    health: str | None,
) -> None:
    r"""Run the operator until SIGTERM or SIGINT.

    It takes every DispatchStart of its namespaces through its steps, opens and holds its gate, and mirrors its job.
    Nothing is kept but in the cluster: it may be stopped and started at any time.

    \b
    Examples:
      dispatch-operator run --namespace team-a --namespace team-b
      dispatch-operator run --all-namespaces --log-format json --health 0.0.0.0:8080
    """
    if bool(namespaces) == all_namespaces:
        raise click.UsageError("say which namespaces to serve: --namespace NAME (repeatable) or --all-namespaces")
    kopf.configure(verbose=verbose, log_format=kopf.LogFormat.JSON if log_format == "json" else kopf.LogFormat.FULL)
    if not verbose:
        # A line for every event and every probe says nothing that the operator's own lines do not.
        for noisy in ("kopf.objects", "aiohttp.access"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
    if kubeconfig:
        # kopf reads the variable; both clients must use the same file.
        os.environ["KUBECONFIG"] = kubeconfig
    try:
        asyncio.run(_serve(namespaces, kubeconfig, f"http://{health}/healthz" if health else None))
    except NoClusterError as error:
        raise click.ClickException(f"no cluster to connect to: {error}; name a --kubeconfig") from error


async def _serve(namespaces: tuple[str, ...], kubeconfig: str | None, endpoint: str | None) -> None:
    async with connected(kubeconfig) as cluster:
        await kopf.operator(
            registry=register(cluster, kubeconfig, clusterwide=not namespaces),
            settings=settings(),
            # kopf would make one of the user's name, which a pod's user does not have.
            identity=f"{socket.gethostname()}/{os.getpid()}",  # type: ignore[arg-type]
            clusterwide=not namespaces,
            namespaces=namespaces,
            liveness_endpoint=endpoint,
        )
