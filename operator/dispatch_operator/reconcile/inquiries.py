"""When each job was last asked why it does not run: at most once a minute, and not all in the same second."""

import zlib
from dataclasses import dataclass, field

from dispatch_operator.kube.index import Key

PERIOD = 60.0
"""Seconds between two inquiries about one job."""
FIRST_AFTER = 15.0
"""Seconds that a job has to come up by itself before it is asked about."""
SPREAD = 25.0
"""Seconds over which the first inquiries are spread: all are made within a minute."""


def spread(name: str) -> float:
    """Return a number from 0 to 1 that is always the same for a name, and another for most others."""
    return zlib.crc32(name.encode()) / 2**32


@dataclass
class Inquiries:
    """A memory of this process alone. After a restart nothing is known, and inquiries are spread over one period."""

    _last: dict[Key, float] = field(default_factory=dict)
    _begun: float | None = None

    def last(self, key: Key, now: float) -> float:
        """Return when a job was last asked about, or what makes its turn come within a period, in seconds."""
        if self._begun is None:
            self._begun = now
        return self._last.get(key, self._begun + (spread("/".join(key)) - 1) * PERIOD)

    def made(self, key: Key, now: float) -> None:
        """Remember that a job is asked about now."""
        self._last[key] = now

    def forget(self, key: Key) -> None:
        """Forget a job that has ended or is gone."""
        self._last.pop(key, None)
