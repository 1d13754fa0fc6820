"""The job's state, followed from the TrainJob, its JobSet and its pods (docs/contract.md, Phases and Outcome)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.models.status import Outcome, StartStatus
from dispatch_operator.api.quoting import short_line
from dispatch_operator.reconcile.conditions import Wanted
from dispatch_operator.reconcile.failure_cause import cause_of_failure
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.gates.gate import closed_phase, wants_open
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.restarts import counts, last_restart, told_of_restarts
from dispatch_operator.reconcile.run_state import being_held, found_obstacle, state_of, told_obstacle
from dispatch_operator.reconcile.status import FALSE, TRUE, UNKNOWN, Readiness, compose, started_steps, told_by
from dispatch_operator.reconcile.step_result import Refusal
from dispatch_operator.records.trainer import TrainJob


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What the status should show of a started job."""

    phase: Phase
    ready: Readiness
    conditions: tuple[Wanted, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def status(self, observed: Observed, now: float) -> StartStatus:
        """Return the whole status."""
        named = {want.type for want in self.conditions}
        kept = [step for step in started_steps(observed) if step.type not in named]
        extra = {"outcome": None, **counts(observed), **last_restart(observed), **self.extra}
        return compose(observed, self.phase, self.ready, [*kept, *self.conditions], now, extra)


def has_ended(train_job: TrainJob) -> bool:
    """Tell whether a TrainJob is Complete or Failed."""
    return bool(train_job.status.ends)


def unchanged(observed: Observed, end: Phase) -> JobStatus:
    """Return what is recorded, for an end that nothing changes any more; what was lost of it is filled in."""
    status = observed.start.status
    held = {
        entry.type: Wanted(Condition(entry.type), entry.status, entry.reason, entry.message)
        for entry in status.conditions
        if entry.type in set(Condition) - {Condition.FINISHED}
    }
    outcome = status.outcome or Outcome(end, message="how it ended was lost with the status")
    reason, message = outcome.cause or end, outcome.message or ""
    rest = _ended_well(message) if end is Phase.SUCCEEDED else _ended_badly(end, reason, message, outcome)
    ready = held.pop(Condition.READY, None)
    shown = {one.type: one for one in (*rest.conditions, *held.values())}
    readiness = Readiness(ready.status, ready.reason, ready.message) if ready else rest.ready
    return JobStatus(end, readiness, tuple(shown.values()), {"outcome": outcome})


def succeeded(observed: Observed, job: TrainJob) -> JobStatus:
    """Return the end of a job that did what it was asked for."""
    del observed
    complete = job.status.condition("Complete")
    message = short_line(complete.message if complete else "") or "the job completed"
    return _ended_well(message)


def _ended_well(message: str) -> JobStatus:
    return JobStatus(
        Phase.SUCCEEDED,
        Readiness(TRUE, "Succeeded", message),
        (Wanted(Condition.SUCCEEDED, TRUE, "Succeeded", message),),
        {"outcome": Outcome("Succeeded", message=message)},
    )


def failed(observed: Observed, job: TrainJob, now: float) -> JobStatus:
    """Return the end of a job that failed, with its cause."""
    kept_it = told_obstacle(observed) or found_obstacle(observed, now)
    cause = cause_of_failure(job.status.condition("Failed"), observed.pods or (), kept_it)
    outcome = Outcome(
        "Failed", cause.reason, cause.kind, cause.pod, cause.container, cause.exit_code, cause.message or None
    )
    return _ended_badly(Phase.FAILED, cause.reason, cause.message or "the job failed", outcome)


def lost(observed: Observed) -> JobStatus:
    """Return the end of a job whose TrainJob vanished: it is not created again."""
    start = observed.start
    name = start.status.reference.name if start.status.reference else f"{start.metadata.namespace}/{start.target}"
    message = f"TrainJob {name} vanished after it was started; it is not created again: submit under another number"
    return _ended_badly(Phase.LOST, "Lost", message, Outcome("Lost", "Lost", message=message))


def unclear(observed: Observed, now: float) -> JobStatus:
    """Return the state of a job of which nothing tells whether it is the one that was started."""
    start, job = observed.start, observed.train_job.obj
    meta, called = start.metadata, f"{start.metadata.namespace}/{start.target}"
    uid = job.metadata.uid if job else ""
    message = (
        f"the status has lost its reference, and nothing tells whether TrainJob {called} is the one that was started; "
        f"it is neither opened nor stopped: delete it, or if it is, say so: kubectl patch dispatchstart {meta.name} "
        f"-n {meta.namespace} --subresource=status --type=merge "
        f'-p \'{{"status":{{"reference":{{"name":"{called}","uid":"{uid}"}}}}}}\''
    )
    return JobStatus(
        state_of(observed, now).phase,
        Readiness(FALSE, "ReferenceLost", message),
        (
            Wanted(Condition.STARTED, UNKNOWN, "ReferenceLost", message),
            Wanted(Condition.SUCCEEDED, UNKNOWN, "ReferenceLost", message),
            Wanted(Condition.RECONCILING, TRUE, "ReferenceLost", message),
        ),
    )


def taken_up(observed: Observed, told: Iterable[Refusal], now: float) -> JobStatus:
    """Return the state of a job that is recorded anew, with what is told of it and stops nothing."""
    state = going_on(observed, now)
    differs = tuple(Wanted(one.step, FALSE, one.error_class, one.message) for one in told)
    return replace(state, conditions=(*state.conditions, *differs))


def _ended_badly(phase: Phase, reason: str, message: str, outcome: Outcome) -> JobStatus:
    return JobStatus(
        phase,
        Readiness(FALSE, reason, message),
        (Wanted(Condition.SUCCEEDED, FALSE, reason, message), Wanted(Condition.STALLED, TRUE, reason, message)),
        {"outcome": outcome},
    )


def copy_altered(observed: Observed, problem: str, *, unread: bool) -> JobStatus:
    """Return the state of a gated job whose copy is not what was submitted, or can't be seen."""
    reason = (ErrorClass.UNREACHABLE if unread else ErrorClass.REJECTED).value
    told = told_by(Condition.READY if unread else Condition.RUNTIME_COPIED, problem)
    wanted = [Wanted(Condition.SUCCEEDED, UNKNOWN, reason, told), Wanted(Condition.RECONCILING, TRUE, reason, told)]
    if not unread:
        wanted.append(Wanted(Condition.RUNTIME_COPIED, FALSE, reason, problem))
    return JobStatus(closed_phase(observed), Readiness(FALSE, reason, problem if unread else told), tuple(wanted))


def gate_stuck(observed: Observed, problem: str) -> JobStatus:
    """Return the state while the gate could not be moved; it is tried again."""
    state = state_of(observed, 0.0)
    return _moving(state.phase, state.message, wants_open(observed), f"will be tried again: {problem}")


def holding(observed: Observed) -> JobStatus:
    """Return the state of a job that is to be held, from the record of that wish until the cluster holds it."""
    message = being_held(observed)
    return _moving(Phase.HOLDING, message, False, message)  # noqa: FBT003 - the gate is closing.


def _moving(phase: Phase, message: str, opening: bool, progress: str) -> JobStatus:  # noqa: FBT001 - one of two words.
    return JobStatus(
        phase,
        Readiness(TRUE, phase, message),
        (
            Wanted(Condition.SUCCEEDED, UNKNOWN, phase, message),
            Wanted(Condition.RECONCILING, TRUE, "Opening" if opening else "Closing", progress),
        ),
    )


def managed_by_kueue(observed: Observed, job: TrainJob) -> JobStatus:
    """Return the state of a job that Kueue manages though its backend is in plain mode."""
    runs = any(one.ready for one in job.status.jobs_status)
    state = kueue_queue.why_it_waits(observed) or "it is admitted"
    message = (
        f"Kueue manages this TrainJob though its backend has no kueue section, so that the gate can't be moved here; "
        f"give the backend one, or let Kueue leave this namespace alone. Kueue says: {state}"
    )
    return JobStatus(
        Phase.RUNNING if runs else Phase.QUEUED if wants_open(observed) else closed_phase(observed),
        Readiness(TRUE, "ManagedByKueue", message),
        (Wanted(Condition.SUCCEEDED, UNKNOWN, "ManagedByKueue", message),),
    )


def going_on(observed: Observed, now: float) -> JobStatus:
    """Return the state of a job that has not ended; of a Start that just became whole, it is what records Started."""
    state = state_of(observed, now)
    if state.phase is Phase.HOLDING:
        return holding(observed)
    may_run = state.phase in {Phase.QUEUED, Phase.RUNNING}
    message = state.message + (told_of_restarts(observed) if may_run else "")
    succeeded = Wanted(Condition.SUCCEEDED, UNKNOWN, state.reason or state.phase, message)
    return JobStatus(state.phase, Readiness(TRUE, succeeded.reason, message), (succeeded,))
