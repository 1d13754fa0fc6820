"""After Started was recorded: move the gate, and follow the job to its end (docs/contract.md, The start gate)."""

from typing import cast

from dispatch_operator.api.enums import Phase
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile import job_status
from dispatch_operator.reconcile.actions import (
    Action,
    Get,
    List,
    PatchStatus,
    Result,
    Slot,
    get_copy,
    get_train_job,
    list_pods,
    list_warnings,
)
from dispatch_operator.reconcile.expiry import expire
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
from dispatch_operator.reconcile.ownership import Standing, owned_by, standing
from dispatch_operator.reconcile.restarts import restart_to_explain
from dispatch_operator.reconcile.run_state import never_ran, queue_is_to_be_asked
from dispatch_operator.reconcile.status import referring, stands
from dispatch_operator.reconcile.teardown import clean_up
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob


def follow(observed: Observed, now: float) -> Action | Result:
    """Return the next action for a DispatchStart that has started."""
    end = observed.start.status.recorded_end
    if end and end is not Phase.LOST and _stands(observed, end):
        action = _recorded(observed, job_status.unchanged(observed, end), now)
        return action if isinstance(action, Action) else expire(observed, now)
    # After an end, only what a watch tells of is looked at again.
    match Standing.ABSENT if end and observed.train_job.obj is None else standing(observed):
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case Get() as due:
            return due
        case Standing.THE_ONE:
            return _of_train_job(observed, end, now)
        case found:
            return _without_train_job(observed, found, end, now)


def _stands(observed: Observed, end: Phase) -> bool:
    """Tell whether nothing contradicts the end that is recorded."""
    status, job = observed.start.status, observed.train_job.obj
    if job is None:
        return True
    is_recorded = status.reference is not None and status.reference.uid == job.metadata.uid
    is_whole = status.phase is end and status.says_started and status.outcome is not None
    shown = Phase.FAILED if job.status.is_true("Failed") else Phase.SUCCEEDED
    return is_recorded and is_whole and job_status.has_ended(job) and shown is end


def _of_train_job(observed: Observed, end: Phase | None, now: float) -> Action | Result:
    """Follow the TrainJob that was started, whatever status says of it: the cluster is the truth."""
    job, status = cast("TrainJob", observed.train_job.obj), observed.start.status
    unread = observed.due(get_train_job(observed.start)) if end else None
    copy = observed.copy.obj
    if copy is not None and owned_by(copy, job) and (status.copied is None or _lacks_source(status, copy)):
        unread = unread or observed.due(get_copy(observed.start))
    match unread:
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case Get() as due:
            return due
    # It is recorded before it is opened or held.
    recorded = referring(observed)
    if recorded != status:
        return PatchStatus(recorded)
    return _ended(observed, job, now) if job_status.has_ended(job) else _going_on(observed, job, now)


def _lacks_source(status: StartStatus, copy: TrainingRuntime) -> bool:
    return status.source is None and bool(copy.metadata.annotations.source)


def _without_train_job(observed: Observed, found: Standing, end: Phase | None, now: float) -> Action | Result:
    """The TrainJob that was started is gone, or nothing tells which it is; what came late is deleted at every end."""
    if end:
        action = _recorded(observed, job_status.unchanged(observed, end), now)
        late = end in {Phase.LOST, Phase.CANCELLED} or found is Standing.LATE
        return clean_up(observed) if late and isinstance(action, Result) else action
    if found is Standing.UNKNOWN:
        return _recorded(observed, job_status.unclear(observed, now), now)
    return _recorded(observed, job_status.lost(observed), now)


def after_loss(observed: Observed, now: float) -> Action | Result:
    """The status was lost, and with it whether anything was started: nothing is ever started anew."""
    match standing(observed):
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case Get() as due:
            return due
        case Standing.UNKNOWN:
            return _recorded(observed, job_status.unclear(observed, now), now)
        case _:
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
