"""What of Kueue's set-up explains that a job waits, or is not gated: read when needed, told in Kueue's own words."""

from collections.abc import Iterator
from dataclasses import dataclass

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.errors import HTTP_FORBIDDEN, ApiError, Effect
from dispatch_operator.reconcile.actions import Get, Slot
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.base import ConditionedStatus
from dispatch_operator.records.kueue import ClusterQueue
from dispatch_operator.render.terms import BackendTerms


@dataclass(frozen=True, slots=True)
class Reason:
    """Something of the set-up that is not as a job needs it."""

    text: str
    may_pass: bool = False
    """Whether it may be a matter of a moment, as a check that is put back on its queue."""


def next_read(observed: Observed, terms: BackendTerms) -> Get | None:
    """Return what is still to be read of the queues, the check and the priority."""
    return next((get for get in _due(observed, terms) if isinstance(get, Get)), None)


def unread(observed: Observed, terms: BackendTerms) -> tuple[ApiError, ...]:
    """Return how the reads failed of which nothing is known."""
    return tuple(error for error in _due(observed, terms) if isinstance(error, ApiError))


def may_pass(error: ApiError) -> bool:
    """Tell whether a read may succeed when it is made again; what the operator may not read stays unknown."""
    return error.effect is not Effect.DEFINITE and error.status != HTTP_FORBIDDEN


def _due(observed: Observed, terms: BackendTerms) -> Iterator[Get | ApiError | None]:
    local = observed.local_queue.obj
    gets = [Get(Slot.LOCAL_QUEUE, Kind.LOCAL_QUEUE, terms.queue or "")]
    if local and local.spec.cluster_queue:
        gets.append(Get(Slot.CLUSTER_QUEUE, Kind.CLUSTER_QUEUE, local.spec.cluster_queue))
    gets.append(Get(Slot.CHECK, Kind.ADMISSION_CHECK, terms.admission_check or ""))
    if terms.priority_class:
        gets.append(Get(Slot.PRIORITY_CLASS, Kind.WORKLOAD_PRIORITY_CLASS, terms.priority_class))
    return (observed.due(get) for get in gets)


def reasons(observed: Observed, terms: BackendTerms) -> Iterator[Reason]:
    """Say what of the set-up is not as a job needs it, as far as it was read."""
    local, cluster, named = observed.local_queue.obj, observed.cluster_queue, observed.check
    queue, check = terms.queue, terms.admission_check or ""
    if observed.local_queue.absent:
        yield Reason(f"LocalQueue {queue} does not exist")
    elif local and local.spec.stop_policy not in {None, "None"}:
        yield Reason(f"LocalQueue {queue} is not active: {_told(local.status)}")
    if named.absent:
        yield Reason(f"AdmissionCheck {check} does not exist")
    elif named.live and named.obj and not named.obj.status.is_true("Active"):
        yield Reason(f"AdmissionCheck {check} is not active: {_told(named.obj.status)}", may_pass=True)
    if cluster.absent and local:
        yield Reason(f"ClusterQueue {local.spec.cluster_queue} of LocalQueue {queue} does not exist")
    elif cluster.live and cluster.obj:
        yield from _reasons_of_cluster_queue(cluster.obj, check)
    if observed.priority_class.absent:
        yield Reason(f"WorkloadPriorityClass {terms.priority_class} does not exist", may_pass=True)


def _reasons_of_cluster_queue(cluster_queue: ClusterQueue, check: str) -> Iterator[Reason]:
    name = cluster_queue.metadata.name
    if not cluster_queue.status.is_true("Active"):
        yield Reason(f"ClusterQueue {name} is not active: {_told(cluster_queue.status)}", may_pass=True)
    checks = cluster_queue.spec.admission_checks_strategy.admission_checks
    named = [entry for entry in checks if entry.name == check]
    if not named:
        yield Reason(f"ClusterQueue {name} does not name the admission check {check}", may_pass=True)
    for entry in named:
        if entry.on_flavors:
            yield Reason(
                f"ClusterQueue {name} binds the admission check {check} to the flavors {', '.join(entry.on_flavors)}"
                " only, so that it is listed only after quota is reserved; bind it to all flavors"
            )


def _told(status: ConditionedStatus) -> str:
    active = status.condition("Active")
    return f"{active.reason}: {active.message}" if active else "no controller has marked it"
