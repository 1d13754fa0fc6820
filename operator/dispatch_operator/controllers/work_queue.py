"""Keys that wait for a reconcile: a key is reconciled by one task at a time, and has a backoff of its own."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from dispatch_operator.kube.backoff import FIRST_SECONDS, LAST_SECONDS, LONGEST_REFUSED_SECONDS, backoff, bounded
from dispatch_operator.reconcile.actions import Result

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
SLOW_SECONDS = 2.0
"""A reconcile that takes longer only waits: for a webhook's cache, an answer, or what the cluster does."""
SOON_SECONDS = 0.5
"""In which what is told of the objects of a key at rest is gathered, and looked at once."""
MOST_SLOW = 5
"""Times `max_concurrent`: reconciles of one group that may be under way, with those that only wait."""


class QueueState(NamedTuple):
    """How a queue fares, for metrics."""

    waiting: int
    """Keys that wait for a reconcile."""
    running: int
    delayed: int
    """Keys that are added at a set time."""
    oldest_waiting: float
    """Seconds for which the key that has waited longest has waited."""
    reconciles: int
    """How many ended."""
    retries: int
    """How many of them are made again with backoff."""


class WorkQueue(Generic[K]):
    """Reconciles keys; a key that is added while it waits is reconciled once.

    Groups of keys, such as those of a namespace, take turns: a thousand keys of one do not keep another waiting. So do
    reconciles that only wait: after a while they hold no slot that another needs.
    """

    def __init__(
        self,
        reconcile: Callable[[K], Awaitable[Result]],
        *,
        max_concurrent: int,
        group: Callable[[K], Hashable] = lambda _: "",
        at_rest: Callable[[K], bool] = lambda _: False,
    ) -> None:
        self._reconcile = reconcile
        self._max_concurrent = max_concurrent
        self._group = group
        self._at_rest = at_rest
        self._ready: dict[Hashable, deque[K]] = {}
        """The keys whose turn comes next, by their group; the first group's turn is the next."""
        self._added: dict[K, float] = {}
        """The keys to be reconciled, and since when: those that are ready, and those that were added while they are
        reconciled. The first one has waited longest."""
        self._woken: dict[K, float] = {}
        """When the keys that are reconciled were added."""
        self._added_soon: set[K] = set()
        """The keys that were added while they are reconciled, and may wait if they are at rest after that."""
        self._running: dict[K, asyncio.Task[None]] = {}
        self._slots: set[K] = set()
        """The keys of those that run and do not only wait."""
        self._running_of: Counter[Hashable] = Counter()
        """How many run, by their group."""
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._not_before: dict[K, float] = {}
        self._held = False
        self._closed = False
        self._reconciles = self._retries = 0

    @property
    def state(self) -> QueueState:
        """How it fares now."""
        oldest = next(iter(self._added.values()), None)
        return QueueState(
            waiting=len(self._added),
            running=len(self._running),
            delayed=len(self._timers),
            oldest_waiting=0.0 if oldest is None else asyncio.get_running_loop().time() - oldest,
            reconciles=self._reconciles,
            retries=self._retries,
        )

    def hold(self) -> None:
        """Begin nothing before `release`; keys may be added."""
        self._held = True

    def release(self) -> None:
        """Begin with what was added meanwhile."""
        self._held = False
        self._begin()

    def add(self, key: K) -> None:
        """Ask for a reconcile of a key, as soon as one of the concurrent ones ends.

        After a failure an event may end a backoff, but not before its first second and a server's Retry-After have
        passed: what fails, and is told of its own events, must not run hot. It never ends that of a refused status.
        """
        if self._closed or key in self._added:
            return
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if (wait := self._must_wait(key)) > 0 and key not in self._running:
            self._timers[key] = asyncio.get_running_loop().call_later(wait, self.add, key)
            return
        self._added[key] = asyncio.get_running_loop().time()
        if key not in self._running:
            self._make_ready(key)

    def add_soon(self, key: K) -> None:
        """Ask for a reconcile of a key: at once, or within `SOON_SECONDS` when it is at rest.

        Whether it is at rest, is asked when a reconcile that goes on has ended: most of what a Start makes is told
        of while the Start is still being made.
        """
        if key in self._running:
            self._added_soon.add(key)
        elif not self._at_rest(key):
            self.add(key)
        elif not self._closed and key not in self._added:
            self._add_at_latest(key, SOON_SECONDS)

    def _add_at_latest(self, key: K, delay: float) -> None:
        at = asyncio.get_running_loop().time() + delay
        timer = self._timers.get(key)
        if timer is None or timer.when() > at:
            if timer:
                timer.cancel()
            self._timers[key] = asyncio.get_running_loop().call_at(at, self.add, key)

    def woken(self, key: K) -> float:
        """Return when the key that is reconciled now was added, on the event loop's clock."""
        return self._woken[key]

    async def close(self, *, grace_period: float) -> None:
        """Take no more keys, begin none, and give the reconciles that go on some seconds to end by themselves."""
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

    def _make_ready(self, key: K) -> None:
        self._ready.setdefault(self._group(key), deque()).append(key)
        self._begin()

    def _begin(self) -> None:
        """Begin reconciles while there is room, one of each group in turn."""
        while len(self._slots) < self._max_concurrent and not (self._held or self._closed):
            group = next((group for group in self._ready if self._has_room(group)), None)
            if group is None:
                return
            keys = self._ready.pop(group)
            key = keys.popleft()
            if keys:
                self._ready[group] = keys
            self._woken[key] = self._added.pop(key)
            self._slots.add(key)
            self._running_of[group] += 1
            self._running[key] = asyncio.create_task(self._run(key))

    def _has_room(self, group: Hashable) -> bool:
        return self._running_of[group] < MOST_SLOW * self._max_concurrent

    async def _run(self, key: K) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._give_up_slot, key)
        try:
            self._plan(key, await self._safely(key))
        finally:
            slow.cancel()
            del self._running[key], self._woken[key]
            self._ended_one_of(self._group(key))
            is_added_soon = key in self._added_soon
            self._added_soon.discard(key)
            if self._added.pop(key, None) is not None:
                self.add(key)
            elif is_added_soon:
                self.add_soon(key)
            self._give_up_slot(key)

    def _ended_one_of(self, group: Hashable) -> None:
        self._running_of[group] -= 1
        if not self._running_of[group]:
            del self._running_of[group]

    def _give_up_slot(self, key: K) -> None:
        self._slots.discard(key)
        self._begin()

    async def _safely(self, key: K) -> Result:
        try:
            return await self._reconcile(key)
        except Exception:
            # A fault of ours in one object must not end the work on the others; it is logged whole, and tried again.
            logger.exception("reconciling %s failed", key)
            return Result(requeue=True)

    def _plan(self, key: K, result: Result) -> None:
        self._reconciles += 1
        self._retries += result.requeue
        delay = result.requeue_after
        if result.requeue:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            longest = LONGEST_REFUSED_SECONDS if result.refused else LAST_SECONDS
            delay = backoff(failures, result.retry_after, longest=longest)
            least = delay if result.refused else max(FIRST_SECONDS, bounded(result.retry_after))
            self._not_before[key] = asyncio.get_running_loop().time() + least
        else:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)
        if delay is not None and key not in self._added and not self._closed:
            self._timers[key] = asyncio.get_running_loop().call_later(delay, self.add, key)

    def _must_wait(self, key: K) -> float:
        return self._not_before.get(key, 0.0) - asyncio.get_running_loop().time()
