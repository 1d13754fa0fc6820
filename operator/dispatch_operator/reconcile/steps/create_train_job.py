"""Step 6: create the TrainJob, exactly once, whatever becomes of the answers."""

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ErrorClass, Phase, Retry
from dispatch_operator.kube.errors import ApiError, Outcome
from dispatch_operator.reconcile.actions import Action, CreateTrainJob, ReadTrainJob
from dispatch_operator.reconcile.judge import check_ownership
from dispatch_operator.reconcile.observation import Observed, at, condition
from dispatch_operator.reconcile.ownership import phase_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.reconcile.steps.admit import call_bound
from dispatch_operator.render import read_backend, render_train_job, start_options, terms_of

STEP = Condition.TRAIN_JOB_CREATED
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
CLOCK_GRAIN = 1.0
"""Status keeps times in whole seconds, so that a span read from it is up to this much too long."""


def find_train_job(observed: Observed, _now: float) -> Action | Verdict | None:
    """See that the TrainJob that resumes a Start is really there, and ours."""
    return check_ownership(observed, STEP, never_final=True)


def resolve_in_flight(observed: Observed, now: float) -> Action | Verdict | None:
    """Find out what became of a create that went unanswered, before anything else is looked at."""
    if phase_of(observed.start) is not Phase.IN_FLIGHT:
        return None
    if error := observed.failure(ReadTrainJob):
        return _unknown(f"the create of the TrainJob went unanswered, and {error}", retry_after=error.retry_after)
    if not observed.train_job.live:
        return ReadTrainJob()
    if observed.train_job.obj is not None:
        return check_ownership(observed, STEP)
    bound = call_bound(observed)
    since = times.read(condition(observed.start, STEP).get("lastTransitionTime"))
    age = now - since if since is not None else 0.0
    if age < bound + CLOCK_GRAIN:
        message = "the create of the TrainJob went unanswered; it may still appear"
        return _unknown(message, requeue_after=min(bound + CLOCK_GRAIN - age, bound + CLOCK_GRAIN))
    if start_options(observed.start).retry is Retry.NEVER:
        return Refusal(
            STEP, ErrorClass.UNREACHABLE, "the create of the TrainJob went unanswered, and none has appeared"
        )
    return Waiting(
        STEP, "CreatingAgain", "the create of the TrainJob went unanswered and none appeared; it is made again"
    )


def create_train_job(observed: Observed, now: float) -> Action | Verdict | None:
    """Create the TrainJob, its gate closed."""
    if observed.train_job.obj is not None:
        return check_ownership(observed, STEP)
    error = observed.failure(CreateTrainJob)
    return _after_failed_create(observed, error, now) if error else CreateTrainJob(_body(observed))


def _body(observed: Observed) -> dict[str, object]:
    copied = at(observed.copy.obj, "spec") or {}
    return render_train_job(observed.start, terms_of(read_backend(observed.backend.obj or {})), copied)


def _after_failed_create(observed: Observed, error: ApiError, now: float) -> Action | Verdict:
    if error.webhook_has_not_seen_the_copy and (pause := _pause(observed, now)):
        return CreateTrainJob(_body(observed), pause)
    if error.outcome is Outcome.NOTHING_HAPPENED:
        return transient(STEP, error)
    if unread := observed.failure(ReadTrainJob):
        # What can't be read is not known to be absent.
        return _unknown(f"{error}, and then {unread}", retry_after=unread.retry_after)
    if not observed.train_job.live:
        return ReadTrainJob()
    if error.outcome is Outcome.UNANSWERED:
        return _unknown(str(error), requeue_after=call_bound(observed) + CLOCK_GRAIN)
    if error.already_exists:
        # It was there when we wrote and is gone now that we look: the name is free again.
        return transient(STEP, error)
    return Refusal(STEP, ErrorClass.REJECTED, str(error))


def _pause(observed: Observed, now: float) -> float:
    """Seconds to wait before the next try, twice as long each time; 0 when `timeouts.call` is used up."""
    spent = now - (observed.first_create if observed.first_create is not None else now)
    return min(max(spent, SHORTEST_PAUSE), LONGEST_PAUSE) if spent < call_bound(observed) else 0.0


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
