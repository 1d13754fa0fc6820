"""Step 9, Kueue mode: the TrainJob's Workload exists, carries dispatch's gate, and lists the admission check."""

from collections.abc import Iterator

from dispatch_operator.api import duration, times
from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile.actions import (
    Act,
    AwaitWorkload,
    FindWorkload,
    ReadCheck,
    ReadClusterQueue,
    ReadLocalQueue,
    ReadWorkload,
)
from dispatch_operator.reconcile.observation import Object, Seen, Source, at, condition
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


def await_workload(seen: Seen, now: float) -> Act | Verdict | None:
    """Wait for the gated Workload within `timeouts.workload`; then say what is missing, and why when it is known."""
    terms = wrote_terms(seen)
    if terms is None or terms.queue is None:
        return None
    check = terms.admission_check or ""
    if not _lacking(seen.workload.obj, check):
        return _confirm(seen)
    if not (seen.awaited or seen.workload.live or _is_recorded(seen)):
        return AwaitWorkload(min(FIRST_WAIT, _bound(seen)))
    if error := seen.failure(FindWorkload):
        return transient(STEP, error, never_final=True)
    left = _bound(seen) + CLOCK_GRAIN - _waited(seen, now)
    if left > 0:
        message = f"waiting for Kueue: {'; '.join(_lacking(seen.workload.obj, check))}"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return _give_up(seen, terms.queue, check)


def _timeout(seen: Seen) -> str:
    backend = usable(seen)
    return backend.spec.timeouts.workload if backend else DEFAULT_TIMEOUT


def _bound(seen: Seen) -> float:
    return duration.seconds(_timeout(seen))


def _is_recorded(seen: Seen) -> bool:
    return condition(seen.start, STEP).get("status") in {"Unknown", "False"}


def _waited(seen: Seen, now: float) -> float:
    since = times.read(condition(seen.start, STEP).get("lastTransitionTime")) if _is_recorded(seen) else None
    return now - since if since is not None else 0.0


def _confirm(seen: Seen) -> Act | Verdict | None:
    """What a watch told of is confirmed by a live read."""
    if seen.workload.source is Source.READ:
        return None
    if error := seen.failure(ReadWorkload):
        return transient(STEP, error, never_final=True)
    return ReadWorkload(at(seen.workload.obj, "metadata", "name"))


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


def _give_up(seen: Seen, queue: str, check: str) -> Act | Verdict:
    if seen.workload.source is not Source.READ:
        return FindWorkload(uid_of(seen.train_job.obj))
    if act := _next_reason(seen, queue, check):
        return act
    lacking = _lacking(seen.workload.obj, check)
    reasons = list(_reasons(seen, queue, check))
    because = f" (perhaps because {'; '.join(reasons)})" if reasons else ""
    return Refusal(STEP, ErrorClass.REJECTED, f"{'; '.join(lacking)}, after {_timeout(seen)}{because}")


def _next_reason(seen: Seen, queue: str, check: str) -> Act | None:
    """Return what is still to be read of the queues and the check; what can't be read is not known."""
    if not seen.local_queue.live and not seen.failure(ReadLocalQueue):
        return ReadLocalQueue(queue)
    name = at(seen.local_queue.obj, "spec", "clusterQueue")
    if name and not seen.cluster_queue.live and not seen.failure(ReadClusterQueue):
        return ReadClusterQueue(name)
    if not seen.check.live and not seen.failure(ReadCheck):
        return ReadCheck(check)
    return None


def _reasons(seen: Seen, queue: str, check: str) -> Iterator[str]:
    """Say what of Kueue's set-up explains a Workload that is missing or lacks something."""
    cluster_queue = at(seen.local_queue.obj, "spec", "clusterQueue")
    if seen.local_queue.absent:
        yield f"LocalQueue {queue} does not exist"
    elif at(seen.local_queue.obj, "spec", "stopPolicy") not in {None, "None"}:
        yield f"LocalQueue {queue} is not active: {_told(seen.local_queue.obj)}"
    if seen.check.absent:
        yield f"AdmissionCheck {check} does not exist"
    elif seen.check.live and condition(seen.check.obj, "Active").get("status") != "True":
        yield f"AdmissionCheck {check} is not active: {_told(seen.check.obj)}"
    if seen.cluster_queue.absent:
        yield f"ClusterQueue {cluster_queue} of LocalQueue {queue} does not exist"
    elif seen.cluster_queue.live:
        yield from _reasons_of_cluster_queue(seen.cluster_queue.obj or {}, check)
    if seen.workload.obj is not None and START_GATE not in gates(seen.workload.obj):
        yield "Kueue is older than 0.19 or its feature AdmissionGatedBy is off"
    if seen.workload.obj is None and seen.local_queue.obj is not None:
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
