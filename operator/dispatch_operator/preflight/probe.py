"""One run of the probe: a Start, its gate watched, its end; nothing of it is left (contract section 10)."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from dispatch_operator.api import duration
from dispatch_operator.api.enums import BackendGate, Condition
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend, read_backend
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Store
from dispatch_operator.preflight.clean_up import sweep
from dispatch_operator.preflight.probe_start import begin, gate_of, is_verdict, next_step, with_condition
from dispatch_operator.preflight.ulid import RANDOM_BITS, ulid
from dispatch_operator.reconcile.actions import Action, FindWorkload, ReadCopy, ReadPods, ReadTrainJob
from dispatch_operator.reconcile.backend.status import Found
from dispatch_operator.reconcile.learn import learn
from dispatch_operator.reconcile.observation import Object, Observation, Observed, at, condition
from dispatch_operator.reconcile.ownership import gates, is_going, made_for, owners, uid_of
from dispatch_operator.reconcile.reconciler import answer_to, carry_out
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting
from dispatch_operator.reconcile.steps.create_train_job import STEP as CREATION

BUDGET = 100
"""Requests of one run's steps."""
NOT_PROBED = f"not probed, because {BackendGate.FIELDS_KEPT} is not proven"
LOOK_AGAIN = 0.5
"""Seconds until the next live read, when the watch lags behind what was read."""


ADMISSION_CHECKS = ("status", "admissionChecks")
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
    runtime: Object | None
    """The probe runtime as it was read; None when it does not exist."""


