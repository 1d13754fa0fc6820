"""The AdmissionCheck of dispatch: it is marked Active, and is Ready on a Workload whose gate is open.

Only a cluster-wide operator is its controller, and only of checks with dispatch's controllerName
(docs/contract.md, AdmissionCheck).
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import ConditionStatus, Gate, Phase
from dispatch_operator.api.group import CHECK_CONTROLLER, KUEUE_API_VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import typed
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.ownership import made_for, maker
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT, DispatchStart
from dispatch_operator.records.kueue import AdmissionCheck, CheckState, Workload
from dispatch_operator.records.trainer import TrainJob

logger = logging.getLogger(__name__)

FIELD_MANAGER = "dispatch-operator-admission-check"
READY, PENDING = "Ready", "Pending"


def is_ours(check: AdmissionCheck | None) -> bool:
    """Tell whether dispatch is the controller of an AdmissionCheck."""
    return check is not None and check.spec.controller_name == CHECK_CONTROLLER


def wanted_state(state: str, train_job: TrainJob, starts: Iterable[DispatchStart]) -> tuple[str, str]:
    """Return the state of the check on a Workload whose TrainJob is known, and why.

    Args:
        state: The state as it stands.
        train_job: The TrainJob that owns the Workload.
        starts: Every DispatchStart that the TrainJob names, or whose TrainJob has that name.
    """
    starts = tuple(starts)
    made_by = maker(train_job)
    if made_by and made_by[0] is Kind.DISPATCH_BACKEND:
        return PENDING, "a probe of dispatch never runs"
    started = next((start for start in starts if _has_started(start, train_job)), None)
    if started is not None:
        return _of_gate(state, started.gate)
    if made_by:
        is_there = any(made_for(train_job, start) for start in starts)
        return PENDING, "the DispatchStart has not started this TrainJob" if is_there else "the DispatchStart is gone"
    if any(not start.status.has_started and start.status.phase is not Phase.REFUSED for start in starts):
        # Its marks may have been stripped as it was created; the end of those Starts tells.
        return PENDING, "it is not known yet whether this is a job of dispatch"
    return READY, "not a job of dispatch"


def _has_started(start: DispatchStart, train_job: TrainJob) -> bool:
    """Tell whether a TrainJob is the recorded one, whatever became of its marks, but not against them.

    What bears the mark of its opening has been recorded, whatever became of the status: Pending would evict it.
    """
    if train_job.metadata.annotations.opened == train_job.metadata.uid and made_for(train_job, start):
        return True
    reference = start.status.reference
    is_recorded = start.status.says_started and reference is not None and reference.uid == train_job.metadata.uid
    return is_recorded and (maker(train_job) is None or made_for(train_job, start))


def _of_gate(state: str, gate: Gate) -> tuple[str, str]:
    match gate:
        case Gate.OPEN:
            return READY, "the start gate is open"
        case Gate.HELD:
            # A held job is evicted already, by its Workload's `spec.active`; Pending would evict it again.
            return state, "the start gate is held"
        case Gate.CANCELLED:
            # What stops the job is the deletion of its TrainJob.
            return state, "the DispatchStart is cancelled"
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
        made_by = maker(train_job)
        if not self.serves_start(Key(namespace, made_by[1] if made_by else "-")):
            # It was not known yet whose the TrainJob is.
            return state, "another operator serves the DispatchStart"
        return wanted_state(state, train_job, await self._starts(train_job, state))

    async def _starts(self, train_job: TrainJob, state: str) -> list[DispatchStart]:
        """Return the DispatchStart that a TrainJob names, and those whose TrainJob has that name."""
        namespace, made_by = train_job.metadata.namespace, maker(train_job)
        keys = self.store.starts_by_target.of(Key(namespace, train_job.metadata.name))
        found = [start for key in keys if (start := self.store.get(DispatchStart, *key))]
        if made_by and made_by[0] is Kind.DISPATCH_START:
            named = self.store.get(DispatchStart, namespace, made_by[1])
            if state != PENDING and not (named and made_for(train_job, named)):
                # "Gone" is a verdict, and puts a job that runs back into its queue.
                named = await typed.get(self.client, DispatchStart, namespace, made_by[1])
            found += [named] if named else []
        return found

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
