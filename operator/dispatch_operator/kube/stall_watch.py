"""Tells in the log when the event loop is blocked, and where: a blocked loop does nothing, and says nothing itself."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

logger = logging.getLogger(__name__)

STALLED_SECONDS = 5.0
"""Without a turn of the event loop. A Lease is lost after ten, and a pod's liveness fails after sixty."""
DEEPEST = 8
"""Frames that are shown of what blocks it."""


class StallWatch(threading.Thread):
    """A thread that looks whether the event loop of the thread that made it has turned lately."""

    def __init__(self, seconds: float) -> None:
        super().__init__(name="stall watch", daemon=True)
        self._seconds = seconds
        self._watched = threading.get_ident()
        self._ended = threading.Event()
        self._turned = time.monotonic()

    def turned(self) -> None:
        """Note that the event loop has just turned."""
        self._turned = time.monotonic()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def run(self) -> None:
        """Look until the end; each stall is told when it is noticed, and when it is over."""
        told = 0.0
        while not self._ended.wait(self._seconds / 2):
            turned = self._turned
            if time.monotonic() - turned > self._seconds and turned != told:
                told = turned
                logger.warning("the event loop has not turned for %.1f s; it is at %s", self._seconds, self._where())
            elif told and turned != told:
                logger.warning("the event loop turns again, after %.1f s", turned - told)
                told = 0.0

    def _where(self) -> str:
        frame = sys._current_frames().get(self._watched)  # noqa: SLF001 - its name is Python's own.
        stack = traceback.extract_stack(frame)[-DEEPEST:] if frame else []
        return " > ".join(f"{one.name} ({one.filename.rpartition('/')[2]}:{one.lineno})" for one in stack)


@asynccontextmanager
async def telling_of_stalls(seconds: float = STALLED_SECONDS) -> AsyncIterator[None]:
    """Watch the running event loop.

    Args:
        seconds: That it may be blocked untold.
    """
    watch = StallWatch(seconds)

    async def turn() -> None:
        while True:
            watch.turned()
            await asyncio.sleep(seconds / 2)

    turning = asyncio.create_task(turn())
    watch.start()
    try:
        yield
    finally:
        watch.end()
        turning.cancel()
        await asyncio.gather(turning, return_exceptions=True)
