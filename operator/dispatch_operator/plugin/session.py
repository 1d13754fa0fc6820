"""One call of a command that asks a cluster: the connection, the namespace, the time, and how a failure is told."""

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.api.quoting import escaped, quote
from dispatch_operator.cli.files import BOUND, UnreadableError
from dispatch_operator.cli.options import must_be_name, must_be_namespace
from dispatch_operator.kube.client import Client, NoClusterError, connected
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.plugin.printing import INTERRUPTED
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.reading import read_dispatch_backend, read_dispatch_start

T = TypeVar("T")
clock = time.time
"""Seconds since the epoch."""


@dataclass(frozen=True)
class Target:
    """Which cluster, and which namespace, as the options say; what they leave out the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class Kubectl:
    """Writes commands for people, which they can run as they stand."""

    namespace: str
    target: Target = Target()

    def __call__(self, *words: str, namespaced: bool = True) -> str:
        """Return a command of kubectl about this cluster and, as a rule, this namespace."""
        flags = ["-n", self.namespace] if namespaced else []
        for option in ("context", "kubeconfig"):
            if value := getattr(self.target, option):
                flags += [f"--{option}", value]
        return shlex.join(["kubectl", *words, *flags])


@dataclass(frozen=True)
class Session:
    """A connection, and the namespace that is asked about."""

    client: Client
    namespace: str
    kubectl: Kubectl

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return clock()

    async def start(self, name: str) -> DispatchStart:
        """Read a DispatchStart.

        Raises:
            UnreadableError: There is none of that name.
            ApiError: It can't be read.
        """
        must_be_name(name, "NAME", "a DispatchStart")
        return read_dispatch_start(await self._object(Kind.DISPATCH_START, name))

    async def backend(self, name: str) -> DispatchBackend:
        """Read a DispatchBackend.

        Raises:
            UnreadableError: There is none of that name.
            ApiError: It can't be read.
        """
        must_be_name(name, "NAME", "a DispatchBackend")
        return read_dispatch_backend(await self._object(Kind.DISPATCH_BACKEND, name))

    async def _object(self, kind: Kind, name: str) -> dict[str, object]:
        found = await self.client.get(kind, self.namespace, name, timeout=BOUND)
        if found is None:
            listed = self.kubectl("get", RESOURCES[kind].plural)
            raise UnreadableError(
                escaped(f"there is no {kind} {quote(name)} in the namespace {self.namespace}; {listed} lists them")
            )
        return found


def run(target: Target, work: Callable[[Session], Awaitable[T]]) -> T:
    """Connect to a cluster, and do what a command does there.

    Raises:
        UnreadableError: The cluster can't be asked, or refuses.
        SystemExit: It was ended by Ctrl-C.
    """
    if target.namespace is not None:
        must_be_namespace(target.namespace, "--namespace")

    async def connect_and_work() -> T:
        async with connected(target.kubeconfig, target.context) as client:
            namespace = target.namespace or client.namespace
            return await work(Session(client, namespace, Kubectl(namespace, target)))

    try:
        return asyncio.run(connect_and_work())
    except (NoClusterError, ApiError) as error:
        told = (
            f"{in_words(error)}; ask whoever gives rights in this cluster" if _lacks_right(error) else in_words(error)
        )
        raise UnreadableError(escaped(told)) from error
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _lacks_right(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.lacks_right


def in_words(error: Exception) -> str:
    """Return what a failed request means for whoever asked; a missing right is theirs, not the operator's."""
    match error:
        case ApiError() if _lacks_right(error):
            kind, _, where = error.target.partition(" ")
            if "/" not in where and kind in set(Kind) and RESOURCES[Kind(kind)].namespaced:
                return f"you may not {error.verb} {RESOURCES[Kind(kind)].plural} in {where or 'all namespaces'}"
            return f"you may not {error.verb} {error.target}"
        case NoClusterError():
            return f"no cluster to ask: {error}; name a kubeconfig with --kubeconfig or KUBECONFIG"
        case _:
            return str(error)


def listed_names(kind: Kind, target: Mapping[str, str], *, within: float, most: int) -> tuple[str, ...]:
    """Return the names of the objects of a namespace; none when they can't be had in so many seconds."""

    async def asked() -> tuple[str, ...]:
        async with connected(target.get("kubeconfig"), target.get("context")) as client:
            namespace = target.get("namespace") or client.namespace
            return await client.select(
                kind, namespace, timeout=within, read=lambda obj: str(obj["metadata"]["name"]), most=most
            )

    try:
        return asyncio.run(asked())
    except (NoClusterError, ApiError):
        return ()
