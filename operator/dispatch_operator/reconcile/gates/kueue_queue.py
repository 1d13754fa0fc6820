"""Why a job waits in Kueue's queue, in Kueue's own words."""

from collections.abc import Iterator

from dispatch_operator.api.group import START_GATE
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainJob


def is_admitted(workload: Workload | None) -> bool:
    """Tell whether Kueue lets the job run."""
    return workload is not None and workload.status.is_true("Admitted")


def why_it_waits(train_job: TrainJob | None, workload: Workload | None) -> str:
    """Say what keeps a job with an open gate from being admitted; "" when it is admitted."""
    if workload is None:
        return "the gate is open; Kueue has no Workload for the job"
    return "" if is_admitted(workload) else f"the gate is open; {'; '.join(_reasons(train_job, workload))}"


def _reasons(train_job: TrainJob | None, workload: Workload) -> Iterator[str]:
    if not workload.spec.active:
        yield f"Kueue deactivated the job: {_told(workload, 'Evicted') or 'its Workload is not active'}"
        return
    # The TrainJob is asked first: its Workload is updated a moment later, and may still show our own gate.
    gates = (train_job.metadata.gates if train_job else ()) or workload.metadata.gates
    others = [name for name in gates if name != START_GATE]
    if others:
        yield f"other gates hold it: {', '.join(others)}"
    if not workload.status.is_true("QuotaReserved"):
        told = _told(workload, "QuotaReserved") or "no quota is reserved yet"
        # A message that still names our gate is from before it was opened.
        yield "Kueue looks at it next" if START_GATE in told else f"Kueue waits: {told}"
        return
    for check in workload.status.admission_checks:
        if check.state != "Ready":
            yield f"admission check {check.name} is {check.state}" + (f": {check.message}" if check.message else "")


def _told(workload: Workload, kind: str) -> str:
    held = workload.status.condition(kind)
    return f"{held.reason}: {held.message}" if held else ""
