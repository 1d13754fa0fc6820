"""Waiting for a condition, with a deadline, and seeing that one holds all the time."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.1


def until(what: str, condition: Callable[[], T | None], *, seconds: float = 60.0) -> T:
    """Return what `condition` returns, as soon as that is true.

    Raises:
        TimeoutError: It was not within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        if result := condition():
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        threading.Event().wait(POLL_SECONDS)


def throughout(what: str, condition: Callable[[], bool], *, seconds: float) -> None:
    """See a condition hold, again and again, for so many seconds.

    Raises:
        AssertionError: It did not hold once.
    """
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        assert condition(), f"no longer, after {passed:.1f} s: {what}"
        threading.Event().wait(POLL_SECONDS)


async def until_true(condition: Callable[[], object], *, seconds: float = 1000.0) -> None:
    """Wait in an event loop, whose clock may be virtual, until a condition holds.

    Raises:
        TimeoutError: It did not within `seconds` of that clock.
    """
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for is a server's to tell.
            await asyncio.sleep(POLL_SECONDS)
