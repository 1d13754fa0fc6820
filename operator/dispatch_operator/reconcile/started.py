"""After Started was recorded: move the gate, and mirror the job to its end (contract sections 11 and 12)."""

from dispatch_operator.api.enums import Phase
from dispatch_operator.reconcile import job_status
from dispatch_operator.reconcile.actions import (
    Act,
    ReadCopy,
    ReadPods,
    ReadRuntime,
    ReadTrainJob,
    ReadWarnings,
    Record,
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
from dispatch_operator.reconcile.job_status import Mirrored
from dispatch_operator.reconcile.observation import Seen, at, condition
from dispatch_operator.reconcile.ownership import phase_of, uid_of
from dispatch_operator.reconcile.teardown import clean_up

ENDED = (Phase.SUCCEEDED, Phase.FAILED)


def follow(seen: Seen, now: float) -> Act | Result:
    """Return the next act for a DispatchStart that has started."""
    phase = phase_of(seen.start)
    if phase in ENDED:
        return _recorded(seen, job_status.unchanged(seen), now)
    if phase is Phase.LOST:
        act = _recorded(seen, job_status.unchanged(seen), now)
        return act if isinstance(act, Act) else clean_up(seen)
    # Only the TrainJob of the recorded UID is opened, held or mirrored (rule 4).
    reference = at(seen.start, "status", "reference", "uid")
    if not reference or uid_of(seen.train_job.obj) != reference:
        return _lost(seen, now)
    if job_status.has_ended(seen.train_job.obj):
        return _ended(seen, now)
    return _going_on(seen, now)


def _lost(seen: Seen, now: float) -> Act | Result:
    if error := seen.failure(ReadTrainJob):
        return Result(requeue=True, retry_after=error.retry_after)
    return _recorded(seen, job_status.lost(seen), now) if seen.train_job.live else ReadTrainJob()


def _ended(seen: Seen, now: float) -> Act | Result:
    if condition(seen.train_job.obj, "Failed").get("status") != "True":
        return _recorded(seen, job_status.succeeded(seen), now)
    if seen.pods is None and not seen.failure(ReadPods):
        return ReadPods()
    return _recorded(seen, job_status.failed(seen), now)


def _going_on(seen: Seen, now: float) -> Act | Result:
    if is_kueues(seen):
        return _recorded(seen, job_status.managed_by_kueue(seen), now)
    change = next_change(seen)
    if not is_open(seen):
        problem = check_copy(seen, opening=wants_open(seen))
        if isinstance(problem, Act):
            return problem
        if problem:
            unread = seen.failure(ReadCopy) or seen.failure(ReadRuntime)
            result = _recorded(seen, job_status.copy_altered(seen, problem, unread=unread is not None), now)
            if isinstance(result, Act) or unread is None:
                return result
            return Result(requeue=True, retry_after=unread.retry_after)
    return _move(seen, change, now) if change else _mirror(seen, now)


def _move(seen: Seen, change: Act, now: float) -> Act | Result:
    if must_be_recorded(seen):
        return _recorded(seen, job_status.holding(), now)
    error = seen.failure(type(change))
    if error is None and not was_undone(seen):
        return change
    problem = str(error) if error else "the gate was moved, and something moved it back at once"
    result = _recorded(seen, job_status.gate_stuck(seen, problem), now)
    requeue = Result(requeue=True, retry_after=error.retry_after if error else None)
    return result if isinstance(result, Act) else requeue


def _mirror(seen: Seen, now: float) -> Act | Result:
    quiet_for = job_status.quiet_for(seen, now)
    if quiet_for is None:
        return _recorded(seen, job_status.going_on(seen), now)
    if quiet_for < job_status.QUIET_LIMIT:
        result = _recorded(seen, job_status.going_on(seen), now)
        return result if isinstance(result, Act) else Result(requeue_after=job_status.QUIET_LIMIT - quiet_for)
    error = seen.failure(ReadWarnings)
    if seen.warnings is None and not error:
        return ReadWarnings()
    result = _recorded(seen, job_status.going_on(seen), now)
    return result if isinstance(result, Act) or not error else Result(requeue=True, retry_after=error.retry_after)


def _recorded(seen: Seen, mirrored: Mirrored, now: float) -> Act | Result:
    status = mirrored.status(seen, now)
    return Record(status) if status != at(seen.start, "status") else Result()
