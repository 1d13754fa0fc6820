"""What a watch missed: kopf lists a resource again when its watch can't go on, and tells of nothing that is not listed.

The objects that were cached before, and are not listed any more, were deleted meanwhile.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT
from dispatch_operator.records.reading import AnyRecord

logger = logging.getLogger(__name__)


@dataclass
class Relists:
    """Notices that a resource was listed again."""

    _watched: set[str] = field(default_factory=set)
    _listed: set[str] = field(default_factory=set)

    def answered(self, path: str, *, watch: bool) -> bool:
        """Tell whether a request of kopf's, which was answered, begins a watch after another list than the first."""
        if not watch:
            self._listed.add(path)
            return False
        again = path in self._watched and path in self._listed
        self._watched.add(path)
        self._listed.discard(path)
        return again


@dataclass(frozen=True)
class MissedDeletions:
    """Finds what was deleted while a resource was not watched."""

    client: Client
    store: Store
    label_selectors: Mapping[Kind, str]
    gone: Callable[[AnyRecord], None]
    """Called with the last known state of each such object."""

    async def reconcile(self, key: Key) -> Result:
        """Compare what is stored of a kind with what is there; the key is a namespace, empty for all, and the kind."""
        kind, namespace = Kind(key.name), key.namespace or None
        held = self.store.of_kind(kind, namespace)
        try:
            # Only what was stored before this list can be missing from it because it was deleted.
            there = await self.client.select(
                kind, namespace, timeout=DEFAULT_CALL_TIMEOUT, label_selector=self.label_selectors.get(kind, "")
            )
        except ApiError as error:
            logger.warning("%s can't be listed again: %s", kind, error)
            return Result(requeue=True, retry_after=error.retry_after)
        uids = {obj["metadata"]["uid"] for obj in there}
        for obj in held:
            if obj.metadata.uid not in uids:
                self.gone(obj)
        return Result()
