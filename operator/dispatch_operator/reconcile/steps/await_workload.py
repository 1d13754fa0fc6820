"""Step 9, Kueue mode: the TrainJob's Workload exists, carries dispatch's gate, and lists the admission check.

See docs/contract.md, Await the Workload.
"""

from collections.abc import Iterator
from dataclasses import replace

from dispatch_operator.api import duration, times
from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass
from dispatch_operator.api.group import START_GATE
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.api.quoting import one_line
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
    if not (observed.awaited or observed.workload.live or _recorded(observed)):
        return AwaitWorkload(Slot.WORKLOAD, job.metadata.uid, min(FIRST_WAIT, bound))
    if error := observed.failure(List, Slot.WORKLOAD):
        return transient(STEP, error, never_final=True)
    left = bound + CLOCK_GRAIN - _waited(observed, now)
    if left > 0:
        message = f"waiting for Kueue: {'; '.join(lacking)}"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return _overdue(observed, job, terms, now)


def _timeout(observed: Observed) -> str:
    backend = observed.backend.obj
    return backend.valid.spec.timeouts.workload if backend and backend.valid else DEFAULT_TIMEOUT


def _recorded(observed: Observed) -> Entry | None:
    """Return what is recorded of the step while it has not succeeded; None before that."""
    recorded = observed.start.status.condition(STEP)
    return recorded if recorded is not None and recorded.status is not ConditionStatus.TRUE else None


def _waited(observed: Observed, now: float) -> float:
    """Return for how many seconds the step goes on: what fails in passing does not begin the wait anew."""
    return _age(observed.start.status.condition(Condition.READ_BACK), now) if _recorded(observed) else 0.0


def _had_patience(observed: Observed, now: float) -> float:
    """Return for how many seconds it is known without a break that the Workload may yet come: an outage is one."""
    recorded = _recorded(observed)
    return _age(recorded, now) if recorded and recorded.status is ConditionStatus.UNKNOWN else 0.0


def _age(recorded: Entry | None, now: float) -> float:
    since = times.read(recorded.last_transition_time) if recorded else None
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


def _overdue(observed: Observed, job: TrainJob, terms: BackendTerms, now: float) -> Action | Verdict:
    """Say why the Workload is not as it should be after `timeouts.workload`; what may pass is waited for longer."""
    if observed.workload.origin is not Origin.READ:
        return find_workload(job)
    if action := kueue_setup.next_read(observed, terms):
        return action
    found, timeout = tuple(_reasons(observed, terms)), _timeout(observed)
    unread = kueue_setup.unread(observed, terms)
    lacking = "; ".join(_lacking(observed.workload.obj, terms.admission_check or ""))
    because = f" (perhaps because {'; '.join(reason.text for reason in found)})" if found else ""
    because += f"; not known, because {'; '.join(str(error) for error in unread)}" if unread else ""
    message = f"{lacking}, after {timeout}{because}"
    if not all(reason.may_pass for reason in found):
        return Refusal(STEP, ErrorClass.REJECTED, message)
    if error := next(filter(kueue_setup.may_pass, unread), None):
        return _why_is_unknown(observed, f"{lacking}, after {timeout}; why is not known yet: ", error)
    if observed.start.is_probe:
        return _of_a_probe(message, outage=found == (OUTAGE,))
    left = PATIENCE * duration.seconds(timeout) + CLOCK_GRAIN - _had_patience(observed, now)
    if left > 0:
        message = f"{message}; it is waited for until {PATIENCE} times {timeout} have passed"
        return Waiting(STEP, "WaitingForWorkload", message, requeue_after=left)
    return Refusal(STEP, ErrorClass.REJECTED, f"{lacking}, after {PATIENCE} times {timeout}{because}")


def _why_is_unknown(observed: Observed, head: str, error: ApiError) -> Refusal:
    """An outage is no verdict: what could not be read is read again with backoff.

    However the reads fail one after the other, the first failure is told, so that status is written once.
    """
    recorded = _recorded(observed)
    is_told = recorded is not None and recorded.message.startswith(one_line(head))
    return replace(
        transient(STEP, error, never_final=True),
        message=recorded.message if recorded and is_told else f"{head}{error}",
    )


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
