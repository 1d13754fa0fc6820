"""The job's state, mirrored from the TrainJob, its JobSet and its pods (contract section 11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Wanted
from dispatch_operator.reconcile.failure_cause import cause_of_failure
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.gates.gate import closed_phase, is_open, wants_open
from dispatch_operator.reconcile.observation import Object, Observed, at, condition
from dispatch_operator.reconcile.ownership import in_kueue_mode, phase_of
from dispatch_operator.reconcile.status import compose, started_steps

QUIET_LIMIT = 30.0
"""Seconds after which an open gate without a pod is explained by the TrainJob's newest warning."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What the status should show of a started job."""

    phase: Phase
    conditions: tuple[Wanted, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def status(self, observed: Observed, now: float) -> dict[str, Any]:
        """Return the whole status."""
        named = {want.type for want in self.conditions}
        kept = [step for step in started_steps(observed) if step.type not in named]
        return compose(observed, self.phase, [*kept, *self.conditions], now, {**_counts(observed), **self.extra})


def has_ended(train_job: object) -> bool:
    """Tell whether a TrainJob is Complete or Failed."""
    return any(condition(train_job, kind).get("status") == TRUE for kind in ("Complete", "Failed"))


def unchanged(observed: Observed) -> JobStatus:
    """Return what is recorded, for an end that nothing changes any more."""
    phase = phase_of(observed.start) or Phase.LOST
    held = [entry for entry in at(observed.start, "status", "conditions") or () if entry.get("type") in set(Condition)]
    return JobStatus(
        phase,
        tuple(
            Wanted(Condition(entry["type"]), entry["status"], entry["reason"], entry.get("message", ""))
            for entry in held
        ),
    )


def succeeded(observed: Observed) -> JobStatus:
    """Return the end of a job that did what it was asked for."""
    message = _short(condition(observed.train_job.obj, "Complete").get("message")) or "the job completed"
    return JobStatus(
        Phase.SUCCEEDED,
        (
            Wanted(Condition.SUCCEEDED, TRUE, "Succeeded", message),
            Wanted(Condition.READY, TRUE, "Succeeded", message),
        ),
        {"outcome": {"state": "Succeeded", "message": message}},
    )


def failed(observed: Observed) -> JobStatus:
    """Return the end of a job that failed, with its cause."""
    cause = cause_of_failure(condition(observed.train_job.obj, "Failed"), observed.pods or ())
    outcome: dict[str, Any] = {"state": "Failed", "cause": cause.reason, "message": cause.message}
    if cause.exit_code is not None:
        outcome["exitCode"] = cause.exit_code
    return _ended_badly(Phase.FAILED, cause.reason, cause.message or "the job failed", outcome)


def lost(observed: Observed) -> JobStatus:
    """Return the end of a job whose TrainJob vanished: it is not created again."""
    name = at(observed.start, "status", "reference", "name")
    message = f"TrainJob {name} vanished after it was started; it is not created again: submit under another number"
    return _ended_badly(Phase.LOST, "Lost", message, {"state": "Lost", "cause": "Lost", "message": message})


def _ended_badly(phase: Phase, reason: str, message: str, outcome: Mapping[str, Any]) -> JobStatus:
    return JobStatus(
        phase,
        (
            Wanted(Condition.SUCCEEDED, FALSE, reason, message),
            Wanted(Condition.READY, FALSE, reason, message),
            Wanted(Condition.STALLED, TRUE, reason, message),
        ),
        {"outcome": outcome},
    )


def copy_altered(observed: Observed, problem: str, *, unread: bool) -> JobStatus:
    """Return the state of a gated job whose copy is not what was submitted, or can't be seen."""
    error_class = ErrorClass.UNREACHABLE if unread else ErrorClass.REJECTED
    reason = error_class.value
    wanted = [
        Wanted(Condition.READY, FALSE, reason, problem),
        Wanted(Condition.SUCCEEDED, UNKNOWN, reason, problem),
        Wanted(Condition.RECONCILING, TRUE, reason, problem),
    ]
    if not unread:
        wanted.append(Wanted(Condition.RUNTIME_COPIED, FALSE, reason, problem))
    return JobStatus(closed_phase(observed), tuple(wanted))


def gate_stuck(observed: Observed, problem: str) -> JobStatus:
    """Return the state while the gate could not be moved; it is tried again."""
    moving = "Opening" if wants_open(observed) else "Closing"
    phase, message = _phase(observed)
    return JobStatus(
        phase,
        (
            Wanted(Condition.SUCCEEDED, UNKNOWN, phase, message),
            Wanted(Condition.READY, TRUE, "Started", message),
            Wanted(Condition.RECONCILING, TRUE, moving, f"will be tried again: {problem}"),
        ),
    )


def holding() -> JobStatus:
    """Return the record of Held, before the job is held (section 12): it tells our hold from one of Kueue's own."""
    message = "the start gate is being held"
    return JobStatus(
        Phase.HELD,
        (
            Wanted(Condition.SUCCEEDED, UNKNOWN, Phase.HELD, message),
            Wanted(Condition.READY, TRUE, "Started", message),
            Wanted(Condition.RECONCILING, TRUE, "Closing", message),
        ),
    )


def managed_by_kueue(observed: Observed) -> JobStatus:
    """Return the state of a job that Kueue manages though its backend is in plain mode."""
    runs = any(job.get("ready") for job in _jobs(observed))
    state = kueue_queue.why_it_waits(observed.train_job.obj, observed.workload.obj) or "it is admitted"
    message = (
        f"Kueue manages this TrainJob though its backend has no kueue section, so that the gate can't be moved here; "
        f"give the backend one, or let Kueue leave this namespace alone. Kueue says: {state}"
    )
    return JobStatus(
        Phase.RUNNING if runs else Phase.QUEUED if wants_open(observed) else closed_phase(observed),
        (
            Wanted(Condition.SUCCEEDED, UNKNOWN, "ManagedByKueue", message),
            Wanted(Condition.READY, TRUE, "ManagedByKueue", message),
        ),
    )


def going_on(observed: Observed) -> JobStatus:
    """Return the state of a job that has not ended; of a Start that just became whole, it is what records Started."""
    phase, message = _phase(observed)
    return JobStatus(
        phase,
        (Wanted(Condition.SUCCEEDED, UNKNOWN, phase, message), Wanted(Condition.READY, TRUE, "Started", message)),
    )


def _phase(observed: Observed) -> tuple[Phase, str]:
    if not is_open(observed):
        phase = closed_phase(observed)
        return phase, f"the start gate is {'held' if phase is Phase.HELD else 'closed'}; set spec.gate to Open to run"
    if in_kueue_mode(observed) and not wants_open(observed):
        # Held was recorded before the Workload was touched, and stays so until it is.
        return Phase.HELD, "the start gate is being held"
    jobs = _jobs(observed)
    if any(job.get("ready") for job in jobs):
        return Phase.RUNNING, "the job's pods run"
    if in_kueue_mode(observed) and (reason := kueue_queue.why_it_waits(observed.train_job.obj, observed.workload.obj)):
        return Phase.QUEUED, reason
    if any(job.get("active") for job in jobs):
        return Phase.QUEUED, "the gate is open; the job's pods are starting"
    return Phase.QUEUED, "the gate is open; no pod of the job exists yet" + _newest_warning(observed.warnings or ())


def _newest_warning(events: Iterable[Object]) -> str:
    warnings = [event for event in events if event.get("type") == "Warning"]
    if not warnings:
        return ""
    newest = max(warnings, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return f"; the TrainJob's newest warning: {newest.get('reason')}: {_short(newest.get('message'))}"


def quiet_for(observed: Observed, now: float) -> float | None:
    """Return for how many seconds the gate has been open without a JobSet or a pod; None when there is one."""
    if not is_open(observed) or (in_kueue_mode(observed) and not kueue_queue.is_admitted(observed.workload.obj)):
        return None
    if any(job.get("active") or job.get("ready") for job in _jobs(observed)):
        return None
    opened = times.read(condition(observed.train_job.obj, "Suspended").get("lastTransitionTime"))
    recorded = times.read(at(observed.start, "metadata", "creationTimestamp"))
    since = opened if opened is not None else recorded
    return max(0.0, now - since) if since is not None else 0.0


def _jobs(observed: Observed) -> list[Object]:
    return [job for job in at(observed.train_job.obj, "status", "jobsStatus") or () if isinstance(job, Mapping)]


def _counts(observed: Observed) -> dict[str, int]:
    """Return how often the JobSet restarted the job, and how often Kueue put it back into its queue."""
    restarts = at(observed.job_set, "status", "restarts")
    # Our own holds are evictions too, and no news to anybody.
    evictions = sum(
        at(entry, "count") or 0
        for entry in at(observed.workload.obj, "status", "schedulingStats", "evictions") or ()
        if at(entry, "reason") != "Deactivated" or at(entry, "underlyingCause")
    )
    found = {"restarts": restarts, "evictions": evictions}
    return {key: count for key, count in found.items() if isinstance(count, int) and count > 0}


def _short(text: object) -> str:
    return " ".join(str(text or "").split())[:1024]
