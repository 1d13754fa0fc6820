"""What probes of a backend have left behind: deleted, whoever made it."""

import logging

from dispatch_operator.cluster import Cluster
from dispatch_operator.errors import ApiError
from dispatch_operator.ours import is_going, made_for, owners, uid_of
from dispatch_operator.seen import Object, at
from dispatch_operator.vocabulary import LABEL_PROBE, Kind

logger = logging.getLogger(__name__)

SELECTOR = f"{LABEL_PROBE}=true"


async def sweep(cluster: Cluster, backend: Object, *, timeout: float) -> None:
    """Delete the TrainJobs and the copies of all probes of a backend, as they are now.

    A copy whose TrainJob still exists goes with that one, by garbage collection.

    Raises:
        ApiError: A request failed or went unanswered; something may be left.
    """
    namespace = at(backend, "metadata", "namespace")
    jobs = await cluster.select(Kind.TRAIN_JOB, namespace, timeout=timeout, label_selector=SELECTOR)
    for job in jobs:
        if made_for(job, backend) and not is_going(job):
            await _delete(cluster, Kind.TRAIN_JOB, job, timeout=timeout)
    held = {uid_of(job) for job in jobs}
    for copy in await cluster.select(Kind.TRAINING_RUNTIME, namespace, timeout=timeout, label_selector=SELECTOR):
        owned = any(at(owner, "uid") in held for owner in owners(copy))
        if made_for(copy, backend) and not is_going(copy) and not owned:
            await _delete(cluster, Kind.TRAINING_RUNTIME, copy, timeout=timeout)


async def _delete(cluster: Cluster, kind: Kind, obj: Object, *, timeout: float) -> None:
    meta = at(obj, "metadata")
    # A TrainJob's status changes all the time, and makes no difference; a copy may just have been given an owner.
    version = meta["resourceVersion"] if kind == Kind.TRAINING_RUNTIME else None
    try:
        await cluster.delete(
            kind, meta["namespace"], meta["name"], timeout=timeout, uid=meta["uid"], resource_version=version
        )
    except ApiError as error:
        if not error.not_found:
            raise
    logger.info("%s/%s: deleted the %s that a probe left behind", meta["namespace"], meta["name"], kind)
