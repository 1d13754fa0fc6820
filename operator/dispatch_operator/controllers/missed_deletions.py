"""What a watch missed: kopf lists a resource again when its watch can't go on, and tells of nothing that is not listed.

The objects that were cached before, and are not listed any more, were deleted meanwhile.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Key, Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.observation import Object
from dispatch_operator.reconcile.ownership import uid_of

logger = logging.getLogger(__name__)

CALL_SECONDS = 30.0


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
    """Looks for what was deleted while a resource was not watched."""

    client: Client
    store: Store
    label_selectors: dict[str, str]
    gone: Callable[[str, Object], None]
    """Called with the kind and the last known state of each such object."""

    async def reconcile(self, key: Key) -> Result:
        """Compare what is cached of a kind with what is there; the key is a namespace, empty for all, and the kind."""
        held = self.store.of_kind(key.name, key.namespace or None)
        try:
            # Only what was cached before this list can be missing from it because it was deleted.
            there = await self.client.select(
                key.name,
                key.namespace or None,
                timeout=CALL_SECONDS,
                label_selector=self.label_selectors.get(key.name, ""),
            )
        except ApiError as error:
            logger.warning("%s can't be listed again: %s", key.name, error)
            return Result(requeue=True, retry_after=error.retry_after)
        uids = {uid_of(obj) for obj in there}
        for obj in held:
            if uid_of(obj) not in uids:
                self.gone(key.name, obj)
        return Result()
