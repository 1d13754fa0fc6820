"""Waits for the end of a Start, whichever it is."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

from dispatch_operator.api.enums import Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.cli.output import tell
from dispatch_operator.kube.known_objects import Identity, Object
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from dispatch_operator.plugin.printing import print_json, print_lines
from dispatch_operator.plugin.session import Session
from dispatch_operator.plugin.telling import in_full
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.reading import read_dispatch_start

TIMED_OUT = 124
"""As the program timeout has it."""
DELETED = 6
EXIT_CODES: Mapping[Phase, int] = {
    Phase.SUCCEEDED: 0,
    Phase.REFUSED: 1,
    Phase.FAILED: 3,
    Phase.LOST: 4,
    Phase.CANCELLED: 5,
}
"""By the phase in which it ends."""


class _Following:
    """Is told of one DispatchStart, and knows when it has ended or is gone."""

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self._shown = ""
        self.last: DispatchStart | None = None
        self.over = asyncio.Event()

    def added_or_modified(self, obj: Object, *, listed: bool) -> None:
        """Take a version of it; another one that took its name is not the one that is waited for."""
        del listed
        start = read_dispatch_start(obj)
        if start.metadata.uid != self._uid:
            self.last = None
            self.over.set()
            return
        self.last = start
        phase = start.status.phase
        if phase is not None and phase.is_end:
            self.over.set()
        elif (line := progress(start)) != self._shown:
            self._shown = line
            tell(line)

    def deleted(self, identity: Identity) -> None:
        """Take note that it is gone."""
        del identity
        self.last = None
        self.over.set()

    def synced(self) -> None:
        """Take note that the first list is complete; when it is not in it, it is gone."""
        if self.last is None:
            self.over.set()


async def wait(session: Session, name: str, seconds: float | None, *, as_json: bool) -> int:
    """Wait until a Start has ended, for some seconds at most, and print how.

    Returns:
        The exit code.

    Raises:
        UnreadableError: There is no such DispatchStart.
        ApiError: It can't be read.
    """
    first = await session.start(name)
    following = _Following(first.metadata.uid)
    following.last = first
    if first.status.phase is None or not first.status.phase.is_end:
        selector = f"metadata.name={name}"
        one = ListWatch(session.client, Kind.DISPATCH_START, session.namespace, field_selector=selector)
        watching = asyncio.create_task(Reflector(one, following, time.monotonic).run())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await following.over.wait()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
    return _told(name, following.last, as_json=as_json)


def _told(name: str, start: DispatchStart | None, *, as_json: bool) -> int:
    phase = start.status.phase if start else None
    outcome = start.status.outcome if start else None
    code = DELETED if start is None else EXIT_CODES.get(phase or Phase.PENDING, TIMED_OUT)
    if as_json:
        told = {"name": name, "phase": phase, "ended": code != TIMED_OUT, "exitCode": code}
        print_json({**told, "outcome": outcome.as_json() if outcome else None})
    elif start is None:
        print_lines([f"{name} was deleted"])
    elif code == TIMED_OUT:
        print_lines([f"{name} has not ended in time: {progress(start).partition(': ')[2]}"])
    else:
        cause = f" ({outcome.cause})" if outcome and outcome.cause and outcome.cause != phase else ""
        said = f": {in_full(start.status, outcome.message)}" if outcome and outcome.message else ""
        print_lines([f"{name} is {phase}{cause}{said}"])
    return code


def progress(start: DispatchStart) -> str:
    """Return where a Start is, in a line."""
    said = in_full(start.status)
    return f"{start.metadata.name}: {start.status.phase or 'not looked at yet'}" + (f": {said}" if said else "")
