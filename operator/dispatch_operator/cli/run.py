"""The command `dispatch-operator run` (docs/contract.md, The run command)."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, NamedTuple

import click

from dispatch_operator.api.label_selector import FORMS, LabelSelector, LabelSelectorError
from dispatch_operator.api.quoting import quote
from dispatch_operator.cli.log import configure
from dispatch_operator.cli.options import address_in, must_be_name, must_be_namespace
from dispatch_operator.cli.output import Command
from dispatch_operator.controllers.frame import Frame
from dispatch_operator.kube.client import NoClusterError, connected
from dispatch_operator.kube.health import Health, answering
from dispatch_operator.kube.leader_election import Lease, LeaseLostError, lead
from dispatch_operator.kube.outdated_crd import OutdatedCrd
from dispatch_operator.kube.reflectors import ReflectorEndedError, UnfitError
from dispatch_operator.kube.stall_watch import telling_of_stalls
from dispatch_operator.metrics.instruments import LEADER


@click.command("run", cls=Command)
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
    help="Answer GET /healthz and /readyz here, for a pod's probes, and /metrics for Prometheus.",
)
@click.option(
    "--lease",
    metavar="NAMESPACE/NAME",
    help="Work only while holding this Lease; of several operators the others wait. It is created when missing.",
)
@click.option(
    "--selector",
    "-l",
    metavar="SELECTOR",
    help="Serve the DispatchStarts whose labels it selects, as one shard of several with the same --lease.",
)
def run_command(  # noqa: PLR0913 - one argument an option.
    *,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    kubeconfig: str | None,
    log_format: str,
    verbose: bool,
    health: str | None,
    lease: str | None,
    selector: str | None,
) -> None:
    """Run the operator until SIGTERM or SIGINT.

    It takes every DispatchStart of its namespaces through its steps, opens and holds its gate, and mirrors its job.
    Nothing is kept but in the cluster: it may be stopped and started at any time.

    \b
    Exit code:
      0  stopped by SIGTERM or SIGINT
      1  there is no cluster to connect to, the Lease was lost, or it was given up: after five minutes without a watch,
         or until the served CRDs were no longer older than this operator
      2  an option can't be used, such as an address that can't be listened on

    \b
    Examples:
      dispatch-operator run --namespace team-a --namespace team-b
      dispatch-operator run --all-namespaces --log-format json --health 0.0.0.0:8080
      dispatch-operator run --all-namespaces --lease dispatch/operator --selector shard=a
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    if namespaces and all_namespaces:
        raise click.UsageError("--namespace and --all-namespaces can't be combined: leave one of them out")
    if not namespaces and not all_namespaces:
        raise click.UsageError("say which namespaces to serve: --namespace NAME (repeatable) or --all-namespaces")
    for namespace in namespaces:
        must_be_namespace(namespace, "--namespace")
    if selector is not None and lease is None:
        raise click.UsageError(
            "--selector needs --lease NAMESPACE/NAME, the same for all shards: one of them cares for the backends"
        )
    address = None if health is None else address_in(health, "--health")
    options = Options(namespaces, kubeconfig, address, _lease(lease, selector), _selector(selector))
    configure(as_json=log_format == "json", verbose=verbose)
    try:
        asyncio.run(_run(options))
    except NoClusterError as error:
        raise click.ClickException(f"no cluster to connect to: {error}; name another with --kubeconfig") from error
    except (LeaseLostError, ReflectorEndedError, UnfitError) as error:
        raise click.ClickException(str(error)) from error


class Options(NamedTuple):
    """What the command line asked for."""

    namespaces: tuple[str, ...]
    """To serve; empty for all."""
    kubeconfig: str | None
    address: tuple[str, int] | None
    """Where the pod's probes are answered."""
    lease: Lease | None
    """Of all shards, where there are several."""
    selector: LabelSelector | None
    """Of the DispatchStarts to serve; None for all."""


async def _run(options: Options) -> None:
    """Connect, wait for the Lease when there is one, and serve until a signal comes."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(telling_of_stalls())
        client = await stack.enter_async_context(connected(options.kubeconfig))
        health = Health(lambda: client.authorized)
        outdated = OutdatedCrd()

        def is_fit() -> bool:
            return not outdated.is_known

        if options.address:
            await _answer(stack, health, *options.address)

        async def serve() -> None:
            frame = Frame(client, options.namespaces, options.selector, outdated)
            health.unready = frame.unready
            health.remarks = frame.reflectors.absences
            health.collectors = (frame.collector,)
            LEADER.set(1)
            elect = partial(lead, client.api, lease, is_fit=is_fit) if lease and options.selector else None
            serving = frame.serve(_identity(), elect)
            try:
                # Without a Lease nobody waits for this one's place.
                await (frame.reflectors.while_fit(serving) if lease else serving)
            finally:
                health.unready = None
                health.remarks = list
                health.collectors = ()
                LEADER.set(0)

        lease = options.lease
        own = lease.of_shard(options.selector.text) if lease and options.selector else lease
        await _until_signalled(lead(client.api, own, serve, is_fit) if own else serve())


async def _answer(stack: AsyncExitStack, health: Health, host: str, port: int) -> None:
    """Answer the pod's probes until the stack is left.

    Raises:
        click.BadParameter: The address can't be listened on.
    """
    try:
        await stack.enter_async_context(answering(health, host, port))
    except (OSError, UnicodeError) as error:
        text = f"can't listen on {quote(host)} port {port}: {_reason(error)}"
        raise click.BadParameter(text, param_hint="--health") from error


def _reason(error: OSError | UnicodeError) -> str:
    """Return the system's own words, without the address that asyncio puts around them."""
    if isinstance(error, OSError) and error.errno is not None:
        # A name's failure to resolve has numbers of its own.
        return os.strerror(error.errno) if error.errno in errno.errorcode else str(error.strerror)
    return str(error)


async def _until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Run until a signal comes before kopf, which then handles signals itself, has begun."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def _identity() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def _selector(selector: str | None) -> LabelSelector | None:
    if selector is None:
        return None
    try:
        return LabelSelector.parse(selector)
    except LabelSelectorError as error:
        text = f"{quote(selector)} is not a label selector: {FORMS}"
        raise click.BadParameter(text, param_hint="--selector") from error


def _lease(lease: str | None, selector: str | None) -> Lease | None:
    if lease is None:
        return None
    namespace, slash, name = lease.partition("/")
    if not slash:
        raise click.BadParameter(f"{quote(lease)} is not NAMESPACE/NAME", param_hint="--lease")
    must_be_namespace(namespace, "--lease")
    must_be_name(name, "--lease", "a Lease")
    made = Lease(namespace, name, _identity())
    if selector is not None:
        must_be_name(made.of_shard(selector).name, "--lease", "a Lease of a shard")
    return made
