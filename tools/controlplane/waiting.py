"""Waiting for a condition, with a deadline and an error that says what was awaited."""

import threading
import time
from collections.abc import Callable
from typing import TypeAlias

POLL_SECONDS = 0.1

Condition: TypeAlias = Callable[[], str | None]
"""Returns None once it holds, and otherwise a phrase that says what is still missing."""


class NotInTimeError(TimeoutError):
    """A condition did not hold within its deadline."""


class StoppedError(RuntimeError):
    """The waiting was called off, because everything is to be stopped."""


class Waiter:
    """Polls conditions until they hold, until their deadline, or until the control plane is to stop.

    Args:
        stopping: Set by another thread when there is nothing more to wait for.
        check: Called between two polls; raises when waiting on is in vain, as after a process's death.
    """

    def __init__(self, stopping: threading.Event, check: Callable[[], None]) -> None:
        self._stopping = stopping
        self._check = check

    def until(self, what: str, condition: Condition, *, seconds: float) -> None:
        """Return once `condition` holds.

        Raises:
            NotInTimeError: It did not hold within `seconds`; the message names `what` and what was missing.
            StoppedError: The control plane is being stopped.
        """
        deadline = time.monotonic() + seconds
        while missing := condition():
            self._check()
            if time.monotonic() > deadline:
                raise NotInTimeError(f"{what}: not within {seconds:g} s ({missing})")
            if self._stopping.wait(POLL_SECONDS):
                raise StoppedError(f"stopped while waiting: {what}")
