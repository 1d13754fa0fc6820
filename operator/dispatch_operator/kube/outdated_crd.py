"""A served CRD of ours that is older than this operator: it drops or refuses what is recorded, so nothing new begins.

See docs/contract.md, Older CRDs.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

from dispatch_operator.api.group import GROUP, VERSION
from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.api.models.status import Status
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key

logger = logging.getLogger(__name__)

NO_FIELD = "<nil>"

S = TypeVar("S", bound=Status)

STALE_SECONDS = 300.0
"""After which nothing is held back any more for a write that nobody tries again: it is tried each minute at least."""


class _Unkept(NamedTuple):
    """The one write that shows it."""

    kind: Kind
    key: Key
    how: str
    sent: Status
    stands: Status
    since: float


@dataclass
class OutdatedCrd:
    """The one status write that shows it: until that succeeds nothing new is begun, for any object."""

    clock: Callable[[], float] = time.monotonic
    _unkept: _Unkept | None = None

    def compare(self, kind: Kind, key: Key, sent: Status, kept: Status) -> bool:
        """Note what an answer to the write of a status lacks of what was sent; tell whether it lacks anything."""
        fields = [] if sent == kept else _lacking(sent, kept)
        if fields:
            self._note(kind, key, f"does not keep {', '.join(fields)}", sent, kept)
        else:
            self.settle(kind, key)
        return bool(fields)

    def refuse(self, kind: Kind, key: Key, sent: Status, stands: Status, error: ApiError) -> bool:
        """Note the fields of a status that are refused as not valid; tell whether it was for them alone.

        What is not valid in the rest of an object concerns that object, and no other.
        """
        # Of what stands beside other faults Kubernetes says that some rules were not checked, and names no field.
        fields = [field for field in error.invalid_fields if field != NO_FIELD]
        if not fields or not all(field.startswith("status.") for field in fields):
            return False
        self._note(kind, key, f"refuses {', '.join(fields)}", sent, stands)
        return True

    def settle(self, kind: Kind, key: Key) -> None:
        """Note that an object's status was kept whole, is as it should be, or that the object is gone."""
        if self._unkept is not None and self._unkept[:2] == (kind, key):
            self._unkept = None

    def holds_back(self, kind: Kind, key: Key, *, records: bool) -> bool:
        """Tell whether a write for an object must wait; of the one that shows it, what records is tried again."""
        known = self._known()
        return known is not None and not (records and known[:2] == (kind, key))

    def to_write_again(self, kind: Kind, key: Key, stands: S) -> S | None:
        """Return the status whose write shows it, when it is this object's, and nobody has written another since."""
        known = self._known()
        if known is None or known[:2] != (kind, key) or known.stands != stands:
            return None
        return cast("S", known.sent)

    @property
    def is_known(self) -> bool:
        """True while a write shows it: this operator is not the one to work."""
        return self._known() is not None

    def problems(self) -> list[str]:
        """Say what keeps the operator from being ready."""
        known = self._known()
        return [] if known is None else [f"{_told(known.kind, known.how)} ({known.key.namespace}/{known.key.name})"]

    def _note(self, kind: Kind, key: Key, how: str, sent: Status, stands: Status) -> None:
        known = self._known()
        if known is None:
            told = _told(kind, how)
            logger.warning("%s/%s: %s; nothing is created, opened or recorded until then", *key, told)
        if known is None or known[:2] == (kind, key):
            self._unkept = _Unkept(kind, key, how, sent, stands, self.clock())

    def _known(self) -> _Unkept | None:
        if self._unkept is not None and self.clock() - self._unkept.since > STALE_SECONDS:
            self._unkept = None
        return self._unkept


def _lacking(sent: Status, kept: Status) -> list[str]:
    told = kept.as_json()
    return [f"status.{field}" for field, value in sent.as_json().items() if told.get(field) != value]


def _told(kind: Kind, how: str) -> str:
    return f"the served CRD {RESOURCES[kind].plural}.{GROUP}, {VERSION}, {how}: upgrade the CRDs"
