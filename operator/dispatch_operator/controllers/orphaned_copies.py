"""Copies that a Start left behind without an owner (contract section 13).

Neither "gone" nor "finally refused" ever reverts, so that no age is waited for. A slow operator that still means to use
the copy fails safely at step 7, its gate closed.
"""

import logging
from dataclasses import dataclass

from dispatch_operator.api.enums import Phase
from dispatch_operator.api.group import ANNOTATION_START, LABEL_MANAGED_BY, LABEL_PROBE, MANAGED_BY
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Key, Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.observation import Object, at
from dispatch_operator.reconcile.ownership import (
    bears_our_name,
    has_started,
    is_going,
    owners,
    phase_of,
    start_uid,
    uid_of,
)

logger = logging.getLogger(__name__)

CALL_SECONDS = 30.0


def is_ownerless(copy: object) -> bool:
    """Tell whether a TrainingRuntime is a copy of ours that no garbage collection will delete."""
    signed = at(copy, "metadata", "labels", LABEL_MANAGED_BY) == MANAGED_BY and start_uid(copy) is not None
    return signed and bears_our_name(copy) and not owners(copy) and not is_going(copy)


def is_left(copy: object, start: Object | None) -> bool:
    """Tell whether the object that a copy was made for is done with it.

    Args:
        copy: The copy.
        start: What its start annotation names, read live; None when that does not exist.
    """
    if start is None or uid_of(start) != start_uid(copy):
        return True
    if has_started(start):
        return bool(uid_of(copy) != at(start, "status", "copy", "uid"))
    return phase_of(start) in {Phase.REFUSED, Phase.STOPPING}


@dataclass(frozen=True)
class OrphanedCopies:
    """Reconciles ownerless copies."""

    client: Client
    store: Store

    async def reconcile(self, key: Key) -> Result:
        """Delete the copy of this name if nobody needs it any more; every verdict is a live read's."""
        cached = self.store.get(Kind.TRAINING_RUNTIME, *key)
        if not is_ownerless(cached) or not is_left(cached, self.store.get(*_made_for(key.namespace, cached))):
            # In use, as far as the watches know; its owner or the end of its DispatchStart will be an event.
            return Result()
        try:
            copy = await self.client.get(Kind.TRAINING_RUNTIME, *key, timeout=CALL_SECONDS)
            if copy is None or not is_ownerless(copy):
                return Result()
            if is_left(copy, await self.client.get(*_made_for(key.namespace, copy), timeout=CALL_SECONDS)):
                await self.client.delete(
                    Kind.TRAINING_RUNTIME,
                    *key,
                    timeout=CALL_SECONDS,
                    uid=uid_of(copy),
                    resource_version=copy["metadata"]["resourceVersion"],
                )
                logger.info("%s/%s: collected a copy that was left without an owner", *key)
        except ApiError as error:
            if error.not_found and error.verb == "delete":
                return Result()
            logger.warning("%s/%s is left without an owner: %s", *key, error)
            return Result(requeue=True, retry_after=error.retry_after)
        return Result()


def _made_for(namespace: str, copy: object) -> tuple[Kind, str, str]:
    """Return the kind, namespace and name of the object that a copy was made for."""
    kind = Kind.DISPATCH_BACKEND if at(copy, "metadata", "labels", LABEL_PROBE) else Kind.DISPATCH_START
    return kind, namespace, str(at(copy, "metadata", "annotations", ANNOTATION_START) or "-")
