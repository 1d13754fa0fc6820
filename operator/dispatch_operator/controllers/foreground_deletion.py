"""A TrainJob that is deleted in the foreground, and that lacks the copy without which it can't leave.

Foreground deletion (Argo CD's default, and `kubectl delete --cascade=foreground`) makes the garbage collector delete
the copy at once, and take its finalizer off the TrainJob last. Trainer's webhook checks every update of a TrainJob
against its runtime, finds none, and denies the removal of the finalizer, for ever (seen with Trainer 2.3.0). A runtime
of that name lets the TrainJob go; it is owned by the TrainJob, so that it is collected right after it.

See docs/contract.md, Foreground deletion.
"""

import logging
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.group import (
    ANCESTOR_LABEL,
    LABEL_FRAMEWORK,
    NODE,
    PATCH_MANAGER,
    TRAINER_API_VERSION,
    TRAINER_STEP,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import typed
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.ownership import bears_our_name, is_made_by_us, owner_reference
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT
from dispatch_operator.records.trainer import Trainer, TrainingRuntime, TrainJob
from dispatch_operator.render.runtime_copy import PLAIN

logger = logging.getLogger(__name__)

FOREGROUND = "foregroundDeletion"


def needs_its_copy(train_job: TrainJob | None) -> bool:
    """Tell whether a TrainJob of ours is being deleted in the foreground."""
    if train_job is None or not is_made_by_us(train_job) or not bears_our_name(train_job):
        return False
    return train_job.metadata.is_terminating and FOREGROUND in train_job.metadata.finalizers


def stand_in(train_job: TrainJob) -> dict[str, Any]:
    """Return a runtime that Trainer accepts for the TrainJob: the replicated jobs that our patch of it names."""
    meta, trainer = train_job.metadata, train_job.spec.trainer
    torch: dict[str, Any] = {} if trainer.num_proc_per_node is None else {"torch": {}}
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": Kind.TRAINING_RUNTIME.value,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {**meta.labels.as_json(), LABEL_FRAMEWORK: next(iter(torch), PLAIN)},
            "annotations": meta.annotations.as_json(),
            "ownerReferences": [owner_reference(train_job)],
        },
        "spec": {
            "mlPolicy": {"numNodes": 1, **torch},
            "template": {"spec": {"replicatedJobs": [_job(name, trainer) for name in _job_names(train_job)]}},
        },
    }


def _job_names(train_job: TrainJob) -> list[str]:
    patches = (patch for patch in train_job.spec.runtime_patches if patch.manager == PATCH_MANAGER)
    jobs = [job for patch in patches for job in patch.training_runtime_spec.template.spec.replicated_jobs]
    return [job.name for job in jobs] or [NODE]


def _job(name: str, trainer: Trainer) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": NODE, "image": trainer.image or "none"}]}
    job: dict[str, Any] = {"spec": {"template": {"spec": pod}}}
    if name == NODE:
        job["metadata"] = {"labels": {ANCESTOR_LABEL: TRAINER_STEP}}
    return {"name": name, "replicas": 1, "template": job}


@dataclass(frozen=True)
class ForegroundDeletion:
    """Reconciles TrainJobs that are on their way out."""

    client: Client
    store: Store

    async def reconcile(self, key: Key) -> Result:
        """Give a TrainJob that can't leave the runtime that it needs to."""
        if not needs_its_copy(self.store.get(TrainJob, *key)):
            return Result()
        try:
            copy = await typed.get(self.client, TrainingRuntime, *key)
            train_job = await typed.get(self.client, TrainJob, *key)
            if copy is not None or train_job is None or not needs_its_copy(train_job):
                # The watch tells when the copy goes.
                return Result()
            body = stand_in(train_job)
            await self.client.create(Kind.TRAINING_RUNTIME, key.namespace, body, timeout=DEFAULT_CALL_TIMEOUT)
        except ApiError as error:
            logger.warning("%s/%s is being deleted and lacks its runtime: %s", *key, error)
            return Result(requeue=not error.already_exists, retry_after=error.retry_after)
        logger.info("%s/%s: TrainJob leaves in the foreground; it was given a runtime to leave with", *key)
        return Result()
