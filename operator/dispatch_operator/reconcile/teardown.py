"""After a final refusal: stop what was created, and keep the cluster clean of what turns up late (rules 2, 3, 5)."""

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Act, DeleteCopy, DeleteTrainJob, ReadCopy, ReadTrainJob, Record, Result
from dispatch_operator.reconcile.observation import Seen, at
from dispatch_operator.reconcile.ownership import is_going, left_of_ours, made_for, owners, uid_of
from dispatch_operator.reconcile.status import of_verdict, refusal_of
from dispatch_operator.reconcile.step_result import Refusal


def stop(seen: Seen, now: float) -> Act | Result:
    """Phase Stopping: delete the TrainJob and the copy until both are known to be gone, then record Refused."""
    refusal = refusal_of(seen.start)
    for read, sight in ((ReadTrainJob, seen.train_job), (ReadCopy, seen.copy)):
        if error := seen.failure(read):
            return _again(seen, refusal, f"what is left can't be read: {error}", now, error.retry_after)
        if not sight.live:
            return read()
    match _delete(seen):
        case Act() as act:
            return act
        case ApiError() as error:
            return _again(seen, refusal, str(error), now, error.retry_after)
        case True:
            # Deleted, but not gone yet: the watch will tell.
            return _recorded(seen, of_verdict(seen, refusal, Phase.STOPPING, now)) or Result(requeue_after=10.0)
        case _:
            return Record(of_verdict(seen, refusal, Phase.REFUSED, now))


def clean_up(seen: Seen) -> Act | Result:
    """Phases Refused and Lost: a TrainJob or an unowned copy of ours that turns up late is still deleted."""
    if made_for(seen.train_job.obj, seen.start) and not seen.train_job.live:
        return _later(error) if (error := seen.failure(ReadTrainJob)) else ReadTrainJob()
    if made_for(seen.copy.obj, seen.start) and not owners(seen.copy.obj) and not seen.copy.live:
        return _later(error) if (error := seen.failure(ReadCopy)) else ReadCopy()
    match _delete(seen):
        case Act() as act:
            return act
        case ApiError() as error:
            return _later(error)
        case _:
            return Result()


def _later(error: ApiError) -> Result:
    return Result(requeue=True, retry_after=error.retry_after)


def _delete(seen: Seen) -> Act | ApiError | bool:
    """Return the delete that is due, why it failed, or whether something of ours is still on its way out."""
    job, copy = seen.train_job.obj, seen.copy.obj
    going = False
    if made_for(job, seen.start):
        if is_going(job):
            going = True
        elif error := seen.failure(DeleteTrainJob):
            return error
        else:
            return DeleteTrainJob(uid_of(job))
    if left_of_ours(copy, seen.start):
        if is_going(copy) or owners(copy):
            # An owned copy goes with its TrainJob, by garbage collection.
            return True
        if error := seen.failure(DeleteCopy):
            return error
        return DeleteCopy(uid_of(copy), at(copy, "metadata", "resourceVersion") or "")
    return going


def _again(seen: Seen, refusal: Refusal, failure: str, now: float, retry_after: float | None = None) -> Act | Result:
    """The stop failed or went unanswered: ErrOutcomeUnknown, and it is tried again until known."""
    status = of_verdict(seen, refusal, Phase.STOPPING, now)
    message = f"{failure}; it is tried again until known. The refusal: {refusal.message}"
    for entry in status["conditions"]:
        if entry["type"] in {Condition.STARTED, Condition.READY, Condition.RECONCILING}:
            entry |= {"reason": ErrorClass.OUTCOME_UNKNOWN.value, "message": message}
    return _recorded(seen, status) or Result(requeue=True, retry_after=retry_after)


def _recorded(seen: Seen, status: dict[str, object]) -> Act | None:
    return Record(status) if status != at(seen.start, "status") else None
