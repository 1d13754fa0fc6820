"""Step 9, Kueue mode: the TrainJob's Workload exists, carries dispatch's gate, and lists the admission check."""

from collections.abc import Iterator

from dispatch_operator.api import duration, times
from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile.actions import (
    Action,
    AwaitWorkload,
    FindWorkload,
    ReadCheck,
    ReadClusterQueue,
    ReadLocalQueue,
    ReadWorkload,
)
from dispatch_operator.reconcile.observation import Object, Observed, Origin, at, condition
from dispatch_operator.reconcile.ownership import gates, uid_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.reconcile.steps.admit import usable, wrote_terms

STEP = Condition.WORKLOAD_GATED
FIRST_WAIT = 2.0
"""Seconds that a reconcile waits for the Workload itself; most appear within one. Later ones are woken by the watch."""
DEFAULT_TIMEOUT = "60s"
"""Where no backend says another any more."""
CLOCK_GRAIN = 1.0
"""Status keeps times in whole seconds."""


def await_workload(observed: Observed, now: float) -> Action | Verdict | None:
    """Wait for the gated Workload within `timeouts.workload`; then say what is missing, and why when it is known."""
    terms = wrote_terms(observed)
    if terms is None or terms.queue is None:
        return None
    check = terms.admission_check or ""
    if not _lacking(observed.workload.obj, check):
        return _confirm(observed)
    if not (observed.awaited or observed.workload.live or _is_recorded(observed)):
        return AwaitWorkload(min(FIRST_WAIT, _bound(observed)))
    if error := observed.failure(FindWorkload):
        return transient(STEP, error, never_final=True)
    left = _bound(observed) + CLOCK_GRAIN - _waited(observed, now)
    if left > 0:
        message = f"waiting for Kueue: {'; '.join(_lacking(observed.workload.obj, check))}"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return _give_up(observed, terms.queue, check)


def _timeout(observed: Observed) -> str:
    backend = usable(observed)
    return backend.spec.timeouts.workload if backend else DEFAULT_TIMEOUT


def _bound(observed: Observed) -> float:
    return duration.seconds(_timeout(observed))


def _is_recorded(observed: Observed) -> bool:
    return condition(observed.start, STEP).get("status") in {"Unknown", "False"}


def _waited(observed: Observed, now: float) -> float:
    since = times.read(condition(observed.start, STEP).get("lastTransitionTime")) if _is_recorded(observed) else None
    return now - since if since is not None else 0.0


def _confirm(observed: Observed) -> Action | Verdict | None:
    """What a watch told of is confirmed by a live read."""
    if observed.workload.origin is Origin.READ:
        return None
    if error := observed.failure(ReadWorkload):
        return transient(STEP, error, never_final=True)
    return ReadWorkload(at(observed.workload.obj, "metadata", "name"))


def _lacking(workload: Object | None, check: str) -> list[str]:
    """Name which of the three is missing."""
    if workload is None:
        return ["no Workload of the TrainJob exists"]
    name = at(workload, "metadata", "name")
    listed = [at(entry, "name") for entry in at(workload, "status", "admissionChecks") or ()]
    lacking = []
    if START_GATE not in gates(workload):
        lacking.append(f"Workload {name} lacks the gate {START_GATE}")
    if check not in listed:
        lacking.append(f"Workload {name} does not list the admission check {check}")
    return lacking


def _give_up(observed: Observed, queue: str, check: str) -> Action | Verdict:
    if observed.workload.origin is not Origin.READ:
        return FindWorkload(uid_of(observed.train_job.obj))
    if action := _next_reason(observed, queue, check):
        return action
    lacking = _lacking(observed.workload.obj, check)
    reasons = list(_reasons(observed, queue, check))
    because = f" (perhaps because {'; '.join(reasons)})" if reasons else ""
    return Refusal(STEP, ErrorClass.REJECTED, f"{'; '.join(lacking)}, after {_timeout(observed)}{because}")


def _next_reason(observed: Observed, queue: str, check: str) -> Action | None:
    """Return what is still to be read of the queues and the check; what can't be read is not known."""
    if not observed.local_queue.live and not observed.failure(ReadLocalQueue):
        return ReadLocalQueue(queue)
    name = at(observed.local_queue.obj, "spec", "clusterQueue")
    if name and not observed.cluster_queue.live and not observed.failure(ReadClusterQueue):
        return ReadClusterQueue(name)
    if not observed.check.live and not observed.failure(ReadCheck):
        return ReadCheck(check)
    return None


def _reasons(observed: Observed, queue: str, check: str) -> Iterator[str]:
    """Say what of Kueue's set-up explains a Workload that is missing or lacks something."""
    cluster_queue = at(observed.local_queue.obj, "spec", "clusterQueue")
    if observed.local_queue.absent:
        yield f"LocalQueue {queue} does not exist"
    elif at(observed.local_queue.obj, "spec", "stopPolicy") not in {None, "None"}:
        yield f"LocalQueue {queue} is not active: {_told(observed.local_queue.obj)}"
    if observed.check.absent:
        yield f"AdmissionCheck {check} does not exist"
    elif observed.check.live and condition(observed.check.obj, "Active").get("status") != "True":
        yield f"AdmissionCheck {check} is not active: {_told(observed.check.obj)}"
    if observed.cluster_queue.absent:
        yield f"ClusterQueue {cluster_queue} of LocalQueue {queue} does not exist"
    elif observed.cluster_queue.live:
        yield from _reasons_of_cluster_queue(observed.cluster_queue.obj or {}, check)
    if observed.workload.obj is not None and START_GATE not in gates(observed.workload.obj):
        yield "Kueue is older than 0.19 or its feature AdmissionGatedBy is off"
    if observed.workload.obj is None and observed.local_queue.obj is not None:
        yield "Kueue does not manage TrainJobs here; see its integrations and its namespace selector"


def _reasons_of_cluster_queue(cluster_queue: Object, check: str) -> Iterator[str]:
    name = at(cluster_queue, "metadata", "name")
    if condition(cluster_queue, "Active").get("status") != "True":
        yield f"ClusterQueue {name} is not active: {_told(cluster_queue)}"
    named = [
        entry
        for entry in at(cluster_queue, "spec", "admissionChecksStrategy", "admissionChecks") or ()
        if at(entry, "name") == check
    ]
    if not named:
        yield f"ClusterQueue {name} does not name the admission check {check}"
    for flavors in (at(entry, "onFlavors") for entry in named):
        if flavors:
            yield (
                f"ClusterQueue {name} binds the admission check {check} to the flavors {', '.join(flavors)} only, so"
                " that it is listed only after quota is reserved; bind it to all flavors"
            )


def _told(obj: object) -> str:
    active = condition(obj, "Active")
    return f"{active.get('reason')}: {active.get('message')}" if active else "no controller has marked it"
