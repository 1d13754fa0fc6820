"""What probes of a backend have left behind: deleted, whoever made it (docs/contract.md, The preflight probe)."""

import logging
from collections.abc import Collection
from functools import partial

from dispatch_operator.api.group import LABEL_PROBE
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.names import object_name
from dispatch_operator.kube import typed
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Store
from dispatch_operator.kube.typed import record
from dispatch_operator.reconcile.actions import MOST_SELECTED
from dispatch_operator.reconcile.ownership import made_for
from dispatch_operator.records.base import KubeObject
from dispatch_operator.records.dispatch import DispatchBackend
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob

logger = logging.getLogger(__name__)

SELECTOR = f"{LABEL_PROBE}=true"


async def clean_up(client: Client, store: Store, backend: DispatchBackend) -> None:
    """Delete the TrainJobs and the copies of a backend's probes, whoever made them, as they are now.

    They are found by the probes' label, and by what the watches said: somebody may have taken the label away.

    Raises:
        ApiError: A request failed or went unanswered; something may be left.
    """
    left = [one for kind in (TrainJob, TrainingRuntime) for one in await _left(client, store, backend, kind)]
    await _delete_all(client, backend, left)


async def clean_up_after(client: Client, backend: DispatchBackend, job: str) -> None:
    """Delete the TrainJob and the copy of one probe, whatever marks they bear: nobody else can have had its name.

    Args:
        client: Where.
        backend: The DispatchBackend that was probed.
        job: The job id of the probe, which was made up for it.

    Raises:
        ApiError: A request failed or went unanswered; something may be left.
    """
    name, timeout = object_name(job, 1), backend.call_timeout
    found = [
        await typed.get(client, kind, backend.metadata.namespace, name, timeout=timeout)
        for kind in (TrainJob, TrainingRuntime)
    ]
    await _delete_all(client, backend, [one for one in found if one is not None])


async def _left(
    client: Client, store: Store, backend: DispatchBackend, kind: type[TrainJob | TrainingRuntime]
) -> list[KubeObject]:
    namespace, timeout = backend.metadata.namespace, backend.call_timeout
    read = partial(record, "list", kind.KIND)
    listed = await client.select(
        kind.KIND, namespace, timeout=timeout, read=read, most=MOST_SELECTED, label_selector=SELECTOR
    )
    found: dict[str, object] = {one.metadata.name: one for one in listed}
    for one in store.left_by_probes(backend):
        name = one.metadata.name
        if isinstance(one, kind) and name not in found:
            found[name] = await typed.get(client, kind, namespace, name, timeout=timeout)
    return [one for one in found.values() if isinstance(one, KubeObject) and made_for(one, backend)]


async def _delete_all(client: Client, backend: DispatchBackend, left: Collection[KubeObject]) -> None:
    """Delete what is left; a copy whose TrainJob is deleted, too, goes with that one, by garbage collection."""
    uids = {one.metadata.uid for one in left}
    for one in left:
        if not any(owner.uid in uids for owner in one.metadata.owner_references):
            await _delete(client, backend, one)


async def _delete(client: Client, backend: DispatchBackend, obj: KubeObject) -> None:
    meta, kind = obj.metadata, obj.KIND
    if meta.is_terminating:
        return
    # A TrainJob's status changes all the time, and makes no difference; a copy may just have been given an owner.
    version = meta.resource_version if kind is Kind.TRAINING_RUNTIME else None
    try:
        await client.delete(
            kind, meta.namespace, meta.name, timeout=backend.call_timeout, uid=meta.uid, resource_version=version
        )
    except ApiError as error:
        if not error.not_found:
            raise
    logger.info("%s/%s: deleted the %s that a probe left behind", meta.namespace, meta.name, kind)