@dataclass(frozen=True)
class Probe:
    """Runs probes; each of its runs knows nothing of the one before."""

    client: Client
    store: Store
    clock: Callable[[], float] = time.time

    async def run(self, backend: Object) -> ProbeResult:
        """Probe a backend once.

        Args:
            backend: The DispatchBackend, as it was just read.

        Raises:
            UndecidedError: It came to no verdict. Something may be left, which the next run deletes.
            ChangedError: The backend changed meanwhile.
        """
        model, job = read_backend(backend), ulid(self.clock(), secrets.randbits(RANDOM_BITS))
        call = duration.seconds(model.spec.timeouts.call)
        try:
            await sweep(self.client, backend, timeout=call)
            try:
                return await self._run(begin(backend, job), model)
            finally:
                await sweep(self.client, backend, timeout=call, job=job)
        except ApiError as error:
            raise UndecidedError(str(error)) from error

    async def _run(self, observed: Observed, model: Backend) -> ProbeResult:
        observed, verdict = await self._start(observed)
        if verdict is not None and not is_verdict(verdict):
            raise UndecidedError(verdict.message)
        found: dict[BackendGate, str | None] = dict.fromkeys(BackendGate)
        if isinstance(verdict, Refusal):
            await self._see_that_it_was_not_disturbed(observed, verdict)
            failed = gate_of(verdict)
            found[failed] = verdict.message
            if failed is BackendGate.FIELDS_KEPT:
                found[BackendGate.START_GATE] = NOT_PROBED
        else:
            found[BackendGate.START_GATE] = await self._hold(observed, model)
        if made_for(observed.train_job.obj, observed.start) and owners(observed.copy.obj):
            found[BackendGate.COLLECTED] = await self._collect(observed, model)
        else:
            found[BackendGate.COLLECTED] = NOT_PROBED
        return ProbeResult(found, observed.runtime.obj)

    async def _start(self, observed: Observed) -> tuple[Observed, Verdict | None]:
        """Take the steps of a Start, until all have succeeded or one has not."""
        for _ in range(BUDGET):
            match next_step(observed, self.clock()):
                case Action() as action:
                    begun = self.clock()
                    observed = learn(
                        observed, action, await answer_to(self.client, self.store, observed, action), begun
                    )
                case Waiting(step=Condition.WORKLOAD_GATED, requeue_after=float(left)):
                    observed = await self._await_workload(observed, left)
                case verdict:
                    return observed, verdict
        raise UndecidedError(f"it took more than {BUDGET} requests")

    async def _await_workload(self, observed: Observed, seconds: float) -> Observed:
        """Wait for a change of the Workload, as a DispatchStart's look would be woken by one."""
        owner = at(observed.start, "metadata", "namespace"), uid_of(observed.train_job.obj)
        before = _promised(observed.workload.obj)
        if not condition(observed.start, Condition.WORKLOAD_GATED):
            observed = replace(observed, start=with_condition(observed.start, Condition.WORKLOAD_GATED, self.clock()))
        # The event loop's clock may be a little ahead of the one that the step reads.
        await self._until(observed, lambda: _promised(self.store.workload(*owner)) != before, seconds + CLOCK_GRAIN)
        return replace(observed, workload=Observation(self.store.workload(*owner)))

    async def _see_that_it_was_not_disturbed(self, observed: Observed, refusal: Refusal) -> None:
        """What somebody deletes in the middle, perhaps another operator's sweep, says nothing of the backend."""
        if made_for(observed.train_job.obj, observed.start):
            await self._train_job(observed)
        elif refusal.step is CREATION and made_for(observed.copy.obj, observed.start):
            copy = await self._read(observed, ReadCopy())
            if uid_of(copy) != uid_of(observed.copy.obj) or is_going(copy):
                raise DisturbedError("its copy of the runtime was deleted in the middle")

    async def _train_job(self, observed: Observed) -> Object:
        job = await self._read(observed, ReadTrainJob())
        if job is None or uid_of(job) != uid_of(observed.train_job.obj) or is_going(job):
            raise DisturbedError("its TrainJob was deleted in the middle")
        return job

    async def _hold(self, observed: Observed, model: Backend) -> str | None:
        """Say what came through the closed gate within `timeouts.hold`; None when nothing did."""
        if (came := await self._came_through(observed, model)) is not None:
            return came
        await self._until(observed, lambda: self._may_run(observed), duration.seconds(model.spec.timeouts.hold))
        return await self._came_through(observed, model)

    async def _until(self, observed: Observed, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for what the watches say, but not on behalf of a backend that is not the one that is probed any more."""
        probed, meta = _identity(observed.backend.obj), at(observed.start, "metadata")

        def is_other() -> bool:
            return _identity(self.store.get(Kind.DISPATCH_BACKEND, meta["namespace"], meta["name"])) != probed

        await self.store.until(lambda: is_other() or condition(), seconds)
        if is_other():
            raise ChangedError

    def _may_run(self, observed: Observed) -> bool:
        """Tell whether a watch says that the gate has let something through: then the live reads come at once."""
        meta = at(observed.train_job.obj, "metadata")
        job = self.store.get(Kind.TRAIN_JOB, meta["namespace"], meta["name"])
        return (job is not None and not _is_suspended(job)) or _has_quota(
            self.store.workload(meta["namespace"], meta["uid"])
        )

    async def _came_through(self, observed: Observed, model: Backend) -> str | None:
        job = await self._train_job(observed)
        name = at(job, "metadata", "name")
        if not _is_suspended(job):
            return f"TrainJob {name} was resumed behind its closed gate"
        pods = await carry_out(self.client, observed, ReadPods())
        if isinstance(pods, tuple) and pods:
            return f"pod {at(pods[0], 'metadata', 'name')} exists behind the closed gate"
        if model.spec.kueue is None:
            return None
        workload = await self._read(observed, FindWorkload(uid_of(job)))
        if _has_quota(workload):
            return f"Workload {at(workload, 'metadata', 'name')} has quota behind the closed gate"
        return None if workload is not None else f"the Workload of TrainJob {name} went away"

    async def _collect(self, observed: Observed, model: Backend) -> str | None:
        """Delete the TrainJob, and say why its copy is not collected within `timeouts.call`; None when it is."""
        call, bound = duration.seconds(model.spec.timeouts.call), model.spec.timeouts.call
        job, copy = at(observed.train_job.obj, "metadata"), at(observed.copy.obj, "metadata")
        try:
            await self.client.delete(Kind.TRAIN_JOB, job["namespace"], job["name"], timeout=call, uid=job["uid"])
        except ApiError as error:
            if error.not_found or error.conflict:
                raise DisturbedError("its TrainJob was deleted in the middle") from error
            raise
        deadline = self.clock() + call
        while True:
            left = max(deadline - self.clock(), 0.0)
            await self.store.gone(Kind.TRAINING_RUNTIME, copy["namespace"], copy["name"], copy["uid"], left)
            if uid_of(await self._read(observed, ReadCopy())) != copy["uid"]:
                return None
            if self.clock() >= deadline:
                what = f"TrainingRuntime {copy['name']} was still there {bound} after its TrainJob was deleted"
                return f"{what}; is the garbage collector (kube-controller-manager) running, and not too busy?"
            # The watch is ahead of the read, or has not seen the copy at all.
            await self.store.until(lambda: False, min(LOOK_AGAIN, left))

    async def _read(self, observed: Observed, action: Action) -> Object | None:
        answer = await carry_out(self.client, observed, action)
        return answer if not isinstance(answer, tuple) else None


def _is_suspended(train_job: object) -> bool:
    return at(train_job, "spec", "suspend") is True


def _has_quota(workload: object) -> bool:
    return condition(workload, "QuotaReserved").get("status") == "True"


def _promised(workload: object) -> tuple[object, ...]:
    """Return what step 9 looks at. Kueue 0.19 writes the status of one without a LocalQueue many times a second."""
    return uid_of(workload), gates(workload), [at(entry, "name") for entry in at(workload, *ADMISSION_CHECKS) or ()]


def _identity(backend: object) -> tuple[object, object]:
    return at(backend, "metadata", "uid"), at(backend, "metadata", "generation")
