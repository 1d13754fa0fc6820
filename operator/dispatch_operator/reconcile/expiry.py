"""The TrainJob of an ended job, which is deleted after a while where its backend says so.

See docs/contract.md, Ended jobs.
"""

from dispatch_operator.api import times
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import (
    Action,
    Delete,
    Get,
    Result,
    Slot,
    expire_train_job,
    get_backend,
    get_train_job,
)
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.trainer import TrainJob


def expire(observed: Observed, now: float) -> Action | Result:
    """Return the delete of a TrainJob whose end is recorded, the read that it rests on, or when its time comes.

    Only live reads, of the backend and then of the TrainJob, whose answer tells the time, say that it has come.

    Args:
        observed: All that this reconcile knows.
        now: Seconds since the epoch, by the API server's clock.
    """
    backend, job = observed.backend.obj, observed.train_job.obj
    if backend is None or backend.metadata.is_terminating or job is None or job.metadata.is_terminating:
        return Result()
    kept, ended = backend.keep_ended, _ended(job)
    if kept is None or ended is None:
        return Result()
    if now < ended + kept:
        return Result(requeue_after=ended + kept - now)
    match _unread(observed) or observed.failure(Delete, Slot.TRAIN_JOB):
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case Get() as due:
            return due
    whose = f"keepEnded of DispatchBackend {backend.metadata.name}"
    reason = f"it ended at {times.written(ended)}, and {whose} is {observed.admitted.spec.keep_ended}"
    return expire_train_job(job, reason)


def _unread(observed: Observed) -> Get | ApiError | None:
    return observed.due(get_backend(observed.start)) or observed.due(get_train_job(observed.start))


def _ended(job: TrainJob) -> float | None:
    """Return when a job ended, by its own condition, in seconds since the epoch; None where nothing tells."""
    told = [times.read(end.last_transition_time) for end in job.status.ends]
    known = [time for time in told if time is not None]
    return max(known) if len(known) == len(told) > 0 else None
