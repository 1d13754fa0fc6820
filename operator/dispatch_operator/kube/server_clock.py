"""The API server's clock, as its answers tell it: what it stamps and what the operator notes can then be compared."""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import lru_cache

GRAIN_SECONDS = 1.0
"""An answer's Date is in whole seconds."""


@lru_cache(maxsize=16)
def _seconds(date: str) -> float | None:
    """Read a Date, which many answers of one second share."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


class ServerClock:
    """Tells the time in seconds since the epoch. It begins with the operator's own, and never follows its being set."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._ahead = wall() - monotonic()
        """Of the monotonic clock."""

    def __call__(self) -> float:
        """Return the time at the API server."""
        return self.monotonic() + self._ahead

    def hear(self, date: str | None, sent: float) -> None:
        """Learn from an answer, which was made between its request and now; it may be no earlier and no later.

        Args:
            date: Its Date.
            sent: When the request was sent, on the monotonic clock.
        """
        told = _seconds(date or "")
        if told is None:
            return
        earliest, latest = told - self.monotonic(), told + GRAIN_SECONDS - sent
        self._ahead = min(max(self._ahead, earliest), latest)
