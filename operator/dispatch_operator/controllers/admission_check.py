"""The AdmissionCheck of dispatch: active as long as the operator runs, and Ready for a Workload whose gate is open.

Contract section 12. Only a cluster-wide operator is its controller, and only of checks with dispatch's controllerName.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import Gate
from dispatch_operator.api.group import (
    ANNOTATION_START,
    CHECK_CONTROLLER,
    KUEUE_API_VERSION,
    LABEL_MANAGED_BY,
    LABEL_PROBE,
    MANAGED_BY,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Key, Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.conditions import TRUE
from dispatch_operator.reconcile.observation import Object, at, condition
from dispatch_operator.reconcile.ownership import has_started, owners, start_uid, uid_of
from dispatch_operator.render import start_options

logger = logging.getLogger(__name__)

CALL_SECONDS = 30.0
FIELD_MANAGER = "dispatch-operator-admission-check"
READY, PENDING = "Ready", "Pending"


def is_ours(check: object) -> bool:
    """Tell whether dispatch is the controller of an AdmissionCheck."""
    return bool(at(check, "spec", "controllerName") == CHECK_CONTROLLER)


def listed(workload: object) -> Iterator[tuple[str, str]]:
    """Yield the name and state of each admission check that a Workload lists."""
    for entry in at(workload, "status", "admissionChecks") or ():
        yield str(at(entry, "name")), str(at(entry, "state"))


def wanted_state(state: str, train_job: Object, start: Object | None) -> tuple[str, str]:
    """Return the state of the check on a Workload whose TrainJob is known, and why.

    Args:
        state: The state as it stands.
        train_job: The TrainJob that owns the Workload.
        start: The DispatchStart that the TrainJob names, None when it does not exist.
    """
    if at(train_job, "metadata", "labels", LABEL_MANAGED_BY) != MANAGED_BY or start_uid(train_job) is None:
        return READY, "not a job of dispatch"
    if at(train_job, "metadata", "labels", LABEL_PROBE):
        return PENDING, "a probe of dispatch never runs"
    if start is None or uid_of(start) != start_uid(train_job):
        return PENDING, "the DispatchStart is gone"
    if not has_started(start) or at(start, "status", "reference", "uid") != uid_of(train_job):
        return PENDING, "the DispatchStart has not started this TrainJob"
    gate = start_options(start).gate
    if gate is Gate.OPEN:
        return READY, "the start gate is open"
    # A job that is held is stopped by its Workload; a check that goes back would evict it a second time.
    kept = state if gate is Gate.HELD else PENDING
    return kept, "the start gate is held" if gate is Gate.HELD else "the start gate is closed"


@dataclass(frozen=True)
class AdmissionChecks:
    """Marks dispatch's AdmissionChecks active, and sets their state on every Workload that lists them."""

    client: Client
    store: Store
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> Result:
        """Reconcile one AdmissionCheck (a key without a namespace) or one Workload."""
        try:
            await (self._workload(key) if key.namespace else self._check(key.name))
        except ApiError as error:
            # A conflict means that the object is newer than the cache; the next event tells.
            logger.log(logging.DEBUG if error.conflict or error.not_found else logging.WARNING, "%s", error)
            return Result(requeue=True, retry_after=error.retry_after)
        return Result()

    async def _check(self, name: str) -> None:
        check = self.store.get(Kind.ADMISSION_CHECK, "", name)
        active = condition(check, "Active")
        generation = at(check, "metadata", "generation")
        if check is None or not is_ours(check):
            return
        if active.get("status") == TRUE and active.get("observedGeneration") == generation:
            return
        body = {
            "status": {
                "conditions": [
                    {
                        "type": "Active",
                        "status": TRUE,
                        "reason": "Active",
                        "message": "dispatch-operator sets this check",
                        "observedGeneration": generation,
                        "lastTransitionTime": times.written(self.clock()),
                    },
                ],
            },
        }
        await self._apply(Kind.ADMISSION_CHECK, check, body)

    async def _workload(self, key: Key) -> None:
        workload = self.store.get(Kind.WORKLOAD, *key)
        states = [
            (name, state) for name, state in listed(workload) if is_ours(self.store.get(Kind.ADMISSION_CHECK, "", name))
        ]
        if workload is None or not states:
            return
        entries = []
        for name, state in states:
            wanted, why = await self._wanted(key.namespace, workload, state)
            if wanted != state:
                entries.append(
                    {
                        "name": name,
                        "state": wanted,
                        "message": why,
                        "lastTransitionTime": times.written(self.clock()),
                    },
                )
        if entries:
            await self._apply(Kind.WORKLOAD, workload, {"status": {"admissionChecks": entries}})

    async def _wanted(self, namespace: str, workload: Object, state: str) -> tuple[str, str]:
        jobs = [owner for owner in owners(workload) if at(owner, "kind") == Kind.TRAIN_JOB]
        if not jobs:
            # Of another kind, or of nobody: then its owner is not known yet.
            return (READY, "not a job of dispatch") if owners(workload) else (PENDING, "the owner is not known yet")
        name, uid = str(at(jobs[0], "name")), at(jobs[0], "uid")
        train_job = self.store.get(Kind.TRAIN_JOB, namespace, name)
        if uid_of(train_job) != uid:
            # Only TrainJobs with dispatch's label are watched: a live read tells another's from one not seen yet.
            train_job = await self.client.get(Kind.TRAIN_JOB, namespace, name, timeout=CALL_SECONDS)
        if train_job is None or uid_of(train_job) != uid:
            return PENDING, "the TrainJob is gone"
        start = str(at(train_job, "metadata", "annotations", ANNOTATION_START) or "-")
        return wanted_state(state, train_job, self.store.get(Kind.DISPATCH_START, namespace, start))

    async def _apply(self, kind: Kind, obj: Object, body: dict[str, Any]) -> None:
        meta = at(obj, "metadata")
        identity = {
            "apiVersion": KUEUE_API_VERSION,
            "kind": kind.value,
            "metadata": {"name": meta["name"], "uid": meta["uid"]},
        }
        await self.client.apply_status(
            kind,
            meta.get("namespace"),
            meta["name"],
            {**identity, **body},
            timeout=CALL_SECONDS,
            field_manager=FIELD_MANAGER,
        )
