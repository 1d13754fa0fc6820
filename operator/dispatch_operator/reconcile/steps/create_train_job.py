"""Step 6: create the TrainJob, exactly once, whatever becomes of the answers.

See docs/contract.md, Create the TrainJob.
"""

from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ErrorClass, Phase, Retry
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.reconcile import actions
from dispatch_operator.reconcile.actions import Action, Create, Get, Slot, get_train_job
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import check_ownership
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.reconcile.steps import quota
from dispatch_operator.render import render_train_job
from dispatch_operator.render.terms import terms_of

STEP = Condition.TRAIN_JOB_CREATED
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
CLOCK_GRAIN = 1.0
"""Status keeps times in whole seconds, so that a span read from it is up to this much too long."""


def find_train_job(observed: Observed, _now: float) -> Action | Verdict | None:
    """See that the TrainJob that resumes a Start is really there, and ours."""
    return check_ownership(observed, STEP, never_final=True)


def resolve_in_flight(observed: Observed, now: float) -> Action | Verdict | None:
    """Find out what became of a create that went unanswered, before anything else is looked at."""
    if observed.start.status.phase is not Phase.IN_FLIGHT:
        return None
    match observed.due(get_train_job(observed.start)):
        case ApiError() as error:
            return _unknown(f"the create of the TrainJob went unanswered, and {error}", retry_after=error.retry_after)
        case Get() as due:
            return due
    if observed.train_job.obj is not None:
        return check_ownership(observed, STEP)
    bound = observed.call_timeout + CLOCK_GRAIN
    # The step's condition may be False for longer: a create that was only transient fails in it, too.
    since = times.read(observed.start.status.in_flight_since)
    age = now - since if since is not None else 0.0
    if age < bound:
        message = "the create of the TrainJob went unanswered; it may still appear"
        return _unknown(message, requeue_after=min(bound - age, bound))
    if observed.start.retry is Retry.NEVER:
        message = "the create of the TrainJob went unanswered, and none has appeared"
        return Refusal(STEP, ErrorClass.UNREACHABLE, message)
    message = "the create of the TrainJob went unanswered and none appeared; it is made again"
    return Waiting(STEP, "CreatingAgain", message)


def create_train_job(observed: Observed, now: float) -> Action | Verdict | None:
    """Create the TrainJob, its gate closed."""
    if observed.train_job.obj is not None:
        return check_ownership(observed, STEP)
    error = observed.failure(Create, Slot.TRAIN_JOB)
    return _after_failed_create(observed, error, now) if error else actions.create_train_job(_body(observed))


def _body(observed: Observed) -> dict[str, Any]:
    copy = observed.copy.obj
    return render_train_job(observed.start, terms_of(observed.admitted), (copy and copy.spec) or {})


def _after_failed_create(observed: Observed, error: ApiError, now: float) -> Action | Verdict:
    if error.webhook_has_not_seen_the_copy and (pause := _pause(observed, now)):
        return actions.create_train_job(_body(observed), pause)
    if error.effect is Effect.NOTHING_HAPPENED:
        return transient(STEP, error)
    match observed.due(get_train_job(observed.start)):
        case ApiError() as unread:
            # What can't be read is not known to be absent.
            return _unknown(f"{error}, and then {unread}", retry_after=unread.retry_after)
        case Get() as due:
            return due
    if error.effect is Effect.UNANSWERED:
        return _unknown(str(error), requeue_after=observed.call_timeout + CLOCK_GRAIN)
    if error.already_exists:
        # It was there when we wrote and is gone now that we look: the name is free again.
        return transient(STEP, error)
    return quota.unless_final(observed, STEP, error, now) or Refusal(STEP, ErrorClass.REJECTED, str(error))


def _pause(observed: Observed, now: float) -> float:
    """Seconds to wait before the next try, twice as long each time; 0 when `timeouts.call` is used up."""
    spent = now - (observed.first_create if observed.first_create is not None else now)
    return min(max(spent, SHORTEST_PAUSE), LONGEST_PAUSE) if spent < observed.call_timeout else 0.0


def _unknown(message: str, requeue_after: float | None = None, retry_after: float | None = None) -> Refusal:
    return Refusal(
        STEP,
        ErrorClass.OUTCOME_UNKNOWN,
        message,
        transient=requeue_after is None,
        retry_after=retry_after,
        requeue_after=requeue_after,
        never_final=True,
    )
