"""Copies that a Start left behind without an owner (docs/contract.md, Orphaned copies).

None of "gone", "finally refused" and "cancelled" ever reverts, so that no age is waited for. A slow operator that still
means to use the copy fails safely when it sets the owner, its gate closed.
"""

import logging
from dataclasses import dataclass

from dispatch_operator.api.enums import Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import typed
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.ownership import bears_our_name, start_uid
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT, DispatchBackend, DispatchStart
from dispatch_operator.records.trainer import TrainingRuntime

logger = logging.getLogger(__name__)

MadeFor = DispatchStart | DispatchBackend


def is_ownerless(copy: TrainingRuntime | None) -> bool:
    """Tell whether a TrainingRuntime is a copy of ours that no garbage collection will delete."""
    if copy is None or start_uid(copy) is None or not copy.metadata.annotations.start:
        return False
    return bears_our_name(copy) and not copy.metadata.owner_references and not copy.metadata.is_terminating


def is_left(copy: TrainingRuntime, made_for: MadeFor | None) -> bool:
    """Tell whether the object that a copy was made for is done with it.

    Args:
        copy: The copy.
        made_for: What its start annotation names; None when that does not exist.
    """
    if made_for is None or made_for.metadata.uid != start_uid(copy):
        return True
    if isinstance(made_for, DispatchBackend):
        return False
    if made_for.is_cancelled and made_for.status.was_cancelled:
        return True
    if made_for.status.has_started:
        copied = made_for.status.copied
        return copied is None or copied.uid != copy.metadata.uid
    return made_for.status.phase in {Phase.REFUSED, Phase.STOPPING}


@dataclass(frozen=True)
class OrphanedCopies:
    """Reconciles ownerless copies."""

    client: Client
    store: Store

    async def reconcile(self, key: Key) -> Result:
        """Delete the copy of this name if nobody needs it any more; every verdict is a live read's."""
        cached = self.store.get(TrainingRuntime, *key)
        if cached is None or not is_ownerless(cached) or not is_left(cached, self._cached(cached)):
            # In use, as far as the watches know; its owner or the end of its DispatchStart will be an event.
            return Result()
        try:
            copy = await typed.get(self.client, TrainingRuntime, *key)
            if copy is not None and is_ownerless(copy) and is_left(copy, await self._live(copy)):
                await self._delete(copy)
        except ApiError as error:
            if error.not_found and error.verb == "delete":
                return Result()
            logger.warning("%s/%s is left without an owner: %s", *key, error)
            return Result(requeue=True, retry_after=error.retry_after)
        return Result()

    async def _delete(self, copy: TrainingRuntime) -> None:
        meta = copy.metadata
        await self.client.delete(
            Kind.TRAINING_RUNTIME,
            meta.namespace,
            meta.name,
            timeout=DEFAULT_CALL_TIMEOUT,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        logger.info("%s/%s: collected a copy that was left without an owner", meta.namespace, meta.name)

    def _cached(self, copy: TrainingRuntime) -> MadeFor | None:
        kind, namespace, name = _made_for(copy)
        return self.store.get(kind, namespace, name)

    async def _live(self, copy: TrainingRuntime) -> MadeFor | None:
        return await typed.get(self.client, *_made_for(copy))


def _made_for(copy: TrainingRuntime) -> tuple[type[MadeFor], str, str]:
    """Return the kind, namespace and name of the object that a copy was made for."""
    kind: type[MadeFor] = DispatchBackend if copy.metadata.labels.probe else DispatchStart
    return kind, copy.metadata.namespace, copy.metadata.annotations.start or ""
