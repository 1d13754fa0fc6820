"""A table of DispatchStarts that follows what happens to them."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.quoting import escaped
from dispatch_operator.cli.files import BOUND
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.known_objects import Identity, Object
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from dispatch_operator.plugin import printing
from dispatch_operator.plugin.session import Session
from dispatch_operator.plugin.telling import in_full
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.reading import read_dispatch_start

if TYPE_CHECKING:
    from rich.table import Table

DELETED = "Deleted"
"""In the place of a phase."""
SECONDS = 1.0
"""Between two looks at the ages."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_TWO_OF_A_UNIT = 2


class Row(NamedTuple):
    """A line of the table."""

    namespace: str
    name: str
    phase: str
    reason: str
    submission: str
    created: float
    message: str


def row(start: DispatchStart) -> Row:
    """Return the line of a Start."""
    meta, ready = start.metadata, start.status.condition(Condition.READY)
    created = times.read(meta.creation_timestamp) or 0.0
    phase = start.status.phase or "-"
    submission = f"{start.request.job}/{start.request.submission}"
    reason, message = ready.reason if ready else "-", in_full(start.status)
    return Row(meta.namespace, meta.name, phase, reason, submission, created, message)


class Rows:
    """Keeps a line for each Start, and calls back with each that is new or has changed, or is gone."""

    def __init__(self, changed: Callable[[Row], None]) -> None:
        self._changed = changed
        self._rows: dict[Key, Row] = {}

    def __iter__(self) -> Iterator[Row]:
        return iter(sorted(self._rows.values()))

    def added_or_modified(self, obj: Object, *, listed: bool) -> None:
        """Take a version of a Start."""
        del listed
        made = row(read_dispatch_start(obj))
        key = Key(made.namespace, made.name)
        if self._rows.get(key) != made:
            self._rows[key] = made
            self._changed(made)

    def deleted(self, identity: Identity) -> None:
        """Take note that one is gone."""
        if gone := self._rows.pop(Key(identity.namespace, identity.name), None):
            self._changed(gone._replace(phase=DELETED))

    def synced(self) -> None:
        """Take note that the first list is complete."""


async def watch(session: Session, *, everywhere: bool, selector: str) -> None:
    """Show the Starts of the namespace, or of all, until Ctrl-C.

    Raises:
        ApiError: They can't be listed.
    """
    namespace = None if everywhere else session.namespace
    # That they can't be listed is told now; what breaks later is made again.
    await session.client.list_page(Kind.DISPATCH_START, namespace, timeout=BOUND, limit=1, label_selector=selector)
    starts = ListWatch(session.client, Kind.DISPATCH_START, namespace, label_selector=selector)
    console = printing.console()
    if console is None:
        rows = Rows(lambda made: printing.print_lines([line(made, everywhere=everywhere)]))
        await Reflector(starts, rows, time.monotonic).run()
    from rich.live import Live  # noqa: PLC0415 - only needed on a terminal.

    rows = Rows(lambda _: None)
    following = asyncio.create_task(Reflector(starts, rows, time.monotonic).run())
    try:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(drawn(rows, session.now, everywhere=everywhere), refresh=True)
                await asyncio.sleep(SECONDS)
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


def drawn(rows: Iterable[Row], now: float, *, everywhere: bool) -> "Table":
    """Return the table for a terminal; what does not fit is cut off the messages."""
    from rich.table import Table  # noqa: PLC0415 - only needed on a terminal.

    table = Table(box=None, pad_edge=False, expand=True)
    for title in (*(["NAMESPACE"] if everywhere else []), "NAME", "PHASE", "REASON", "AGE"):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    table.add_column("MESSAGE", no_wrap=True, overflow="ellipsis", ratio=1)
    for made in rows:
        shown = [made.name, made.phase, made.reason, age(now - made.created), made.message]
        cells = ([made.namespace] if everywhere else []) + shown
        table.add_row(*(escaped(text) for text in cells), style=printing.style_of(made.phase))
    return table


def line(made: Row, *, everywhere: bool) -> str:
    """Return a change as a line: what grep and awk take, the message last."""
    place = f"{made.namespace}/" if everywhere else ""
    return f"{place}{made.name} {made.phase} {made.reason} {made.submission} {made.message}".rstrip()


def age(seconds: float) -> str:
    """Return an age as kubectl does: two hours as 2h, and ninety minutes as 90m."""
    for unit, letter in _UNITS:
        if seconds >= unit * _TWO_OF_A_UNIT:
            return f"{int(seconds // unit)}{letter}"
    return f"{max(int(seconds), 0)}s"
