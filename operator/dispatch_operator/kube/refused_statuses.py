"""Statuses that the API server refuses for good, such as one that is too large or that its CRD does not allow.

See docs/contract.md, Retries.
"""

import logging
from dataclasses import dataclass, field

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.metrics import instruments

logger = logging.getLogger(__name__)


@dataclass
class RefusedStatuses:
    """Of one kind of object: a refused status is told once, and counted each time that it is tried again."""

    kind: str
    """As the metric shows it."""
    _told: set[Key] = field(default_factory=set)

    def note(self, key: Key, error: ApiError) -> None:
        """Tell of a write of a status that failed; what does not fail for good is told each time."""
        if not error.for_good:
            logger.warning("%s/%s: %s", *key, error)
            return
        instruments.REFUSED_STATUSES.labels(self.kind).inc()
        if key not in self._told:
            self._told.add(key)
            logger.warning("%s/%s: the status is refused, and tried again ever more seldom: %s", *key, error)

    def forget(self, key: Key) -> None:
        """Forget an object whose status was taken, or that is gone."""
        self._told.discard(key)
