"""Which jobs are asked why they do not run, when, and what is asked (docs/contract.md, Why nothing runs).

Never one that waits for quota: Kueue says by itself what it waits for. What is asked is small, whatever the job is: one
Job, a few pods that wait, and the Events about a few names.
"""

from collections.abc import Iterator

from dispatch_operator.api import times
from dispatch_operator.api.group import NODE
from dispatch_operator.reconcile.actions import (
    Action,
    Get,
    List,
    Slot,
    get_trainer_job,
    list_child_warnings,
    list_waiting_pods,
    list_warnings,
)
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.gates.gate import is_kueues, is_open, wants_open
from dispatch_operator.reconcile.inquiries import FIRST_AFTER, PERIOD, SPREAD, spread
from dispatch_operator.reconcile.observation import Observation, Observed
from dispatch_operator.reconcile.obstacle import stuck, waiting_pod
from dispatch_operator.reconcile.ownership import in_kueue_mode
from dispatch_operator.records.trainer import JobCounts, TrainJob

_ASKED = {(Get, Slot.TRAINER_JOB), *((List, slot) for slot in (Slot.WARNINGS, Slot.PODS, Slot.CHILD_WARNINGS))}
"""The questions."""


def trainer_counts(job: TrainJob | None) -> JobCounts:
    """Return how far the trainer's Job is; an initializer's tells nothing of the training."""
    counts = job.status.jobs_status if job else ()
    return next((one for one in counts if one.name == NODE), JobCounts())


def may_run_and_does_not(observed: Observed, job: TrainJob) -> bool:
    """Tell whether nothing but the cluster keeps the trainer's pods, or some of them, from running."""
    if is_kueues(observed) or not (is_open(observed) and wants_open(observed)):
        return False
    if in_kueue_mode(observed) and not kueue_queue.is_admitted(observed.workload.obj):
        return False
    return not trainer_counts(job).ready


def next_inquiry(observed: Observed, job: TrainJob) -> float:
    """Return when such a job is asked about, in seconds since the epoch: within its first minute, then once in each."""
    resumed = job.status.condition("Suspended")
    since = times.read(resumed.last_transition_time) if resumed else None
    if since is None:
        since = times.read(observed.start.metadata.creation_timestamp) or 0.0
    wait = FIRST_AFTER + spread(observed.start.metadata.uid) * SPREAD
    if limit := job.spec.active_deadline_seconds:
        wait = min(wait, limit / 2)
    return max(since + wait, observed.last_inquiry + PERIOD)


def was_asked(observed: Observed) -> bool:
    """Tell whether this reconcile has asked how many of the trainer's pods are ready, which it does with the rest."""
    asked = observed.trainer_job.live or observed.failure(Get, Slot.TRAINER_JOB) is not None
    return asked and not _is_put_off(observed)


def _is_put_off(observed: Observed) -> bool:
    """Tell whether the API server has answered a question with a time to wait: the next minute is early enough."""
    return any(error.retry_after for key, error in observed.failures.items() if key in _ASKED)


def question(observed: Observed, job: TrainJob) -> Action | None:
    """Return what is to be asked next; None when all is asked. A question that failed is not asked again this time."""
    if _is_put_off(observed):
        return None
    for action in _questions(observed, job):
        known = getattr(observed, action.slot)
        answered = known.live if isinstance(known, Observation) else known is not None
        if not answered and action.key not in observed.failures:
            return action
    return None


def _questions(observed: Observed, job: TrainJob) -> Iterator[Action]:
    # First, since by it an inquiry is remembered.
    yield get_trainer_job(observed.start)
    yield list_warnings(observed.start)
    yield list_waiting_pods(observed.start)
    pods = observed.pods or ()
    pod = waiting_pod(pods)
    if pod is not None and stuck(pods) is None:
        yield list_child_warnings(pod.metadata.name)
    elif pod is None:
        yield list_child_warnings(f"{observed.start.target}-{_without_pods(job)}-0")


def _without_pods(job: TrainJob) -> str:
    """Return the first replicated job that should have pods and has none; what the trainer waits for comes first."""
    for counts in sorted(job.status.jobs_status, key=lambda one: one.name == NODE):
        if not (counts.active or counts.ready or counts.succeeded):
            return counts.name
    return NODE
