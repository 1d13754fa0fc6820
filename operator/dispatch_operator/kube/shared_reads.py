"""Live reads that several reconciles share: thousands of DispatchStarts may wait for one backend."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

KEPT_SECONDS = 60.0
"""After which an answer is forgotten when another is asked for; what waits for its turn for longer reads anew."""


class _Read(NamedTuple, Generic[T]):
    begun: float
    answer: asyncio.Task[T]


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
        # Who asked first may be cancelled; the others still wait.
        return await asyncio.shield(read.answer)

    def _forget(self, what: Hashable, now: float) -> None:
        self._reads.pop(what, None)
        for oldest, read in list(self._reads.items()):
            if now - read.begun < KEPT_SECONDS:
                break
            del self._reads[oldest]
