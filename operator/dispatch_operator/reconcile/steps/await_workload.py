"""Step 9, Kueue mode: the TrainJob's Workload exists, carries dispatch's gate, and lists the admission check.

See docs/contract.md, Await the Workload.
"""

from collections.abc import Iterator

from dispatch_operator.api import duration, times
from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass
from dispatch_operator.api.group import START_GATE
from dispatch_operator.api.kinds import Kind
from dispatch_operator.reconcile.actions import Action, AwaitWorkload, Get, List, Slot, find_workload, get_workload
from dispatch_operator.reconcile.backend.terms import wrote_terms
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.records.base import ConditionedStatus
from dispatch_operator.records.kueue import ClusterQueue, Workload
from dispatch_operator.records.trainer import TrainJob

STEP = Condition.WORKLOAD_GATED
FIRST_WAIT = 2.0
"""Seconds that a reconcile waits for the Workload itself; most appear within one. Later ones are woken by the watch."""
DEFAULT_TIMEOUT = "60s"
"""Where no backend says another any more."""
CLOCK_GRAIN = 1.0
"""Status keeps times in whole seconds."""


def await_workload(observed: Observed, now: float) -> Action | Verdict | None:
    """Wait for the gated Workload within `timeouts.workload`; then say what is missing, and why when it is known."""
    terms, job = wrote_terms(observed), observed.train_job.obj
    if job is None or terms is None or terms.queue is None:
        return None
    check = terms.admission_check or ""
    lacking, bound = _lacking(observed.workload.obj, check), duration.seconds(_timeout(observed))
    if not lacking:
        return _confirm(observed)
    if not (observed.awaited or observed.workload.live or _waits_since(observed)):
        return AwaitWorkload(Slot.WORKLOAD, job.metadata.uid, min(FIRST_WAIT, bound))
    if error := observed.failure(List, Slot.WORKLOAD):
        return transient(STEP, error, never_final=True)
    left = bound + CLOCK_GRAIN - _waited(observed, now)
    if left > 0:
        message = f"waiting for Kueue: {'; '.join(lacking)}"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return _give_up(observed, job, terms.queue, check)


def _timeout(observed: Observed) -> str:
    backend = observed.backend.obj
    return backend.valid.spec.timeouts.workload if backend and backend.valid else DEFAULT_TIMEOUT


def _waits_since(observed: Observed) -> str | None:
    """Return since when the step's wait is recorded; None when it is not."""
    recorded = observed.start.status.condition(STEP)
    waits = recorded is not None and recorded.status is not ConditionStatus.TRUE
    return recorded.last_transition_time if recorded and waits else None


def _waited(observed: Observed, now: float) -> float:
    since = times.read(_waits_since(observed))
    return now - since if since is not None else 0.0


def _confirm(observed: Observed) -> Action | Verdict | None:
    """What a watch told of is confirmed by a live read."""
    workload = observed.workload
    if workload.obj is None or workload.origin is Origin.READ:
        return None
    if error := observed.failure(Get, Slot.WORKLOAD):
        return transient(STEP, error, never_final=True)
    return get_workload(workload.obj)


def _lacking(workload: Workload | None, check: str) -> list[str]:
    """Name which of the three is missing."""
    if workload is None:
        return ["no Workload of the TrainJob exists"]
    name = workload.metadata.name
    lacking = []
    if START_GATE not in workload.metadata.gates:
        lacking.append(f"Workload {name} lacks the gate {START_GATE}")
    if check not in [listed.name for listed in workload.status.admission_checks]:
        lacking.append(f"Workload {name} does not list the admission check {check}")
    return lacking


def _give_up(observed: Observed, job: TrainJob, queue: str, check: str) -> Action | Verdict:
    if observed.workload.origin is not Origin.READ:
        return find_workload(job)
    if action := _next_reason(observed, queue, check):
        return action
    lacking = "; ".join(_lacking(observed.workload.obj, check))
    reasons = "; ".join(_reasons(observed, queue, check))
    because = f" (perhaps because {reasons})" if reasons else ""
    return Refusal(STEP, ErrorClass.REJECTED, f"{lacking}, after {_timeout(observed)}{because}")


def _next_reason(observed: Observed, queue: str, check: str) -> Action | None:
    """Return what is still to be read of the queues and the check; what can't be read is not known."""
    local = observed.local_queue.obj
    gets = [Get(Slot.LOCAL_QUEUE, Kind.LOCAL_QUEUE, queue), Get(Slot.CHECK, Kind.ADMISSION_CHECK, check)]
    if local and local.spec.cluster_queue:
        gets.insert(1, Get(Slot.CLUSTER_QUEUE, Kind.CLUSTER_QUEUE, local.spec.cluster_queue))
    due = (observed.due(get) for get in gets)
    return next((get for get in due if isinstance(get, Get)), None)


def _reasons(observed: Observed, queue: str, check: str) -> Iterator[str]:
    """Say what of Kueue's set-up explains a Workload that is missing or lacks something."""
    local, cluster, named = observed.local_queue.obj, observed.cluster_queue, observed.check
    workload = observed.workload.obj
    if observed.local_queue.absent:
        yield f"LocalQueue {queue} does not exist"
    elif local and local.spec.stop_policy not in {None, "None"}:
        yield f"LocalQueue {queue} is not active: {_told(local.status)}"
    if named.absent:
        yield f"AdmissionCheck {check} does not exist"
    elif named.live and named.obj and not named.obj.status.is_true("Active"):
        yield f"AdmissionCheck {check} is not active: {_told(named.obj.status)}"
    if cluster.absent and local:
        yield f"ClusterQueue {local.spec.cluster_queue} of LocalQueue {queue} does not exist"
    elif cluster.live and cluster.obj:
        yield from _reasons_of_cluster_queue(cluster.obj, check)
    if workload and START_GATE not in workload.metadata.gates:
        yield "Kueue is older than 0.19 or its feature AdmissionGatedBy is off"
    if workload is None and local:
        yield "Kueue does not manage TrainJobs here; see its integrations and its namespace selector"


def _reasons_of_cluster_queue(cluster_queue: ClusterQueue, check: str) -> Iterator[str]:
    name = cluster_queue.metadata.name
    if not cluster_queue.status.is_true("Active"):
        yield f"ClusterQueue {name} is not active: {_told(cluster_queue.status)}"
    checks = cluster_queue.spec.admission_checks_strategy.admission_checks
    named = [entry for entry in checks if entry.name == check]
    if not named:
        yield f"ClusterQueue {name} does not name the admission check {check}"
    for entry in named:
        if entry.on_flavors:
            yield (
                f"ClusterQueue {name} binds the admission check {check} to the flavors {', '.join(entry.on_flavors)}"
                " only, so that it is listed only after quota is reserved; bind it to all flavors"
            )


def _told(status: ConditionedStatus) -> str:
    active = status.condition("Active")
    return f"{active.reason}: {active.message}" if active else "no controller has marked it"
