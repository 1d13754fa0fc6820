"""Keys that wait for a reconcile: a key is reconciled by one task at a time, and has a backoff of its own."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from dispatch_operator.reconcile.actions import Result

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
FIRST_BACKOFF, LAST_BACKOFF = 1.0, 60.0
"""Seconds (docs/contract.md, Retries)."""


class WorkQueue(Generic[K]):
    """Reconciles keys; a key that is added while it waits is reconciled once."""

    def __init__(self, reconcile: Callable[[K], Awaitable[Result]], *, max_concurrent: int) -> None:
        self._reconcile = reconcile
        self._slots = asyncio.Semaphore(max_concurrent)
        self._waiting: set[K] = set()
        self._running: dict[K, asyncio.Task[None]] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._not_before: dict[K, float] = {}
        self._closed = False

    def add(self, key: K) -> None:
        """Ask for a reconcile of a key, as soon as one of the concurrent ones ends.

        After a failure an event may end a backoff, but not before its first second and a server's Retry-After have
        passed: what fails, and is told of its own events, must not run hot.
        """
        if self._closed:
            return
        if timer := self._timers.pop(key, None):
            timer.cancel()
        self._waiting.add(key)
        if key in self._running:
            return
        if (wait := self._must_wait(key)) > 0:
            self._timers[key] = asyncio.get_running_loop().call_later(wait, self.add, key)
        else:
            self._running[key] = asyncio.create_task(self._run(key))

    async def close(self, *, grace_period: float) -> None:
        """Take no more keys, and give the reconciles that go on some seconds to end by themselves."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        running = set(self._running.values())
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=grace_period)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, key: K) -> None:
        try:
            while key in self._waiting and not self._closed and self._must_wait(key) <= 0:
                async with self._slots:
                    if self._closed:
                        # The queue was closed while this key waited for its turn: nothing new is begun.
                        return
                    self._waiting.discard(key)
                    result = await self._safely(key)
                self._plan(key, result)
        finally:
            del self._running[key]
        if key in self._waiting:
            self.add(key)

    async def _safely(self, key: K) -> Result:
        try:
            return await self._reconcile(key)
        except Exception:
            # A fault of ours in one object must not end the work on the others; it is logged whole, and tried again.
            logger.exception("reconciling %s failed", key)
            return Result(requeue=True)

    def _plan(self, key: K, result: Result) -> None:
        delay = result.requeue_after
        if result.requeue:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            least = max(FIRST_BACKOFF, result.retry_after or 0.0)
            self._not_before[key] = asyncio.get_running_loop().time() + least
            delay = max(backoff(failures), least)
        else:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)
        if delay is not None and key not in self._waiting and not self._closed:
            self._timers[key] = asyncio.get_running_loop().call_later(delay, self.add, key)

    def _must_wait(self, key: K) -> float:
        return self._not_before.get(key, 0.0) - asyncio.get_running_loop().time()


def backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: doubling from 1 to 60, with jitter."""
    whole = min(FIRST_BACKOFF * 2.0 ** min(failures - 1, 10), LAST_BACKOFF)
    return max(FIRST_BACKOFF, whole * random.uniform(0.5, 1.0))  # noqa: S311 - spread, not a secret.
