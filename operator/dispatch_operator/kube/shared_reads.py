"""Live reads that several reconciles share: thousands of DispatchStarts may wait for one backend."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

KEPT_SECONDS = 60.0
"""After which an answer is forgotten when another is asked for; what waits for its turn for longer reads anew."""


@dataclass
class _Read(Generic[T]):
    begun: float
    answer: asyncio.Task[T]
    waiting: int = 0
    """How many wait for the answer."""


class SharedReads(Generic[T]):
    """Makes one read for all who were woken before it began: to each of them it is as live as one of its own."""

    def __init__(self) -> None:
        self._reads: dict[Hashable, _Read[T]] = {}
        """By what is read, in the order in which they began."""

    async def read(self, what: Hashable, woken: float, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the answer of a read that began after a time.

        Args:
            what: Is read.
            woken: When what asks for it was woken, on the event loop's clock.
            make: Reads.
        """
        now = asyncio.get_running_loop().time()
        read = self._reads.get(what)
        if read is None or read.begun < woken:
            self._forget(what, now)
            read = self._reads[what] = _Read(now, asyncio.create_task(make()))
        read.waiting += 1
        try:
            # Who asked first may be cancelled while others still wait.
            return await asyncio.shield(read.answer)
        finally:
            read.waiting -= 1
            if not read.waiting and not read.answer.done():
                read.answer.cancel()
                if self._reads.get(what) is read:
                    del self._reads[what]

    def _forget(self, what: Hashable, now: float) -> None:
        self._reads.pop(what, None)
        for oldest, read in list(self._reads.items()):
            if now - read.begun < KEPT_SECONDS:
                break
            del self._reads[oldest]
