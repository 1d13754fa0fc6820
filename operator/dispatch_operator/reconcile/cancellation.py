"""A Start whose gate is Cancelled: it is stopped, recorded as Cancelled, and never goes on.

See docs/contract.md, Cancelling.
"""

from collections.abc import Iterator

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.models.status import Outcome, StartStatus
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Action, Get, PatchStatus, Result, get_copy, get_train_job
from dispatch_operator.reconcile.conditions import Wanted
from dispatch_operator.reconcile.job_status import has_ended
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import is_ours, is_the_one, was_opened
from dispatch_operator.reconcile.status import (
    FALSE,
    STEPS,
    TRUE,
    UNKNOWN,
    Readiness,
    compose,
    referring,
    stands,
    told_by,
)
from dispatch_operator.reconcile.teardown import LEAVING_SECONDS, clean_up, next_delete

GOES_ON = "spec.gate is Cancelled: what was created is being deleted"
HAS_ENDED = (
    "spec.gate is Cancelled: nothing of this Start is left in the cluster, and it is never started again; submit under "
    "another number"
)


def ended_before(observed: Observed) -> bool:
    """Tell whether the job had ended before its cancellation was recorded: it keeps its own end."""
    start, job = observed.start, observed.train_job.obj
    if job is None or start.status.was_cancelled or not has_ended(job):
        return False
    return (start.status.has_started or was_opened(observed)) and is_the_one(observed)


def cancel(observed: Observed, now: float) -> Action | Result:
    """Return the next action for a cancelled DispatchStart: record that, delete what is there, record that it is gone.

    Args:
        observed: All that this reconcile knows.
        now: Seconds since the epoch.
    """
    status = observed.start.status
    if status.recorded_end is Phase.CANCELLED:
        return _record(observed, _status(observed, Phase.CANCELLED, now)) or clean_up(observed)
    match _unread(observed):
        case ApiError() as error:
            return _again(observed, f"what is left can't be read: {error}", error, now)
        case Get() as due:
            return due
    stopping = _status(observed, Phase.STOPPING, now)
    if not status.was_cancelled or referring(observed) != status:
        return PatchStatus(stopping)
    match next_delete(observed):
        case Action() as action:
            return action
        case ApiError() as error:
            return _again(observed, str(error), error, now)
        case _ if _is_there(observed):
            # Deleted, but not gone yet: the watch will tell.
            return _record(observed, stopping) or Result(requeue_after=LEAVING_SECONDS)
        case _:
            return PatchStatus(_status(observed, Phase.CANCELLED, now))


def _unread(observed: Observed) -> Get | ApiError | None:
    start = observed.start
    # Without a right job and submission nothing has a name, and nothing was created.
    gets = (get_train_job(start), get_copy(start)) if start.target else ()
    return next((due for get in gets if (due := observed.due(get))), None)


def _is_there(observed: Observed) -> bool:
    """Tell whether a TrainJob or a copy of ours is left; an owned copy goes with its TrainJob."""
    copy = observed.copy.obj
    is_left = copy is not None and is_ours(observed, copy) and not copy.metadata.owner_references
    return is_left or is_ours(observed, observed.train_job.obj)


def _again(observed: Observed, failure: str, error: ApiError, now: float) -> Action | Result:
    """The stop failed or went unanswered: ErrOutcomeUnknown, and it is tried again until known."""
    unresolved = f"{failure}; spec.gate is Cancelled, and the stop is tried again until it is known to be done"
    stopping = _status(observed, Phase.STOPPING, now, unresolved=unresolved)
    return _record(observed, stopping) or Result(requeue=True, retry_after=error.retry_after)


def _record(observed: Observed, status: StartStatus) -> Action | None:
    return None if stands(status, observed.start.status) else PatchStatus(status)


def _status(observed: Observed, phase: Phase, now: float, *, unresolved: str = "") -> StartStatus:
    """Return the status of a cancelled DispatchStart; `unresolved` is what is not known of its stop."""
    word, is_end = Phase.CANCELLED.value, phase is Phase.CANCELLED
    told = HAS_ENDED if is_end else GOES_ON
    ready = Readiness(FALSE, word, told)
    progress = Wanted(Condition.RECONCILING, TRUE, word, told)
    if unresolved:
        ready = Readiness(FALSE, ErrorClass.OUTCOME_UNKNOWN, unresolved)
        progress = Wanted(Condition.RECONCILING, TRUE, ready.reason, told_by(Condition.READY, unresolved))
    wanted = [
        *_kept(observed.start.status, Wanted(Condition.STARTED, FALSE, word, told)),
        Wanted(Condition.SUCCEEDED, FALSE if is_end else UNKNOWN, word, told),
        Wanted(Condition.STALLED, TRUE, word, told) if is_end else progress,
    ]
    outcome = Outcome(word, word, message=told) if is_end else None
    return compose(observed, phase, ready, wanted, now, {"outcome": outcome})


def _kept(status: StartStatus, not_started: Wanted) -> Iterator[Wanted]:
    """Yield how far the Start had come: what stands of one that was whole, and the steps that one had passed."""
    for kind in (*STEPS, Condition.STARTED):
        held = status.condition(kind)
        if held is not None and (held.status is TRUE or status.says_started):
            yield Wanted(kind, held.status, held.reason, held.message)
        elif kind is Condition.STARTED:
            yield not_started
