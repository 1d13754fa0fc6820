"""Why a job waits in Kueue's queue, in Kueue's own words."""

from collections.abc import Iterator

from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile.observation import Object, at, condition
from dispatch_operator.reconcile.ownership import gates


def is_admitted(workload: object) -> bool:
    """Tell whether Kueue lets the job run."""
    return condition(workload, "Admitted").get("status") == "True"


def why_it_waits(train_job: object, workload: Object | None) -> str:
    """Say what keeps a job with an open gate from being admitted; "" when it is admitted."""
    if is_admitted(workload):
        return ""
    if workload is None:
        return "the gate is open; Kueue has no Workload for the job"
    return f"the gate is open; {'; '.join(_reasons(train_job, workload))}"


def _reasons(train_job: object, workload: Object) -> Iterator[str]:
    if at(workload, "spec", "active") is False:
        yield f"Kueue deactivated the job: {_told(workload, 'Evicted') or 'its Workload is not active'}"
        return
    # The Workload follows the TrainJob a moment later, and may still show our own gate.
    others = [name for name in gates(train_job) or gates(workload) if name != START_GATE]
    if others:
        yield f"other gates hold it: {', '.join(others)}"
    if condition(workload, "QuotaReserved").get("status") != "True":
        told = _told(workload, "QuotaReserved") or "no quota is reserved yet"
        # Kueue has not looked at the job since our gate was opened.
        yield "Kueue looks at it next" if START_GATE in told else f"Kueue waits: {told}"
        return
    for check in at(workload, "status", "admissionChecks") or ():
        if at(check, "state") != "Ready":
            said = f": {at(check, 'message')}" if at(check, "message") else ""
            yield f"admission check {at(check, 'name')} is {at(check, 'state')}{said}"


def _told(workload: Object, kind: str) -> str:
    held = condition(workload, kind)
    return f"{held.get('reason')}: {held.get('message')}" if held else ""
