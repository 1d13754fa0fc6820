"""Whether a reflector's stream is up, for how long it has been down, and how often it failed."""

from collections.abc import Callable

PROVEN_SECONDS = 10.0
"""After a failure, a stream that is silent counts as up once it has been open for so long."""


class StreamHealth:
    """Is told what becomes of the streams of one reflector, one after the other."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._down_since = clock()
        self._opened: float | None = None
        self._progressed = False
        self.failures = 0
        """In a row: since a stream was up."""
        self.restarts = 0
        """How often a stream was renewed because of a fault."""
        self.last_fault = ""

    @property
    def since(self) -> float | None:
        """When the stream went down, on the clock; None while it is up."""
        return None if self._up else self._down_since

    @property
    def _up(self) -> bool:
        if self._opened is None:
            return False
        # A server that accepts a watch only to break it must not look healthy in between.
        return not self.failures or self._progressed or self._clock() - self._opened >= PROVEN_SECONDS

    def begin_anew(self) -> None:
        """Note that a stream can be made again, after nothing could be for reasons that are no fault."""
        self._down_since = self._clock()
        self.failures = 0

    def opened(self) -> None:
        """Note that the server has begun to answer a watch."""
        self._opened = self._clock()
        self._progressed = False

    def progressed(self) -> None:
        """Note that a watch has brought something new."""
        self._progressed = True

    def ended(self) -> None:
        """Note that a stream is over, for whatever reason."""
        if self._up:
            self.failures = 0
            self._down_since = self._clock()
        self._opened = None

    def failed(self, fault: str) -> None:
        """Note why a list or a watch failed."""
        self.ended()
        self.failures += 1
        self.restarts += 1
        self.last_fault = fault
