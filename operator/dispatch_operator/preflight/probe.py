"""One run of the probe: a Start, its gate watched, its end; nothing of it is left (docs/contract.md, Backend gates)."""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from msgspec import structs

from dispatch_operator.api import duration
from dispatch_operator.api.enums import BackendGate, Condition
from dispatch_operator.api.models import Backend
from dispatch_operator.kube import typed
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.preflight.clean_up import clean_up, clean_up_after
from dispatch_operator.preflight.probe_start import (
    awaiting_workload,
    begin,
    gate_of,
    is_verdict,
    next_step,
    without_names,
)
from dispatch_operator.preflight.ulid import RANDOM_BITS, ulid
from dispatch_operator.reconcile.actions import Action, find_workload, list_pods
from dispatch_operator.reconcile.backend.status import NOT_PROBED, Found
from dispatch_operator.reconcile.observation import Observation, Observed
from dispatch_operator.reconcile.ownership import is_ours
from dispatch_operator.reconcile.reconciler import answer_to, carry_out
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting
from dispatch_operator.reconcile.steps.create_train_job import STEP as CREATION
from dispatch_operator.records.core import Pod
from dispatch_operator.records.dispatch import DispatchBackend
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob

logger = logging.getLogger(__name__)

BUDGET = 100
"""Requests of one run's steps."""
LOOK_AGAIN = 0.5
"""Seconds until the next live read, when the watch lags behind what was read."""
CLOCK_GRAIN = 0.1
"""Seconds by which two clocks may differ."""


class UndecidedError(Exception):
    """A probe came to no verdict; the message says why."""


class ChangedError(Exception):
    """The backend changed, or is gone: what was found says nothing of it."""


class DisturbedError(UndecidedError):
    """Somebody deleted what a probe was busy with: most likely another operator, whose probe comes first now."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe found."""

    found: Found
    runtime: TrainingRuntime | None
    """The probe runtime as it was read; None when it does not exist."""


