"""Why a job waits in Kueue's queue, in Kueue's own words."""

from collections.abc import Iterator

from dispatch_operator.api.enums import ConditionStatus
from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile import kueue_setup
from dispatch_operator.reconcile.actions import Get, Slot
from dispatch_operator.reconcile.backend.terms import wrote_terms
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.kueue import CheckState, Workload

BLOCKED = ("Inadmissible", "Misconfigured", "Suspended")
"""What Kueue says of a Workload that no quota would help: the last two with its finer reasons."""
REJECTED = "Rejected"
BY_KUEUE = "DeactivatedDueTo"
"""How Kueue's reason begins when it deactivated a Workload by itself."""


def is_admitted(workload: Workload | None) -> bool:
    """Tell whether Kueue lets the job run."""
    return workload is not None and workload.status.is_true("Admitted")


def is_blocked(workload: Workload | None) -> bool:
    """Tell whether something else than quota keeps a Workload back: its queues, their checks, or its own shape."""
    told = workload.status.condition("QuotaReserved") if workload and workload.spec.active else None
    return told is not None and told.status != ConditionStatus.TRUE and told.reason in BLOCKED


def was_asked(observed: Observed) -> bool:
    """Tell whether this reconcile has read the queue."""
    return observed.local_queue.live or observed.failure(Get, Slot.LOCAL_QUEUE) is not None


def next_read(observed: Observed) -> Get | None:
    """Return what is still to be read to say why Kueue keeps the job back."""
    terms = wrote_terms(observed)
    return kueue_setup.next_read(observed, terms) if terms else None


def why_it_waits(observed: Observed) -> str:
    """Say what keeps a job with an open gate from being admitted; "" when it is admitted."""
    workload = observed.workload.obj
    if workload is None:
        return "the gate is open; Kueue has no Workload for the job"
    return "" if is_admitted(workload) else f"the gate is open; {'; '.join(_reasons(observed, workload))}"


def _reasons(observed: Observed, workload: Workload) -> Iterator[str]:
    name, namespace = workload.metadata.name, workload.metadata.namespace
    anew = f"once its cause is mended, have the job queued anew: kubectl delete workload {name} -n {namespace}"
    if not workload.spec.active:
        yield f"Kueue deactivated the job: {_told(workload, 'Evicted') or 'its Workload is not active'}; {anew}"
        return
    requeued, job = workload.status.condition("Requeued"), observed.train_job.obj
    if requeued and requeued.status == ConditionStatus.FALSE and requeued.reason.startswith(BY_KUEUE):
        # Kueue 0.19 does not take back what it deactivated itself, whoever activates it
        # (the reason with a cause is none that its Workload controller clears).
        yield f"Kueue has deactivated the job and keeps it out of its queue: {requeued.reason}; {anew}"
        return
    if rejected := [_of_check(check) for check in workload.status.admission_checks if check.state == REJECTED]:
        # A check that was Rejected while the job was held: Kueue 0.19 neither deactivates it then nor asks again.
        yield f"{'; '.join(rejected)}; {anew}"
        return
    # The TrainJob is asked first: its Workload is updated a moment later, and may still show our own gate.
    gates = (job.metadata.gates if job else ()) or workload.metadata.gates
    others = [name for name in gates if name != START_GATE]
    if others:
        yield f"other gates hold it: {', '.join(others)}"
    elif not workload.status.is_true("QuotaReserved"):
        told = _told(workload, "QuotaReserved") or "no quota is reserved yet"
        # A message that still names our gate is from before it was opened.
        yield "Kueue looks at it next" if START_GATE in told else f"Kueue waits: {told}"
        yield from _of_the_setup(observed, workload)
    else:
        for check in workload.status.admission_checks:
            if check.state != "Ready":
                yield _of_check(check)


def _of_the_setup(observed: Observed, workload: Workload) -> Iterator[str]:
    terms = wrote_terms(observed)
    if terms and is_blocked(workload):
        yield from (reason.text for reason in kueue_setup.reasons(observed, terms))


def _of_check(check: CheckState) -> str:
    return f"admission check {check.name} is {check.state}" + (f": {check.message}" if check.message else "")


def _told(workload: Workload, kind: str) -> str:
    held = workload.status.condition(kind)
    return f"{held.reason}: {held.message}" if held else ""
