"""What to do next, as a pure function of what has been observed: the table of contents of the operator.

Every reconcile runs this function again after each request, with what the request brought. What it returns is carried
out; nothing else is. A verdict becomes a `PatchStatus` first, and is acted on only when the status holds it
(docs/contract.md, Record before acting).
"""

from dispatch_operator.api.enums import Condition, ErrorClass, Phase, Retry
from dispatch_operator.reconcile import job_status
from dispatch_operator.reconcile.actions import Action, PatchStatus, Result
from dispatch_operator.reconcile.backend.unproven import mark_unproven
from dispatch_operator.reconcile.cancellation import cancel, ended_before
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import is_ours, is_the_one, left_of_ours, made_for, was_opened
from dispatch_operator.reconcile.started import after_loss, follow
from dispatch_operator.reconcile.status import of_verdict, refusal_of, stands
from dispatch_operator.reconcile.step_result import Refusal, Verdict
from dispatch_operator.reconcile.steps.create_train_job import resolve_in_flight
from dispatch_operator.reconcile.steps.order import FROM_THE_BEGINNING, WITH_TRAIN_JOB, WITH_UNMARKED_TRAIN_JOB, Step
from dispatch_operator.reconcile.taking_up import take_up
from dispatch_operator.reconcile.teardown import clean_up, stop
from dispatch_operator.records.dispatch import DispatchStart

_EARLY = (Condition.REQUEST_VALID,)


def decide(observed: Observed, now: float) -> Action | Result:
    """Return the next request of a reconcile, or that the reconcile is over.

    Args:
        observed: All that this reconcile knows.
        now: Seconds since the epoch.
    """
    start = observed.start
    if is_leaving(start):
        return Result()
    if start.is_cancelled and not ended_before(observed):
        return _cancel(observed, now)
    if start.status.has_started:
        return follow(observed, now)
    if was_opened(observed) or (start.lost_its_status and not start.status.was_refused):
        return _take_up(observed, now)
    if start.status.was_refused and start.status.phase is not Phase.REFUSED:
        # What the refusal says of the backend rests on a verdict that is recorded: the reconcile that came to it
        # may have begun before another operator recorded Started.
        doubt = mark_unproven(observed, refusal_of(start.status), now)
        return doubt if isinstance(doubt, Action) else stop(observed, now, unmarked=doubt)
    if start.status.was_refused:
        return _observe_generation(observed, now) or clean_up(observed)
    return _start(observed, now)


def is_leaving(start: DispatchStart) -> bool:
    """Tell whether a start is being deleted: it is never started; its TrainJob and copy go by garbage collection."""
    return start.metadata.is_terminating


def _cancel(observed: Observed, now: float) -> Action | Result:
    """Stop a cancelled Start; what became of a create that went unanswered is found out first."""
    match resolve_in_flight(observed, now):
        case Action() as action:
            return action
        case Refusal(error_class=ErrorClass.OUTCOME_UNKNOWN) as unknown:
            return _conclude(observed, unknown, now)
        case _:
            return cancel(observed, now)


def _take_up(observed: Observed, now: float) -> Action | Result:
    if not is_the_one(observed):
        return after_loss(observed, now)
    taken = take_up(observed, now)
    return _conclude(observed, taken, now) if isinstance(taken, Refusal) else taken


def _start(observed: Observed, now: float) -> Action | Result:
    for step in _steps(observed):
        match step(observed, now):
            case None:
                continue
            case Action() as action:
                return action
            case verdict:
                return _conclude(observed, verdict, now)
    # Started is recorded before the gate is touched.
    return PatchStatus(job_status.going_on(observed, now).status(observed, now))


def _steps(observed: Observed) -> tuple[Step, ...]:
    job, reference = observed.train_job.obj, observed.start.status.reference
    if job is None or not is_ours(observed, job):
        return FROM_THE_BEGINNING
    is_known = made_for(job, observed.start) or (reference is not None and reference.uid == job.metadata.uid)
    return WITH_TRAIN_JOB if is_known else WITH_UNMARKED_TRAIN_JOB


def _conclude(observed: Observed, verdict: Verdict, now: float) -> Action | Result:
    status = of_verdict(observed, verdict, _phase(observed, verdict), now)
    if not stands(status, observed.start.status):
        return PatchStatus(status)
    if not isinstance(verdict, Refusal):
        return Result(requeue_after=verdict.requeue_after)
    return Result(requeue=verdict.transient, retry_after=verdict.retry_after, requeue_after=verdict.requeue_after)


def _phase(observed: Observed, verdict: Verdict) -> Phase:
    if isinstance(verdict, Refusal):
        if is_final(verdict, observed.start):
            return Phase.STOPPING if _left(observed) else Phase.REFUSED
        if verdict.error_class is ErrorClass.OUTCOME_UNKNOWN:
            return Phase.IN_FLIGHT
    waits_outside = not isinstance(verdict, Refusal) and verdict.step is not Condition.WORKLOAD_GATED
    return Phase.PENDING if verdict.step in _EARLY or waits_outside else Phase.STARTING


def is_final(refusal: Refusal, start: DispatchStart) -> bool:
    """Tell whether a refusal is the end of this object (docs/contract.md, Error classes)."""
    match refusal.error_class:
        case ErrorClass.INVALID | ErrorClass.REJECTED:
            return True
        case ErrorClass.OUTCOME_UNKNOWN:
            return False
        case ErrorClass.UNSUPPORTED | ErrorClass.READ_ONLY | ErrorClass.UNREACHABLE:
            return not refusal.never_final and start.retry is Retry.NEVER


def _left(observed: Observed) -> bool:
    """Tell whether anything of ours may be left to delete after a refusal."""
    return is_ours(observed, observed.train_job.obj) or left_of_ours(observed)


def _observe_generation(observed: Observed, now: float) -> Action | None:
    """A refused object whose spec.gate was changed is still refused; its status says that the change was seen.

    What an operator recorded that did not know Finished is recorded again.
    """
    start = observed.start
    seen = start.status.observed_generation == start.metadata.generation
    if seen and start.status.condition(Condition.FINISHED):
        return None
    return PatchStatus(of_verdict(observed, refusal_of(start.status), Phase.REFUSED, now))