@dataclass(frozen=True)
class Probe:
    """Runs probes; each of its runs knows nothing of the one before."""

    client: Client
    store: Store
    clock: Callable[[], float] = time.time

    async def run(self, backend: DispatchBackend, valid: Backend) -> ProbeResult:
        """Probe a backend once.

        Args:
            backend: The DispatchBackend, as it was just read.
            valid: What it says.

        Raises:
            UndecidedError: It came to no verdict. Something may be left, which the next run deletes.
            ChangedError: The backend changed meanwhile.
        """
        job = ulid(self.clock(), secrets.randbits(RANDOM_BITS))
        try:
            result = await self._clean_run(backend, valid, job)
        except (ApiError, UndecidedError) as error:
            logger.info("probe %s came to no verdict: %s", job, error)
            made = type(error) if isinstance(error, UndecidedError) else UndecidedError
            raise made(without_names(str(error), job)) from error
        for gate, reason in result.found.items():
            if reason is not None:
                logger.info("probe %s did not prove %s: %s", job, gate, reason)
        found = {gate: None if reason is None else without_names(reason, job) for gate, reason in result.found.items()}
        return replace(result, found=found)

    async def _clean_run(self, backend: DispatchBackend, valid: Backend, job: str) -> ProbeResult:
        await clean_up(self.client, self.store, backend)
        try:
            return await self._run(backend, begin(backend, valid, job), valid)
        finally:
            await clean_up_after(self.client, backend, job)

    async def _run(self, backend: DispatchBackend, observed: Observed, valid: Backend) -> ProbeResult:
        observed, verdict = await self._start(backend, observed)
        if verdict is not None and not is_verdict(verdict):
            raise UndecidedError(verdict.message)
        found: dict[BackendGate, str | None] = dict.fromkeys(BackendGate)
        job, copy = observed.train_job.obj, observed.copy.obj
        if isinstance(verdict, Refusal):
            await self._see_that_it_was_not_disturbed(observed, verdict)
            failed = gate_of(verdict)
            found[failed] = verdict.message
            if failed is BackendGate.FIELDS_KEPT:
                found[BackendGate.START_GATE] = NOT_PROBED
        elif job is not None:
            found[BackendGate.START_GATE] = await self._hold(backend, observed, job, valid)
        if job and copy and is_ours(observed, job) and copy.metadata.owner_references:
            found[BackendGate.COLLECTED] = await self._collect(job, copy, valid)
        else:
            found[BackendGate.COLLECTED] = NOT_PROBED
        return ProbeResult(found, observed.runtime.obj)

    async def _start(self, backend: DispatchBackend, observed: Observed) -> tuple[Observed, Verdict | None]:
        """Take the steps of a Start, until all have succeeded or one has not."""
        for _ in range(BUDGET):
            match next_step(observed, self.clock()):
                case Action() as action:
                    begun = self.clock()
                    answer = await answer_to(self.client, self.store, observed, action)
                    observed = observed.apply(action, answer, begun)
                case Waiting(step=Condition.WORKLOAD_GATED, requeue_after=float(left)) if observed.train_job.obj:
                    observed = await self._await_workload(backend, observed, observed.train_job.obj, left)
                case verdict:
                    return observed, verdict
        raise UndecidedError(f"it took more than {BUDGET} requests")

    async def _await_workload(
        self, backend: DispatchBackend, observed: Observed, job: TrainJob, seconds: float
    ) -> Observed:
        """Wait for a change of the Workload, as a DispatchStart's reconcile would be woken by one."""
        owner, before = (job.metadata.namespace, job.metadata.uid), _promised(observed.workload.obj)
        start = observed.start
        if start.status.condition(Condition.WORKLOAD_GATED) is None:
            start = awaiting_workload(start, self.clock())
        # The event loop's clock may be a little ahead of the one that the step reads.
        await self._until(backend, lambda: _promised(self.store.workload(*owner)) != before, seconds + CLOCK_GRAIN)
        return structs.replace(observed, start=start, workload=Observation(self.store.workload(*owner)))

    async def _see_that_it_was_not_disturbed(self, observed: Observed, refusal: Refusal) -> None:
        """What somebody deletes in the middle, perhaps another operator's clean-up, says nothing of the backend."""
        job, copy = observed.train_job.obj, observed.copy.obj
        if job and is_ours(observed, job):
            await self._live(job)
        elif refusal.step is CREATION and copy and is_ours(observed, copy):
            meta = copy.metadata
            found = await typed.get(self.client, TrainingRuntime, meta.namespace, meta.name)
            if found is None or found.metadata.uid != meta.uid or found.metadata.is_terminating:
                raise DisturbedError("its copy of the runtime was deleted in the middle")

    async def _live(self, job: TrainJob) -> TrainJob:
        meta = job.metadata
        found = await typed.get(self.client, TrainJob, meta.namespace, meta.name)
        if found is None or found.metadata.uid != meta.uid or found.metadata.is_terminating:
            raise DisturbedError("its TrainJob was deleted in the middle")
        return found

    async def _hold(self, backend: DispatchBackend, observed: Observed, job: TrainJob, valid: Backend) -> str | None:
        """Say what came through the closed gate within `timeouts.hold`; None when nothing did."""
        if (came := await self._came_through(observed, job, valid)) is not None:
            return came
        await self._until(backend, lambda: self._may_run(job), duration.seconds(valid.spec.timeouts.hold))
        return await self._came_through(observed, job, valid)

    async def _until(self, backend: DispatchBackend, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for what the watches say, but not on behalf of a backend that is not the one that is probed any more."""
        probed, meta = _identity(backend), backend.metadata

        def is_other() -> bool:
            return _identity(self.store.get(DispatchBackend, meta.namespace, meta.name)) != probed

        await self.store.until(lambda: is_other() or condition(), seconds)
        if is_other():
            raise ChangedError

    def _may_run(self, job: TrainJob) -> bool:
        """Tell whether a watch says that the gate has let something through: then the live reads come at once."""
        meta = job.metadata
        told = self.store.get(TrainJob, meta.namespace, meta.name)
        resumed = told is not None and told.spec.suspend is not True
        return resumed or _has_quota(self.store.workload(meta.namespace, meta.uid))

    async def _came_through(self, observed: Observed, job: TrainJob, valid: Backend) -> str | None:
        live = await self._live(job)
        if live.spec.suspend is not True:
            return f"TrainJob {live.metadata.name} was resumed behind its closed gate"
        namespace, timeout = live.metadata.namespace, observed.call_timeout
        match await carry_out(self.client, namespace, list_pods(observed.start), timeout=timeout):
            case [Pod() as pod, *_]:
                return f"pod {pod.metadata.name} exists behind the closed gate"
        if valid.spec.kueue is None:
            return None
        match await carry_out(self.client, namespace, find_workload(job), timeout=timeout):
            case Workload() as workload if _has_quota(workload):
                return f"Workload {workload.metadata.name} has quota behind the closed gate"
            case Workload():
                return None
            case _:
                return f"the Workload of TrainJob {live.metadata.name} went away"

    async def _collect(self, job: TrainJob, copy: TrainingRuntime, valid: Backend) -> str | None:
        """Delete the TrainJob, and say why its copy is not collected within `timeouts.call`; None when it is."""
        call, bound = duration.seconds(valid.spec.timeouts.call), valid.spec.timeouts.call
        meta, key = copy.metadata, Key(copy.metadata.namespace, copy.metadata.name)
        try:
            await self.client.delete(job.KIND, *key, timeout=call, uid=job.metadata.uid)
        except ApiError as error:
            if error.not_found or error.conflict:
                raise DisturbedError("its TrainJob was deleted in the middle") from error
            raise
        deadline = self.clock() + call
        while True:
            left = max(deadline - self.clock(), 0.0)
            await self.store.gone(TrainingRuntime, key, meta.uid, left)
            found = await typed.get(self.client, TrainingRuntime, *key, timeout=call)
            if found is None or found.metadata.uid != meta.uid:
                return None
            if self.clock() >= deadline:
                what = f"TrainingRuntime {meta.name} was still there {bound} after its TrainJob was deleted"
                return f"{what}; is the garbage collector (kube-controller-manager) running, and not too busy?"
            # The watch is ahead of the read, or has not seen the copy at all.
            await self.store.until(lambda: False, min(LOOK_AGAIN, left))


def _has_quota(workload: Workload | None) -> bool:
    return workload is not None and workload.status.is_true("QuotaReserved")


def _promised(workload: Workload | None) -> tuple[object, ...]:
    """Return what the last step reads. Kueue 0.19 writes the status of one without a LocalQueue many times a second."""
    if workload is None:
        return ()
    checks = tuple(check.name for check in workload.status.admission_checks)
    return workload.metadata.uid, workload.metadata.gates, checks


def _identity(backend: DispatchBackend | None) -> tuple[str, int] | None:
    return (backend.metadata.uid, backend.metadata.generation) if backend else None
