"""A served CRD of ours that is older than this operator: it drops what is recorded, and nothing may rest on that.

See docs/contract.md, Older CRDs.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from dispatch_operator.api.group import GROUP, VERSION
from dispatch_operator.kube.index import Key

logger = logging.getLogger(__name__)

STALE_SECONDS = 300.0
"""After which nothing is held back any more for a write that nobody tries again: it is tried each minute at least."""


class _Lacking(NamedTuple):
    key: Key
    fields: str
    since: float


@dataclass
class OutdatedCrd:
    """The one status write that shows it: until that succeeds nothing new is begun, for any object."""

    plural: str
    """Of the kind whose statuses are written."""
    clock: Callable[[], float] = time.monotonic
    _lacking: _Lacking | None = None

    def note(self, key: Key, fields: str) -> None:
        """Note the fields that the answer to the write of an object's status lacks."""
        known = self._known()
        if known is None:
            told = self._told(fields)
            logger.warning("%s/%s: %s; nothing is created, opened or recorded until then", *key, told)
        if known is None or known.key == key:
            self._lacking = _Lacking(key, fields, self.clock())

    def settle(self, key: Key) -> None:
        """Note that an object's status was kept whole, is as it should be, or that the object is gone."""
        if self._lacking is not None and self._lacking.key == key:
            self._lacking = None

    def holds_back(self, key: Key, *, records: bool) -> bool:
        """Tell whether a write for an object must wait; of the one that shows it, what records is tried again."""
        known = self._known()
        return known is not None and not (records and known.key == key)

    def problems(self) -> list[str]:
        """Say what keeps the operator from being ready."""
        known = self._known()
        return [] if known is None else [f"{self._told(known.fields)} ({known.key.namespace}/{known.key.name})"]

    def _told(self, fields: str) -> str:
        return f"the served CRD {self.plural}.{GROUP}, {VERSION}, does not keep {fields}: upgrade the CRDs"

    def _known(self) -> _Lacking | None:
        if self._lacking is not None and self.clock() - self._lacking.since > STALE_SECONDS:
            self._lacking = None
        return self._lacking
