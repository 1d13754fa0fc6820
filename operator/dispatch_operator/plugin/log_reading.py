"""Prints what the trainer's pods have written, as kubectl does for one pod."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from typing import NamedTuple

import click

from dispatch_operator.api.group import LABEL_JOB, LABEL_REPLICATED_JOB, LABEL_SUBMISSION, NODE
from dispatch_operator.api.kinds import Kind
from dispatch_operator.cli.files import BOUND
from dispatch_operator.cli.output import tell, written
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.plugin.facts import RAN
from dispatch_operator.plugin.session import Session
from dispatch_operator.plugin.telling import CLEARED_AWAY

MOST_PODS = 1_000
AT_ONCE = 50
"""Logs that are followed at once, at most."""


class Wanted(NamedTuple):
    """What of the logs is wanted."""

    container: str
    follow: bool
    tail: int | None
    """None for all lines."""
    prefix: bool | None
    """None for a prefix when there are several pods."""


async def print_logs(session: Session, name: str, wanted: Wanted) -> None:
    """Print the logs of the trainer's pods.

    Raises:
        UnreadableError: There is no such DispatchStart.
        click.ClickException: There is no pod of it, or no log of one.
        ApiError: The pods can't be listed, or the logs can't be read.
    """
    start = await session.start(name)
    request = start.request
    labels = {LABEL_JOB: request.job, LABEL_SUBMISSION: str(request.submission), LABEL_REPLICATED_JOB: NODE}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found = await session.client.select(
        Kind.POD,
        session.namespace,
        timeout=BOUND,
        read=lambda obj: str(obj["metadata"]["name"]),
        most=MOST_PODS,
        label_selector=selector,
    )
    pods = sorted(found, key=_in_order)
    why = session.kubectl("dispatch", "explain", name)
    if not pods:
        if start.status.phase in RAN:
            raise click.ClickException(
                f"{name} is {start.status.phase}, and no pod of its trainer exists any more: {CLEARED_AWAY}"
            )
        phase = start.status.phase or "not looked at yet"
        raise click.ClickException(f"{name} is {phase}, and no pod of its trainer exists; {why} says why")
    if wanted.follow and len(pods) > AT_ONCE:
        raise click.ClickException(
            f"{len(pods)} pods are more than can be followed at once ({AT_ONCE}); leave --follow out"
        )
    has_prefix = len(pods) > 1 if wanted.prefix is None else wanted.prefix
    readings = [_print(session, pod, wanted, f"[{pod}] " if has_prefix else "") for pod in pods]
    printed = await asyncio.gather(*readings) if wanted.follow else [await reading for reading in readings]
    if not any(printed):
        raise click.ClickException(f"no log of a pod of {name} can be had; {why} says whether they run")


def _in_order(pod: str) -> list[tuple[int, str]]:
    """Sort by the numbers in a name, so that pod 10 comes after pod 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", pod)]


async def _print(session: Session, pod: str, wanted: Wanted, prefix: str) -> bool:
    """Print the log of one pod; False when it has none. What goes wrong is told."""
    has_begun = False
    try:
        async with session.client.log(
            session.namespace,
            pod,
            timeout=BOUND,
            container=wanted.container,
            follow=wanted.follow,
            tail=wanted.tail,
        ) as chunks:
            has_begun = True
            async for line in _lines(chunks):
                with written():
                    sys.stdout.buffer.write(prefix.encode() + line)
                    sys.stdout.buffer.flush()
    except ApiError as error:
        if error.lacks_right:
            raise
        tell(f"{pod}: {error.message}")
    return has_begun


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield whole lines: the pods' must not be mixed within one."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for one in whole:
            yield one + b"\n"
    if rest:
        yield rest + b"\n"
