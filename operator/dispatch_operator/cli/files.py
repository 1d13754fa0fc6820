"""The objects of the command line, from files or from a cluster, and what can't be used of them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend, InvalidObject, read_backend
from dispatch_operator.api.quoting import escaped, quote
from dispatch_operator.documents import STDIN, DocumentError, parse_object, read_text

UNREADABLE = 2
BOUND = 30.0
"""Seconds that a cluster may take to answer."""

Object = Mapping[str, Any]


class UnreadableError(click.ClickException):
    """A file, or what a cluster was asked for, that can't be used."""

    exit_code = UNREADABLE


def must_share_no_stdin(*sources: tuple[str, str | None]) -> None:
    """Refuse that two options, each with its file, read standard input.

    Raises:
        click.UsageError: They do.
    """
    if len(options := [option for option, source in sources if source == STDIN]) > 1:
        raise click.UsageError(f"only one file can be standard input, and {' and '.join(options)} are")


def read(source: str, api_version: str, *kinds: str) -> dict[str, Any]:
    """Read the one object of a file.

    Raises:
        UnreadableError: It can't be read, or holds something else.
    """
    return parsed(source, text_of(source), api_version, *kinds)


def text_of(source: str) -> str:
    """Return the text of a file.

    Raises:
        UnreadableError: It can't be read.
    """
    try:
        return read_text(source)
    except DocumentError as error:
        raise UnreadableError(escaped(str(error))) from error


def parsed(source: str, text: str, api_version: str, *kinds: str) -> dict[str, Any]:
    """Return the one object that the text of a file holds.

    Raises:
        UnreadableError: It holds something else.
    """
    try:
        return parse_object(source, text, api_version, kinds)
    except DocumentError as error:
        raise UnreadableError(escaped(str(error))) from error


def backend_of(source: str, raw: Object) -> Backend:
    """Return the DispatchBackend of a file.

    Raises:
        UnreadableError: The API server would not have stored it.
    """
    try:
        return read_backend(raw)
    except InvalidObject as error:
        raise UnreadableError(escaped(f"{source}: {error}")) from error


def from_cluster(
    kubeconfig: str | None, context: str | None, kind: Kind, namespace: str | None, name: str
) -> dict[str, Any]:
    """Read one object live.

    Raises:
        UnreadableError: The cluster can't be asked, or has no such object.
    """
    # The other uses of the command line need no cluster, and do not wait for its client to load.
    from dispatch_operator.kube.client import NoClusterError, connected  # noqa: PLC0415
    from dispatch_operator.kube.errors import ApiError  # noqa: PLC0415

    async def found() -> dict[str, Any] | None:
        async with connected(kubeconfig, context) as client:
            return await client.get(kind, namespace, name, timeout=BOUND)

    try:
        stored = asyncio.run(found())
    except (NoClusterError, ApiError) as error:
        raise UnreadableError(escaped(str(error))) from error
    if stored is None:
        raise UnreadableError(escaped(f"there is no {kind} {quote(name)}" + (f" in {namespace}" if namespace else "")))
    return stored
