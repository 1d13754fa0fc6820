"""After a final refusal or a cancellation: stop what was created, and keep the cluster clean of what turns up late.

See docs/contract.md, Definite failures only, Record before acting and Late arrivals.
"""

from dispatch_operator.api.enums import Phase
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import (
    Action,
    Delete,
    Get,
    PatchStatus,
    Result,
    Slot,
    after_status,
    delete_copy,
    delete_train_job,
    get_copy,
    get_train_job,
)
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import is_ours, left_of_ours
from dispatch_operator.reconcile.status import of_verdict, refusal_of, stands
from dispatch_operator.reconcile.step_result import Refusal

LEAVING_SECONDS = 10.0
"""After which what is being deleted is looked at again, if no watch tells before."""


def stop(observed: Observed, now: float, *, unmarked: ApiError | None = None) -> Action | Result:
    """Phase Stopping: delete the TrainJob and the copy until both are known to be gone, then record Refused.

    Args:
        observed: All that this reconcile knows.
        now: Seconds since the epoch.
        unmarked: Why the backend could not be marked, if it must be: then it stays Stopping, and that is tried again.
    """
    refusal = refusal_of(observed.start.status)
    for get in (get_train_job(observed.start), get_copy(observed.start)):
        match observed.due(get):
            case ApiError() as error:
                return _again(observed, refusal, f"what is left can't be read: {error}", now, error.retry_after)
            case Get() as due:
                return due
    match next_delete(observed):
        case Action() as action:
            return action
        case ApiError() as error:
            return _again(observed, refusal, str(error), now, error.retry_after)
        case _ if unmarked:
            progress = f"the backend is to be marked observe-only, which is tried again: {unmarked}"
            stopping = of_verdict(observed, refusal, Phase.STOPPING, now, progress=progress)
            return _recorded(observed, stopping) or after_status(unmarked)
        case True:
            # Deleted, but not gone yet: the watch will tell.
            stopping = of_verdict(observed, refusal, Phase.STOPPING, now)
            return _recorded(observed, stopping) or Result(requeue_after=LEAVING_SECONDS)
        case _:
            return PatchStatus(of_verdict(observed, refusal, Phase.REFUSED, now))


def clean_up(observed: Observed) -> Action | Result:
    """Phases Refused, Cancelled and Lost: a TrainJob or an unowned copy of ours that turns up late is still deleted."""
    start, copy = observed.start, observed.copy.obj
    turned_up = []
    if is_ours(observed, observed.train_job.obj):
        turned_up.append(get_train_job(start))
    if copy is not None and is_ours(observed, copy) and not copy.metadata.owner_references:
        turned_up.append(get_copy(start))
    for get in turned_up:
        match observed.due(get):
            case ApiError() as error:
                return Result(requeue=True, retry_after=error.retry_after)
            case Get() as due:
                return due
    match next_delete(observed):
        case Action() as action:
            return action
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case _:
            return Result()


def next_delete(observed: Observed) -> Action | ApiError | bool:
    """Return the delete that is due, why it failed, or whether something of ours is still on its way out."""
    job, copy = observed.train_job.obj, observed.copy.obj
    leaving = False
    if job is not None and is_ours(observed, job):
        if not job.metadata.is_terminating:
            return observed.failure(Delete, Slot.TRAIN_JOB) or delete_train_job(job)
        leaving = True
    if copy is not None and left_of_ours(observed):
        if copy.metadata.is_terminating or copy.metadata.owner_references:
            # An owned copy goes with its TrainJob, by garbage collection.
            return True
        return observed.failure(Delete, Slot.COPY) or delete_copy(copy)
    return leaving


def _again(
    observed: Observed, refusal: Refusal, failure: str, now: float, retry_after: float | None = None
) -> Action | Result:
    """The stop failed or went unanswered: ErrOutcomeUnknown, and it is tried again until known."""
    message = f"{failure}; it is tried again until known; why it is stopped stands in the condition {refusal.step}"
    status = of_verdict(observed, refusal, Phase.STOPPING, now, unresolved=message)
    return _recorded(observed, status) or Result(requeue=True, retry_after=retry_after)


def _recorded(observed: Observed, status: StartStatus) -> Action | None:
    return None if stands(status, observed.start.status) else PatchStatus(status)
