"""After a final refusal: stop what was created, and keep the cluster clean of what turns up late (rules 2, 3, 5)."""

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import (
    Action,
    DeleteCopy,
    DeleteTrainJob,
    PatchStatus,
    ReadCopy,
    ReadTrainJob,
    Result,
)
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import is_going, left_of_ours, made_for, owners, uid_of
from dispatch_operator.reconcile.status import of_verdict, refusal_of
from dispatch_operator.reconcile.step_result import Refusal


def stop(observed: Observed, now: float) -> Action | Result:
    """Phase Stopping: delete the TrainJob and the copy until both are known to be gone, then record Refused."""
    refusal = refusal_of(observed.start)
    for read, observation in ((ReadTrainJob, observed.train_job), (ReadCopy, observed.copy)):
        if error := observed.failure(read):
            return _again(observed, refusal, f"what is left can't be read: {error}", now, error.retry_after)
        if not observation.live:
            return read()
    match _delete(observed):
        case Action() as action:
            return action
        case ApiError() as error:
            return _again(observed, refusal, str(error), now, error.retry_after)
        case True:
            # Deleted, but not gone yet: the watch will tell.
            return _recorded(observed, of_verdict(observed, refusal, Phase.STOPPING, now)) or Result(requeue_after=10.0)
        case _:
            return PatchStatus(of_verdict(observed, refusal, Phase.REFUSED, now))


def clean_up(observed: Observed) -> Action | Result:
    """Phases Refused and Lost: a TrainJob or an unowned copy of ours that turns up late is still deleted."""
    if made_for(observed.train_job.obj, observed.start) and not observed.train_job.live:
        return _later(error) if (error := observed.failure(ReadTrainJob)) else ReadTrainJob()
    if made_for(observed.copy.obj, observed.start) and not owners(observed.copy.obj) and not observed.copy.live:
        return _later(error) if (error := observed.failure(ReadCopy)) else ReadCopy()
    match _delete(observed):
        case Action() as action:
            return action
        case ApiError() as error:
            return _later(error)
        case _:
            return Result()


def _later(error: ApiError) -> Result:
    return Result(requeue=True, retry_after=error.retry_after)


def _delete(observed: Observed) -> Action | ApiError | bool:
    """Return the delete that is due, why it failed, or whether something of ours is still on its way out."""
    job, copy = observed.train_job.obj, observed.copy.obj
    going = False
    if made_for(job, observed.start):
        if is_going(job):
            going = True
        elif error := observed.failure(DeleteTrainJob):
            return error
        else:
            return DeleteTrainJob(uid_of(job))
    if left_of_ours(copy, observed.start):
        if is_going(copy) or owners(copy):
            # An owned copy goes with its TrainJob, by garbage collection.
            return True
        if error := observed.failure(DeleteCopy):
            return error
        return DeleteCopy(uid_of(copy), at(copy, "metadata", "resourceVersion") or "")
    return going


def _again(
    observed: Observed, refusal: Refusal, failure: str, now: float, retry_after: float | None = None
) -> Action | Result:
    """The stop failed or went unanswered: ErrOutcomeUnknown, and it is tried again until known."""
    status = of_verdict(observed, refusal, Phase.STOPPING, now)
    message = f"{failure}; it is tried again until known. The refusal: {refusal.message}"
    for entry in status["conditions"]:
        if entry["type"] in {Condition.STARTED, Condition.READY, Condition.RECONCILING}:
            entry |= {"reason": ErrorClass.OUTCOME_UNKNOWN.value, "message": message}
    return _recorded(observed, status) or Result(requeue=True, retry_after=retry_after)


def _recorded(observed: Observed, status: dict[str, object]) -> Action | None:
    return PatchStatus(status) if status != at(observed.start, "status") else None
