"""After Started was recorded: move the gate, and follow the job to its end (docs/contract.md, The start gate)."""

from dispatch_operator.api.enums import Phase
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile import job_status
from dispatch_operator.reconcile.actions import (
    Action,
    Get,
    List,
    PatchStatus,
    Result,
    Slot,
    get_train_job,
    list_pods,
    list_warnings,
)
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.gates.gate import (
    is_kueues,
    is_open,
    must_be_recorded,
    next_change,
    wants_open,
    was_undone,
)
from dispatch_operator.reconcile.gates.gated_copy import check_copy
from dispatch_operator.reconcile.inquiries import PERIOD
from dispatch_operator.reconcile.inquiry import may_run_and_does_not, next_inquiry, question
from dispatch_operator.reconcile.job_status import JobStatus
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.restarts import restart_to_explain
from dispatch_operator.reconcile.run_state import never_ran, queue_is_to_be_asked
from dispatch_operator.reconcile.status import stands
from dispatch_operator.reconcile.teardown import clean_up
from dispatch_operator.records.trainer import TrainJob

ENDED = (Phase.SUCCEEDED, Phase.FAILED)


def follow(observed: Observed, now: float) -> Action | Result:
    """Return the next action for a DispatchStart that has started."""
    status, job = observed.start.status, observed.train_job.obj
    if status.phase in ENDED:
        return _recorded(observed, job_status.unchanged(observed), now)
    if status.phase is Phase.LOST:
        action = _recorded(observed, job_status.unchanged(observed), now)
        return action if isinstance(action, Action) else clean_up(observed)
    # Only the TrainJob of the recorded UID is opened, held or followed.
    if job is None or not status.reference or job.metadata.uid != status.reference.uid:
        return _lost(observed, now)
    return _ended(observed, job, now) if job_status.has_ended(job) else _going_on(observed, job, now)


def _lost(observed: Observed, now: float) -> Action | Result:
    match observed.due(get_train_job(observed.start)):
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case Get() as due:
            return due
        case None:
            return _recorded(observed, job_status.lost(observed), now)


def _ended(observed: Observed, job: TrainJob, now: float) -> Action | Result:
    if not job.status.is_true("Failed"):
        return _recorded(observed, job_status.succeeded(observed, job), now)
    if observed.pods is None and not observed.failure(List, Slot.PODS):
        return list_pods(observed.start)
    if never_ran(observed, job) and (asks := question(observed, job)):
        return asks
    return _recorded(observed, job_status.failed(observed, job, now), now)


def _going_on(observed: Observed, job: TrainJob, now: float) -> Action | Result:
    if is_kueues(observed):
        return _recorded(observed, job_status.managed_by_kueue(observed, job), now)
    change = next_change(observed, job)
    if not is_open(observed):
        problem = check_copy(observed, opening=wants_open(observed))
        if isinstance(problem, Action):
            return problem
        if problem:
            unread = observed.failure(Get, Slot.COPY) or observed.failure(Get, Slot.RUNTIME)
            altered = job_status.copy_altered(observed, problem, unread=unread is not None)
            return _recorded(observed, altered, now, tried=unread)
    return _move(observed, change, now) if change else _mirror(observed, job, now)


def _move(observed: Observed, change: Action, now: float) -> Action | Result:
    if must_be_recorded(observed):
        return _recorded(observed, job_status.holding(observed), now)
    error = observed.failures.get(change.key)
    if error is None and not was_undone(observed):
        return change
    problem = str(error) if error else "the gate was moved, and something moved it back at once"
    action = _recorded(observed, job_status.gate_stuck(observed, problem), now)
    retry_after = error.retry_after if error else None
    return action if isinstance(action, Action) else Result(requeue=True, retry_after=retry_after)


def _mirror(observed: Observed, job: TrainJob, now: float) -> Action | Result:
    if restart_to_explain(observed):
        for about in (list_pods(observed.start), list_warnings(observed.start)):
            if getattr(observed, about.slot) is None and about.key not in observed.failures:
                return about
    if queue_is_to_be_asked(observed, now) and (unread := kueue_queue.next_read(observed)):
        return unread
    if not may_run_and_does_not(observed, job):
        action = _recorded(observed, job_status.going_on(observed, now), now)
        waits = kueue_queue.is_blocked(observed.workload.obj) and not isinstance(action, Action)
        return Result(requeue_after=PERIOD) if waits else action
    due = next_inquiry(observed, job)
    if now >= due:
        if asks := question(observed, job):
            return asks
        due = now + PERIOD
    action = _recorded(observed, job_status.going_on(observed, now), now)
    return action if isinstance(action, Action) else Result(requeue_after=due - now)


def _recorded(observed: Observed, job: JobStatus, now: float, *, tried: ApiError | None = None) -> Action | Result:
    """Record a status, unless it stands there already; what was tried and failed is then tried again."""
    status = job.status(observed, now)
    if not stands(status, observed.start.status):
        return PatchStatus(status)
    return Result(requeue=True, retry_after=tried.retry_after) if tried else Result()
