"""A Start and all that belongs to it, as a tree: what each is, and what it waits for. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.enums import BackendState, Condition, Gate, Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.quoting import short_line
from dispatch_operator.plugin.facts import RAN, Facts
from dispatch_operator.plugin.telling import altered_copy, in_full, without_not_probed
from dispatch_operator.reconcile.actions import Get, List, Slot
from dispatch_operator.reconcile.backend.proof import is_proven
from dispatch_operator.reconcile.backend.status import PROVEN
from dispatch_operator.reconcile.failure_cause import Cause, cause_of_failure
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.job_status import has_ended
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.obstacle import stuck
from dispatch_operator.reconcile.ownership import is_ours
from dispatch_operator.records.core import Pod
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainJob

MOST_PODS = 20
"""Pods that are shown; those that do not run come first."""
_ORDER = {"Failed": 0, "Pending": 1, "": 1, "Unknown": 2, "Running": 3, "Succeeded": 4}


@dataclass(frozen=True)
class Node:
    """One object of the tree."""

    kind: str
    name: str
    state: str
    waits_for: str = ""
    """What it waits for, or what is told of it; empty when there is nothing to tell."""
    children: tuple["Node", ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "state": self.state,
            "waitsFor": self.waits_for,
            "children": [child.as_json() for child in self.children],
        }

    @property
    def reference(self) -> str:
        """What kubectl calls it."""
        return f"{self.kind}/{self.name}" if self.name else self.kind


def tree(facts: Facts) -> Node:
    """Return the tree of a Start."""
    observed, start = facts.observed, facts.start
    children = [node for node in (_backend(observed), _copy(observed), _train_job(facts)) if node]
    phase = start.status.phase
    return Node(Kind.DISPATCH_START, start.metadata.name, phase or "Unseen", _told(observed), tuple(children))


def _told(observed: Observed) -> str:
    """Return what status says in full: where it points to another condition, what that says."""
    status = observed.start.status
    if status.phase is None:
        return "an operator, which has not looked at it yet"
    told = without_not_probed(in_full(status))
    if observed.start.gate is Gate.HELD:
        return told.replace("the start gate is closed", "the start gate is held")
    return told


def _backend(observed: Observed) -> Node | None:
    name = observed.start.backend
    if not name:
        return None
    backend = observed.backend.obj
    if backend is None:
        return Node(Kind.DISPATCH_BACKEND, name, _absence(observed, Slot.BACKEND, "Missing"))
    if backend.valid is None:
        return Node(Kind.DISPATCH_BACKEND, name, "Unusable", backend.fault)
    ready = backend.status.condition(Condition.READY)
    state = backend.valid.spec.state
    if state is not BackendState.OPEN:
        return Node(Kind.DISPATCH_BACKEND, name, state, "its admin, who closed it to Starts")
    if is_proven(backend):
        return Node(Kind.DISPATCH_BACKEND, name, PROVEN)
    if ready is None:
        return Node(Kind.DISPATCH_BACKEND, name, "Unseen", "an operator, which has not probed it yet")
    return Node(Kind.DISPATCH_BACKEND, name, ready.reason, without_not_probed(ready.message))


def _copy(observed: Observed) -> Node | None:
    start, copy = observed.start, observed.copy.obj
    if not start.target:
        return None
    if copy is None:
        made = start.status.copied is not None
        return _absent(observed, Kind.TRAINING_RUNTIME, Slot.COPY, made=made)
    state = "Leaving" if copy.metadata.is_terminating else "Owned" if copy.metadata.owner_references else "Unowned"
    if not is_ours(observed, copy):
        state = "Foreign"
    if altered := altered_copy(start):
        return Node(Kind.TRAINING_RUNTIME, start.target, "Altered", altered.message)
    source = copy.metadata.annotations.source or ""
    return Node(Kind.TRAINING_RUNTIME, start.target, state, f"copied from {source.split(' ')[0]}" if source else "")


def _train_job(facts: Facts) -> Node | None:
    observed, start = facts.observed, facts.start
    job = observed.train_job.obj
    if not start.target:
        return None
    if job is None:
        made = start.status.reference is not None
        return _absent(observed, Kind.TRAIN_JOB, Slot.TRAIN_JOB, made=made)
    if not is_ours(observed, job):
        return Node(Kind.TRAIN_JOB, start.target, "Foreign", "it is not of this DispatchStart")
    children = [node for node in (_workload(observed), _job_set(facts, job)) if node is not None]
    state, waits = _state_of_train_job(observed, job)
    return Node(Kind.TRAIN_JOB, start.target, state, waits, tuple(children))


def _state_of_train_job(observed: Observed, job: TrainJob) -> tuple[str, str]:
    if job.metadata.is_terminating:
        return "Leaving", ", ".join(job.metadata.finalizers)
    for kind in ("Complete", "Failed"):
        if job.status.is_true(kind):
            told = job.status.condition(kind)
            return kind, short_line(told.message) if told else ""
    if any(one.ready for one in job.status.jobs_status):
        return "Running", ""
    if job.spec.suspend or job.status.is_true("Suspended"):
        workload = observed.workload.obj
        return "Suspended", f"{Kind.WORKLOAD} {workload.metadata.name}" if workload else _gate(observed)
    return "Starting", "its pods"


def _workload(observed: Observed) -> Node | None:
    workload = observed.workload.obj
    if workload is None:
        if observed.failure(List, Slot.WORKLOAD):
            return Node(Kind.WORKLOAD, "", "NotRead")
        return Node(Kind.WORKLOAD, "", "Missing", "Kueue, which has made none") if observed.workload.live else None
    state, waits = _state_of_workload(observed, workload)
    return Node(Kind.WORKLOAD, workload.metadata.name, state, waits)


def _state_of_workload(observed: Observed, workload: Workload) -> tuple[str, str]:
    for kind, state in (("Finished", "Finished"), ("Admitted", "Admitted")):
        if workload.status.is_true(kind):
            return state, ""
    if observed.start.gate is Gate.OPEN:
        state = "Pending" if workload.spec.active else "Inactive"
        return state, kueue_queue.why_it_waits(observed).removeprefix("the gate is open; ")
    return "Pending" if workload.spec.active else "Inactive", _gate(observed)


def _gate(observed: Observed) -> str:
    """Say that the gate is waited for, and where it stands."""
    if altered_copy(observed.start):
        return "its copy, which is not what was submitted: its gate stays closed"
    if observed.start.gate is Gate.OPEN:
        return "the operator, which is to open its gate"
    return f"the start gate, which is {observed.start.gate.lower()}"


def _job_set(facts: Facts, job: TrainJob) -> Node:
    pods = tuple(_pods(facts.pods))
    job_set = facts.job_set
    if job_set is None:
        state = "NotRead" if not facts.job_set_is_known else "Deleted" if has_ended(job) else "NotMade"
        return Node(Kind.JOB_SET, job.metadata.name, state, children=pods)
    restarts = job_set.status.restarts
    told = f"restarted {'once' if restarts == 1 else f'{restarts} times'}" if restarts else ""
    state = "Leaving" if job_set.metadata.is_terminating else _state_of_job_set(job)
    return Node(Kind.JOB_SET, job_set.metadata.name, state, told, pods)


def _state_of_job_set(job: TrainJob) -> str:
    return "Finished" if has_ended(job) else "Suspended" if job.spec.suspend else "Active"


def _pods(pods: tuple[Pod, ...]) -> Iterator[Node]:
    ordered = sorted(pods, key=lambda pod: (_ORDER.get(pod.status.phase, 2), pod.metadata.name))
    for pod in ordered[:MOST_PODS]:
        yield _pod(pod)
    if left := ordered[MOST_PODS:]:
        counts = {phase: sum(pod.status.phase == phase for pod in left) for phase in dict.fromkeys(_ORDER)}
        told = ", ".join(f"{number} {phase or 'Pending'}" for phase, number in counts.items() if number)
        yield Node(Kind.POD, f"and {len(left)} more", "More", told)


def _pod(pod: Pod) -> Node:
    name, phase = pod.metadata.name, pod.status.phase or "Pending"
    if pod.metadata.is_terminating:
        return Node(Kind.POD, name, "Leaving")
    if phase == "Failed":
        cause = cause_of_failure(None, [pod])
        return Node(Kind.POD, name, phase, _without_its_name(name, cause))
    keeps_it = stuck([pod]) if phase == "Pending" else None
    if keeps_it:
        return Node(Kind.POD, name, phase, _without_its_name(name, keeps_it))
    return Node(Kind.POD, name, phase, "its containers, which are being made" if phase == "Pending" else "")


def _without_its_name(name: str, cause: Cause) -> str:
    return f"{cause.reason}: {cause.message.removeprefix(f'pod {name}').lstrip(',: ')}"


def _absent(observed: Observed, kind: Kind, slot: Slot, *, made: bool) -> Node:
    """Return what is told of a part that is not there; what goes with the end is no fault."""
    start, phase = observed.start, observed.start.status.phase
    goes_with_end = phase is not None and phase.is_end and phase is not Phase.LOST
    state = _absence(observed, slot, "NotMade" if not made else "Deleted" if goes_with_end else "Gone")
    why = "after its end; keepEnded of the backend says when" if state == "Deleted" and phase in RAN else ""
    return Node(kind, start.target, state, why)


def _absence(observed: Observed, slot: Slot, otherwise: str) -> str:
    return "NotRead" if observed.failure(Get, slot) else otherwise
