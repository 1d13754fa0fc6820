"""Step 9, Kueue mode: the TrainJob's Workload exists, carries dispatch's gate, and lists the admission check.

See docs/contract.md, Await the Workload.
"""

from collections.abc import Iterator

from dispatch_operator.api import duration, times
from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass
from dispatch_operator.api.group import START_GATE
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile import kueue_setup
from dispatch_operator.reconcile.actions import Action, AwaitWorkload, Get, List, Slot, find_workload, get_workload
from dispatch_operator.reconcile.backend.terms import wrote_terms
from dispatch_operator.reconcile.kueue_setup import Reason
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainJob
from dispatch_operator.render.terms import BackendTerms

STEP = Condition.WORKLOAD_GATED
FIRST_WAIT = 2.0
"""Seconds that a reconcile waits for the Workload itself; most appear within one. Later ones are woken by the watch."""
DEFAULT_TIMEOUT = "60s"
"""Where no backend says another any more."""
PATIENCE = 10
"""How many times `timeouts.workload` is waited in all for what may pass by itself."""
OUTAGE = Reason(
    "Kueue can't make Workloads: the TrainJob has passed Kueue's own webhook; see whether its controller runs, and its"
    " webhook for Workloads answers",
    may_pass=True,
)
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
    waited = _waited(observed, now)
    left = bound + CLOCK_GRAIN - waited
    if left > 0:
        message = f"waiting for Kueue: {'; '.join(lacking)}"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return _overdue(observed, job, terms, waited)


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


def _overdue(observed: Observed, job: TrainJob, terms: BackendTerms, waited: float) -> Action | Verdict:
    """Say why the Workload is not as it should be after `timeouts.workload`; what may pass is waited for longer."""
    if observed.workload.origin is not Origin.READ:
        return find_workload(job)
    if action := kueue_setup.next_read(observed, terms):
        return action
    found, timeout = tuple(_reasons(observed, terms)), _timeout(observed)
    lacking = "; ".join(_lacking(observed.workload.obj, terms.admission_check or ""))
    because = f" (perhaps because {'; '.join(reason.text for reason in found)})" if found else ""
    message = f"{lacking}, after {timeout}{because}"
    if not all(reason.may_pass for reason in found):
        return Refusal(STEP, ErrorClass.REJECTED, message)
    if error := kueue_setup.failure(observed, terms):
        return _why_is_unknown(observed, f"{lacking}, after {timeout}", error)
    if observed.start.is_probe:
        return _of_a_probe(message, outage=found == (OUTAGE,))
    left = PATIENCE * duration.seconds(timeout) + CLOCK_GRAIN - waited
    if left > 0:
        message = f"{message}; it is waited for until {PATIENCE} times {timeout} have passed"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return Refusal(STEP, ErrorClass.REJECTED, f"{lacking}, after {PATIENCE} times {timeout}{because}")


def _why_is_unknown(observed: Observed, message: str, error: ApiError) -> Refusal:
    """What can't be read explains nothing: the time is over, and only a probe comes to no verdict by it."""
    if observed.start.is_probe:
        return transient(STEP, error, never_final=True)
    return Refusal(STEP, ErrorClass.REJECTED, f"{message}; why is not known: {error}")


def _of_a_probe(message: str, *, outage: bool) -> Refusal:
    """A probe waits no longer: the next one looks again. That Kueue is down says nothing about the gates."""
    if outage:
        return Refusal(STEP, ErrorClass.UNREACHABLE, message, transient=True)
    return Refusal(STEP, ErrorClass.REJECTED, message)


def _reasons(observed: Observed, terms: BackendTerms) -> Iterator[Reason]:
    workload = observed.workload.obj
    found = tuple(kueue_setup.reasons(observed, terms))
    yield from found
    if workload and START_GATE not in workload.metadata.gates:
        yield Reason("Kueue is older than 0.19 or its feature AdmissionGatedBy is off")
    if workload is None and not found:
        yield OUTAGE
