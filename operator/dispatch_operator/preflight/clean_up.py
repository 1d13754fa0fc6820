"""What probes of a backend have left behind: deleted, whoever made it."""

import logging

from dispatch_operator.api.group import LABEL_JOB, LABEL_PROBE
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.observation import Object, at
from dispatch_operator.reconcile.ownership import is_going, made_for, owners, uid_of

logger = logging.getLogger(__name__)

SELECTOR = f"{LABEL_PROBE}=true"


async def sweep(client: Client, backend: Object, *, timeout: float, job: str | None = None) -> None:
    """Delete the TrainJobs and the copies of a backend's probes, as they are now.

    A copy whose TrainJob still exists goes with that one, by garbage collection.

    Args:
        client: Where.
        backend: The DispatchBackend that was probed.
        timeout: Of each request, in seconds.
        job: The job id of the probe; None for all of them, whoever made them.

    Raises:
        ApiError: A request failed or went unanswered; something may be left.
    """
    namespace = at(backend, "metadata", "namespace")
    selector = SELECTOR if job is None else f"{SELECTOR},{LABEL_JOB}={job}"
    jobs = await client.select(Kind.TRAIN_JOB, namespace, timeout=timeout, label_selector=selector)
    for one in jobs:
        if made_for(one, backend) and not is_going(one):
            await _delete(client, Kind.TRAIN_JOB, one, timeout=timeout)
    held = {uid_of(one) for one in jobs}
    for copy in await client.select(Kind.TRAINING_RUNTIME, namespace, timeout=timeout, label_selector=selector):
        owned = any(at(owner, "uid") in held for owner in owners(copy))
        if made_for(copy, backend) and not is_going(copy) and not owned:
            await _delete(client, Kind.TRAINING_RUNTIME, copy, timeout=timeout)


async def _delete(client: Client, kind: Kind, obj: Object, *, timeout: float) -> None:
    meta = at(obj, "metadata")
    # A TrainJob's status changes all the time, and makes no difference; a copy may just have been given an owner.
    version = meta["resourceVersion"] if kind == Kind.TRAINING_RUNTIME else None
    try:
        await client.delete(
            kind, meta["namespace"], meta["name"], timeout=timeout, uid=meta["uid"], resource_version=version
        )
    except ApiError as error:
        if not error.not_found:
            raise
    logger.info("%s/%s: deleted the %s that a probe left behind", meta["namespace"], meta["name"], kind)
