"""A TrainJob that is deleted in the foreground, and that lacks the copy without which it can't leave.

Foreground deletion (Argo CD's default, and `kubectl delete --cascade=foreground`) makes the garbage collector delete
the copy at once, and take its finalizer off the TrainJob last. Trainer's webhook checks every update of a TrainJob
against its runtime, finds none, and denies the removal of the finalizer, for ever (seen with Trainer 2.3.0). A runtime
of that name lets the TrainJob go; it is owned by the TrainJob, so that it is collected right after it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.group import (
    ANCESTOR_LABEL,
    LABEL_FRAMEWORK,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    PATCH_MANAGER,
    TRAINER_API_VERSION,
    TRAINER_STEP,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Key, Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.observation import Object, at
from dispatch_operator.reconcile.ownership import bears_our_name, is_going, owner_reference

logger = logging.getLogger(__name__)

FOREGROUND = "foregroundDeletion"
CALL_SECONDS = 30.0


def needs_its_copy(train_job: object) -> bool:
    """Tell whether a TrainJob of ours is being deleted in the foreground."""
    return (
        at(train_job, "metadata", "labels", LABEL_MANAGED_BY) == MANAGED_BY
        and bears_our_name(train_job)
        and is_going(train_job)
        and FOREGROUND in (at(train_job, "metadata", "finalizers") or ())
    )


def stand_in(train_job: Object) -> dict[str, Any]:
    """Return a runtime that Trainer accepts for the TrainJob: the replicated jobs that our patch of it names."""
    meta: Mapping[str, Any] = at(train_job, "metadata")
    trainer: Mapping[str, Any] = at(train_job, "spec", "trainer") or {}
    torch: dict[str, Any] = {"torch": {}} if "numProcPerNode" in trainer else {}
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": Kind.TRAINING_RUNTIME.value,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {
                **(meta.get("labels") or {}),
                LABEL_FRAMEWORK: "torch" if "numProcPerNode" in trainer else "plain",
            },
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [owner_reference(train_job)],
        },
        "spec": {
            "mlPolicy": {"numNodes": 1, **torch},
            "template": {"spec": {"replicatedJobs": [_job(name, trainer) for name in _job_names(train_job)]}},
        },
    }


def _job_names(train_job: Object) -> list[str]:
    patches = at(train_job, "spec", "runtimePatches") or ()
    jobs = [
        at(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs") or ()
        for patch in patches
        if at(patch, "manager") == PATCH_MANAGER
    ]
    return [job["name"] for part in jobs for job in part] or ["node"]


def _job(name: str, trainer: Mapping[str, Any]) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": trainer.get("image") or "none"}]}
    job: dict[str, Any] = {"spec": {"template": {"spec": pod}}}
    if name == "node":
        job["metadata"] = {"labels": {ANCESTOR_LABEL: TRAINER_STEP}}
    return {"name": name, "replicas": 1, "template": job}


@dataclass(frozen=True)
class ForegroundDeletion:
    """Reconciles TrainJobs that are on their way out."""

    client: Client
    store: Store

    async def reconcile(self, key: Key) -> Result:
        """Give a TrainJob that can't leave the runtime that it needs to."""
        if not needs_its_copy(self.store.get(Kind.TRAIN_JOB, *key)):
            return Result()
        try:
            copy = await self.client.get(Kind.TRAINING_RUNTIME, *key, timeout=CALL_SECONDS)
            train_job = await self.client.get(Kind.TRAIN_JOB, *key, timeout=CALL_SECONDS)
            if copy is not None or train_job is None or not needs_its_copy(train_job):
                # The watch tells when the copy goes.
                return Result()
            await self.client.create(Kind.TRAINING_RUNTIME, key.namespace, stand_in(train_job), timeout=CALL_SECONDS)
        except ApiError as error:
            logger.warning("%s/%s is being deleted and lacks its runtime: %s", *key, error)
            return Result(requeue=not error.already_exists, retry_after=error.retry_after)
        logger.info("%s/%s: TrainJob leaves in the foreground; it was given a runtime to leave with", *key)
        return Result()
