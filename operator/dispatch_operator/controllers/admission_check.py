"""The AdmissionCheck of dispatch: it is marked Active, and is Ready on a Workload whose gate is open.

Only a cluster-wide operator is its controller, and only of checks with dispatch's controllerName
(docs/contract.md, AdmissionCheck).
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import ConditionStatus, Gate
from dispatch_operator.api.group import CHECK_CONTROLLER, KUEUE_API_VERSION, MANAGED_BY
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import typed
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.ownership import made_for, start_uid
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT, DispatchStart
from dispatch_operator.records.kueue import AdmissionCheck, CheckState, Workload
from dispatch_operator.records.trainer import TrainJob

logger = logging.getLogger(__name__)

FIELD_MANAGER = "dispatch-operator-admission-check"
READY, PENDING = "Ready", "Pending"


def is_ours(check: AdmissionCheck | None) -> bool:
    """Tell whether dispatch is the controller of an AdmissionCheck."""
    return check is not None and check.spec.controller_name == CHECK_CONTROLLER


def is_of_start(train_job: TrainJob) -> bool:
    """Tell whether a TrainJob was made for a DispatchStart, and not for a probe."""
    labels = train_job.metadata.labels
    return labels.managed_by == MANAGED_BY and start_uid(train_job) is not None and not labels.probe


def wanted_state(state: str, train_job: TrainJob, start: DispatchStart | None) -> tuple[str, str]:
    """Return the state of the check on a Workload whose TrainJob is known, and why.

    Args:
        state: The state as it stands.
        train_job: The TrainJob that owns the Workload.
        start: The DispatchStart that the TrainJob names, None when it does not exist.
    """
    labels, uid = train_job.metadata.labels, start_uid(train_job)
    if labels.managed_by != MANAGED_BY or uid is None:
        return READY, "not a job of dispatch"
    if labels.probe:
        return PENDING, "a probe of dispatch never runs"
    if start is None or start.metadata.uid != uid:
        return PENDING, "the DispatchStart is gone"
    reference = start.status.reference
    if not start.status.has_started or reference is None or reference.uid != train_job.metadata.uid:
        return PENDING, "the DispatchStart has not started this TrainJob"
    match start.gate:
        case Gate.OPEN:
            return READY, "the start gate is open"
        case Gate.HELD:
            # A held job is evicted already, by its Workload's `spec.active`; Pending would evict it again.
            return state, "the start gate is held"
        case _:
            return PENDING, "the start gate is closed"


@dataclass(frozen=True)
class AdmissionChecks:
    """Marks dispatch's AdmissionChecks active, and sets their state on every Workload that lists them."""

    client: Client
    store: Store
    clock: Callable[[], float] = time.time
    serves_start: Callable[[Key], bool] = lambda _: True
    """Whether a DispatchStart is another operator's, which then sets the state for it."""

    async def reconcile(self, key: Key) -> Result:
        """Reconcile one AdmissionCheck (a key without a namespace) or one Workload."""
        try:
            await (self._workload(key) if key.namespace else self._check(key.name))
        except ApiError as error:
            # On a conflict the store is behind; the watch will bring the newer state.
            logger.log(logging.DEBUG if error.conflict or error.not_found else logging.WARNING, "%s", error)
            return Result(requeue=True, retry_after=error.retry_after)
        return Result()

    async def _check(self, name: str) -> None:
        check = self.store.get(AdmissionCheck, "", name)
        if check is None or not is_ours(check):
            return
        active, generation = check.status.condition("Active"), check.metadata.generation
        if active and active.status == ConditionStatus.TRUE and active.observed_generation == generation:
            return
        condition = {
            "type": "Active",
            "status": ConditionStatus.TRUE.value,
            "reason": "Active",
            "message": "dispatch-operator sets this check",
            "observedGeneration": generation,
            "lastTransitionTime": times.written(self.clock()),
        }
        await self._apply(check, {"conditions": [condition]})

    async def _workload(self, key: Key) -> None:
        workload = self.store.get(Workload, *key)
        listed = workload.status.admission_checks if workload else ()
        ours = [check for check in listed if is_ours(self.store.get(AdmissionCheck, "", check.name))]
        if workload is None or not ours:
            return
        wanted = [await self._wanted_entry(workload, check) for check in ours]
        if wanted != ours:
            # All of ours, also those that stay: what is applied before and not now would be taken away.
            await self._apply(workload, {"admissionChecks": [_as_json(entry) for entry in wanted]})

    async def _wanted_entry(self, workload: Workload, check: CheckState) -> CheckState:
        state, why = await self._wanted(workload, check.state)
        return check if state == check.state else CheckState(check.name, state, why, times.written(self.clock()))

    async def _wanted(self, workload: Workload, state: str) -> tuple[str, str]:
        owners, namespace = workload.metadata.owner_references, workload.metadata.namespace
        owner = next((one for one in owners if one.kind == Kind.TRAIN_JOB), None)
        if owner is None:
            # An owner of another kind: not our job. No owner at all: it is not known yet.
            return (READY, "not a job of dispatch") if owners else (PENDING, "the owner is not known yet")
        train_job = self.store.get(TrainJob, namespace, owner.name)
        if train_job is None or train_job.metadata.uid != owner.uid:
            # Only TrainJobs of a Start's name are kept: a live read tells another's from one not seen yet.
            train_job = await typed.get(self.client, TrainJob, namespace, owner.name)
        if train_job is None or train_job.metadata.uid != owner.uid:
            return PENDING, "the TrainJob is gone"
        start = Key(namespace, train_job.metadata.annotations.start or "-")
        if not self.serves_start(start):
            # It was not known yet whose the TrainJob is.
            return state, "another operator serves the DispatchStart"
        return wanted_state(state, train_job, await self._start(start, train_job, state))

    async def _start(self, key: Key, train_job: TrainJob, state: str) -> DispatchStart | None:
        start = self.store.get(DispatchStart, *key)
        if state == PENDING or not is_of_start(train_job) or (start is not None and made_for(train_job, start)):
            return start
        # "Gone" is a verdict, and puts a job that runs back into its queue.
        return await typed.get(self.client, DispatchStart, *key)

    async def _apply(self, obj: AdmissionCheck | Workload, status: dict[str, Any]) -> None:
        meta = obj.metadata
        body = {
            "apiVersion": KUEUE_API_VERSION,
            "kind": obj.KIND.value,
            "metadata": {"name": meta.name, "uid": meta.uid},
            "status": status,
        }
        await self.client.apply_status(
            obj.KIND,
            meta.namespace or None,
            meta.name,
            body,
            timeout=DEFAULT_CALL_TIMEOUT,
            field_manager=FIELD_MANAGER,
        )


def _as_json(entry: CheckState) -> dict[str, str]:
    since = entry.last_transition_time
    return {"name": entry.name, "state": entry.state, "message": entry.message, "lastTransitionTime": since}
