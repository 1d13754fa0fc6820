"""What probes of a backend have left behind: deleted, whoever made it (docs/contract.md, The preflight probe)."""

import logging
from functools import partial

from dispatch_operator.api.group import LABEL_JOB, LABEL_PROBE
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.typed import record
from dispatch_operator.reconcile.actions import MOST_SELECTED
from dispatch_operator.reconcile.ownership import made_for
from dispatch_operator.records.base import KubeObject
from dispatch_operator.records.dispatch import DispatchBackend

logger = logging.getLogger(__name__)

SELECTOR = f"{LABEL_PROBE}=true"


async def clean_up(client: Client, backend: DispatchBackend, *, job: str | None = None) -> None:
    """Delete the TrainJobs and the copies of a backend's probes, as they are now.

    A copy whose TrainJob still exists goes with that one, by garbage collection.

    Args:
        client: Where.
        backend: The DispatchBackend that was probed.
        job: The job id of the probe; None for all of them, whoever made them.

    Raises:
        ApiError: A request failed or went unanswered; something may be left.
    """
    jobs = await _left(client, backend, Kind.TRAIN_JOB, job)
    for one in jobs:
        await _delete(client, backend, one)
    held = {one.metadata.uid for one in jobs}
    for copy in await _left(client, backend, Kind.TRAINING_RUNTIME, job):
        if not any(owner.uid in held for owner in copy.metadata.owner_references):
            await _delete(client, backend, copy)


async def _left(client: Client, backend: DispatchBackend, kind: Kind, job: str | None) -> list[KubeObject]:
    selector = SELECTOR if job is None else f"{SELECTOR},{LABEL_JOB}={job}"
    found = await client.select(
        kind,
        backend.metadata.namespace,
        timeout=backend.call_timeout,
        read=partial(record, "list", kind),
        most=MOST_SELECTED,
        label_selector=selector,
    )
    return [one for one in found if isinstance(one, KubeObject) and made_for(one, backend)]


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
