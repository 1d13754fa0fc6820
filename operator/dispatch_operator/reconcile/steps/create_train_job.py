"""Step 6: create the TrainJob, exactly once, whatever becomes of the answers."""

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ErrorClass, Phase, Retry
from dispatch_operator.kube.errors import ApiError, Outcome
from dispatch_operator.reconcile.actions import Act, CreateTrainJob, ReadTrainJob
from dispatch_operator.reconcile.judge import judge_train_job
from dispatch_operator.reconcile.observation import Seen, at, condition
from dispatch_operator.reconcile.ownership import phase_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.reconcile.steps.admit import call_bound
from dispatch_operator.render import read_backend, render_train_job, start_frame, terms_of

STEP = Condition.TRAIN_JOB_CREATED
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
CLOCK_GRAIN = 1.0
"""Status keeps times in whole seconds, so that a span read from it is up to this much too long."""


def find_train_job(seen: Seen, _now: float) -> Act | Verdict | None:
    """See that the TrainJob that resumes a Start is really there, and ours."""
    return judge_train_job(seen, STEP, never_final=True)


def resolve_in_flight(seen: Seen, now: float) -> Act | Verdict | None:
    """Find out what became of a create that went unanswered, before anything else is looked at."""
    if phase_of(seen.start) is not Phase.IN_FLIGHT:
        return None
    if error := seen.failure(ReadTrainJob):
        return _unknown(f"the create of the TrainJob went unanswered, and {error}", retry_after=error.retry_after)
    if not seen.train_job.live:
        return ReadTrainJob()
    if seen.train_job.obj is not None:
        return judge_train_job(seen, STEP)
    bound = call_bound(seen)
    since = times.read(condition(seen.start, STEP).get("lastTransitionTime"))
    age = now - since if since is not None else 0.0
    if age < bound + CLOCK_GRAIN:
        message = "the create of the TrainJob went unanswered; it may still appear"
        return _unknown(message, requeue_after=min(bound + CLOCK_GRAIN - age, bound + CLOCK_GRAIN))
    if start_frame(seen.start).retry is Retry.NEVER:
        return Refusal(
            STEP, ErrorClass.UNREACHABLE, "the create of the TrainJob went unanswered, and none has appeared"
        )
    return Waiting(
        STEP, "CreatingAgain", "the create of the TrainJob went unanswered and none appeared; it is made again"
    )


def create_train_job(seen: Seen, now: float) -> Act | Verdict | None:
    """Create the TrainJob, its gate closed."""
    if seen.train_job.obj is not None:
        return judge_train_job(seen, STEP)
    error = seen.failure(CreateTrainJob)
    return _after_failed_create(seen, error, now) if error else CreateTrainJob(_body(seen))


def _body(seen: Seen) -> dict[str, object]:
    copied = at(seen.copy.obj, "spec") or {}
    return render_train_job(seen.start, terms_of(read_backend(seen.backend.obj or {})), copied)


def _after_failed_create(seen: Seen, error: ApiError, now: float) -> Act | Verdict:
    if error.webhook_has_not_seen_the_copy and (pause := _pause(seen, now)):
        return CreateTrainJob(_body(seen), pause)
    if error.outcome is Outcome.NOTHING_HAPPENED:
        return transient(STEP, error)
    if unread := seen.failure(ReadTrainJob):
        # What can't be read is not known to be absent.
        return _unknown(f"{error}, and then {unread}", retry_after=unread.retry_after)
    if not seen.train_job.live:
        return ReadTrainJob()
    if error.outcome is Outcome.UNANSWERED:
        return _unknown(str(error), requeue_after=call_bound(seen) + CLOCK_GRAIN)
    if error.already_exists:
        # It was there when we wrote and is gone now that we look: the name is free again.
        return transient(STEP, error)
    return Refusal(STEP, ErrorClass.REJECTED, str(error))


def _pause(seen: Seen, now: float) -> float:
    """Seconds to wait before the next try, twice as long each time; 0 when `timeouts.call` is used up."""
    spent = now - (seen.first_create if seen.first_create is not None else now)
    return min(max(spent, SHORTEST_PAUSE), LONGEST_PAUSE) if spent < call_bound(seen) else 0.0


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
