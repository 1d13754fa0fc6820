"""The job's state, followed from the TrainJob, its JobSet and its pods (docs/contract.md, Phases and Outcome)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.models.status import Outcome, StartStatus
from dispatch_operator.reconcile.conditions import Wanted
from dispatch_operator.reconcile.failure_cause import cause_of_failure, one_line
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.gates.gate import closed_phase, is_open, wants_open
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import in_kueue_mode
from dispatch_operator.reconcile.status import FALSE, TRUE, UNKNOWN, Readiness, compose, started_steps, told_by
from dispatch_operator.records.core import Event
from dispatch_operator.records.trainer import JobCounts, TrainJob

QUIET_LIMIT = 30.0
"""Seconds after which an open gate without a pod is explained by the TrainJob's newest warning."""


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
        extra = {**_counts(observed), **self.extra}
        return compose(observed, self.phase, self.ready, [*kept, *self.conditions], now, extra)


def has_ended(train_job: TrainJob) -> bool:
    """Tell whether a TrainJob is Complete or Failed."""
    return any(train_job.status.is_true(kind) for kind in ("Complete", "Failed"))


def unchanged(observed: Observed) -> JobStatus:
    """Return what is recorded, for an end that nothing changes any more."""
    status = observed.start.status
    held = [
        Wanted(Condition(entry.type), entry.status, entry.reason, entry.message)
        for entry in status.conditions
        if entry.type in set(Condition) - {Condition.FINISHED}
    ]
    ready = next((Readiness(one.status, one.reason, one.message) for one in held if one.type is Condition.READY), None)
    return JobStatus(
        status.phase or Phase.LOST,
        ready or Readiness(UNKNOWN, "Unknown", ""),
        tuple(one for one in held if one.type is not Condition.READY),
    )


def succeeded(observed: Observed, job: TrainJob) -> JobStatus:
    """Return the end of a job that did what it was asked for."""
    del observed
    complete = job.status.condition("Complete")
    message = one_line(complete.message if complete else "") or "the job completed"
    return JobStatus(
        Phase.SUCCEEDED,
        Readiness(TRUE, "Succeeded", message),
        (Wanted(Condition.SUCCEEDED, TRUE, "Succeeded", message),),
        {"outcome": Outcome("Succeeded", message=message)},
    )


def failed(observed: Observed, job: TrainJob) -> JobStatus:
    """Return the end of a job that failed, with its cause."""
    cause = cause_of_failure(job.status.condition("Failed"), observed.pods or ())
    outcome = Outcome("Failed", cause.reason, exit_code=cause.exit_code, message=cause.message)
    return _ended_badly(Phase.FAILED, cause.reason, cause.message or "the job failed", outcome)


def lost(observed: Observed) -> JobStatus:
    """Return the end of a job whose TrainJob vanished: it is not created again."""
    reference = observed.start.status.reference
    name = reference.name if reference else None
    message = f"TrainJob {name} vanished after it was started; it is not created again: submit under another number"
    return _ended_badly(Phase.LOST, "Lost", message, Outcome("Lost", "Lost", message=message))


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
    return _moving(*_phase(observed), wants_open(observed), f"will be tried again: {problem}")


def holding() -> JobStatus:
    """Return the record of Held, before the job is held: it tells our hold from one of Kueue's own."""
    message = "the start gate is being held"
    return _moving(Phase.HELD, message, False, message)  # noqa: FBT003 - the gate is closing.


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
    runs = any(counts.ready for counts in job.status.jobs_status)
    state = kueue_queue.why_it_waits(job, observed.workload.obj) or "it is admitted"
    message = (
        f"Kueue manages this TrainJob though its backend has no kueue section, so that the gate can't be moved here; "
        f"give the backend one, or let Kueue leave this namespace alone. Kueue says: {state}"
    )
    return JobStatus(
        Phase.RUNNING if runs else Phase.QUEUED if wants_open(observed) else closed_phase(observed),
        Readiness(TRUE, "ManagedByKueue", message),
        (Wanted(Condition.SUCCEEDED, UNKNOWN, "ManagedByKueue", message),),
    )


def going_on(observed: Observed) -> JobStatus:
    """Return the state of a job that has not ended; of a Start that just became whole, it is what records Started."""
    phase, message = _phase(observed)
    succeeded = Wanted(Condition.SUCCEEDED, UNKNOWN, phase, message)
    return JobStatus(phase, Readiness(TRUE, phase, message), (succeeded,))


def _phase(observed: Observed) -> tuple[Phase, str]:
    if not is_open(observed):
        phase = closed_phase(observed)
        return phase, f"the start gate is {'held' if phase is Phase.HELD else 'closed'}; set spec.gate to Open to run"
    if in_kueue_mode(observed) and not wants_open(observed):
        # Held was recorded before the Workload was touched, and stays so until it is.
        return Phase.HELD, "the start gate is being held"
    jobs = _jobs(observed)
    if any(job.ready for job in jobs):
        return Phase.RUNNING, "the job's pods run"
    if in_kueue_mode(observed) and (reason := kueue_queue.why_it_waits(observed.train_job.obj, observed.workload.obj)):
        return Phase.QUEUED, reason
    if any(job.active for job in jobs):
        return Phase.QUEUED, "the gate is open; the job's pods are starting"
    return Phase.QUEUED, "the gate is open; no pod of the job exists yet" + _newest_warning(observed.warnings or ())


def _newest_warning(events: Iterable[Event]) -> str:
    warnings = [event for event in events if event.type == "Warning"]
    if not warnings:
        return ""
    newest = max(warnings, key=lambda event: event.last_timestamp or event.event_time or "")
    return f"; the TrainJob's newest warning: {newest.reason}: {one_line(newest.message)}"


def quiet_for(observed: Observed, job: TrainJob, now: float) -> float | None:
    """Return for how many seconds the gate has been open without a JobSet or a pod; None when there is one."""
    if not is_open(observed) or (in_kueue_mode(observed) and not kueue_queue.is_admitted(observed.workload.obj)):
        return None
    if any(counts.active or counts.ready for counts in job.status.jobs_status):
        return None
    suspended = job.status.condition("Suspended")
    opened = times.read(suspended.last_transition_time) if suspended else None
    since = opened if opened is not None else times.read(observed.start.metadata.creation_timestamp)
    return max(0.0, now - since) if since is not None else 0.0


def _jobs(observed: Observed) -> tuple[JobCounts, ...]:
    return observed.train_job.obj.status.jobs_status if observed.train_job.obj else ()


def _counts(observed: Observed) -> dict[str, int]:
    """Return how often the JobSet restarted the job, and how often Kueue put it back into its queue."""
    told = observed.start.status.restarts or 0
    restarts = observed.job_set.status.restarts if observed.job_set else told
    stats = observed.workload.obj.status.scheduling_stats.evictions if observed.workload.obj else ()
    # Our own holds are evictions too, and no news to anybody.
    evictions = sum(one.count for one in stats if one.reason != "Deactivated" or one.underlying_cause)
    return {"restarts": restarts, **({"evictions": evictions} if evictions > 0 else {})}
