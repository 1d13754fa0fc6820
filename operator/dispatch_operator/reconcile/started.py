"""After Started was recorded: move the gate, and mirror the job to its end (contract sections 11 and 12)."""

from dispatch_operator.api.enums import Phase
from dispatch_operator.reconcile import job_status
from dispatch_operator.reconcile.actions import (
    Action,
    PatchStatus,
    ReadCopy,
    ReadPods,
    ReadRuntime,
    ReadTrainJob,
    ReadWarnings,
    Result,
)
from dispatch_operator.reconcile.gates.gate import (
    is_kueues,
    is_open,
    must_be_recorded,
    next_change,
    wants_open,
    was_undone,
)
from dispatch_operator.reconcile.gates.gated_copy import check_copy
from dispatch_operator.reconcile.job_status import JobStatus
from dispatch_operator.reconcile.observation import Observed, at, condition
from dispatch_operator.reconcile.ownership import phase_of, uid_of
from dispatch_operator.reconcile.teardown import clean_up

ENDED = (Phase.SUCCEEDED, Phase.FAILED)


def follow(observed: Observed, now: float) -> Action | Result:
    """Return the next act for a DispatchStart that has started."""
    phase = phase_of(observed.start)
    if phase in ENDED:
        return _recorded(observed, job_status.unchanged(observed), now)
    if phase is Phase.LOST:
        action = _recorded(observed, job_status.unchanged(observed), now)
        return action if isinstance(action, Action) else clean_up(observed)
    # Only the TrainJob of the recorded UID is opened, held or mirrored (rule 4).
    reference = at(observed.start, "status", "reference", "uid")
    if not reference or uid_of(observed.train_job.obj) != reference:
        return _lost(observed, now)
    if job_status.has_ended(observed.train_job.obj):
        return _ended(observed, now)
    return _going_on(observed, now)


def _lost(observed: Observed, now: float) -> Action | Result:
    if error := observed.failure(ReadTrainJob):
        return Result(requeue=True, retry_after=error.retry_after)
    return _recorded(observed, job_status.lost(observed), now) if observed.train_job.live else ReadTrainJob()


def _ended(observed: Observed, now: float) -> Action | Result:
    if condition(observed.train_job.obj, "Failed").get("status") != "True":
        return _recorded(observed, job_status.succeeded(observed), now)
    if observed.pods is None and not observed.failure(ReadPods):
        return ReadPods()
    return _recorded(observed, job_status.failed(observed), now)


def _going_on(observed: Observed, now: float) -> Action | Result:
    if is_kueues(observed):
        return _recorded(observed, job_status.managed_by_kueue(observed), now)
    change = next_change(observed)
    if not is_open(observed):
        problem = check_copy(observed, opening=wants_open(observed))
        if isinstance(problem, Action):
            return problem
        if problem:
            unread = observed.failure(ReadCopy) or observed.failure(ReadRuntime)
            result = _recorded(observed, job_status.copy_altered(observed, problem, unread=unread is not None), now)
            if isinstance(result, Action) or unread is None:
                return result
            return Result(requeue=True, retry_after=unread.retry_after)
    return _move(observed, change, now) if change else _mirror(observed, now)


def _move(observed: Observed, change: Action, now: float) -> Action | Result:
    if must_be_recorded(observed):
        return _recorded(observed, job_status.holding(), now)
    error = observed.failure(type(change))
    if error is None and not was_undone(observed):
        return change
    problem = str(error) if error else "the gate was moved, and something moved it back at once"
    result = _recorded(observed, job_status.gate_stuck(observed, problem), now)
    requeue = Result(requeue=True, retry_after=error.retry_after if error else None)
    return result if isinstance(result, Action) else requeue


def _mirror(observed: Observed, now: float) -> Action | Result:
    quiet_for = job_status.quiet_for(observed, now)
    if quiet_for is None:
        return _recorded(observed, job_status.going_on(observed), now)
    if quiet_for < job_status.QUIET_LIMIT:
        result = _recorded(observed, job_status.going_on(observed), now)
        return result if isinstance(result, Action) else Result(requeue_after=job_status.QUIET_LIMIT - quiet_for)
    error = observed.failure(ReadWarnings)
    if observed.warnings is None and not error:
        return ReadWarnings()
    result = _recorded(observed, job_status.going_on(observed), now)
    return result if isinstance(result, Action) or not error else Result(requeue=True, retry_after=error.retry_after)


def _recorded(observed: Observed, mirrored: JobStatus, now: float) -> Action | Result:
    status = mirrored.status(observed, now)
    return PatchStatus(status) if status != at(observed.start, "status") else Result()
