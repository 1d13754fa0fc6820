"""A Start that fails in step 8 or 9 makes its backend observe-only at once (contract section 10)."""

from dispatch_operator.api.enums import BackendGate, Condition, ErrorClass
from dispatch_operator.checks.backend import gates_of
from dispatch_operator.reconcile.actions import Action, MarkUnproven, ReadBackend, Result
from dispatch_operator.reconcile.backend import status as backend_status
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import is_going, uid_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict
from dispatch_operator.render import start_options

GATES = {
    Condition.READ_BACK: BackendGate.FIELDS_KEPT,
    Condition.WORKLOAD_GATED: BackendGate.START_GATE,
}


def mark_unproven(observed: Observed, verdict: Verdict, now: float) -> Action | Result | None:
    """Return what takes a gate's proof away after a Start has shown that it does not hold; None when nothing is to do.

    It is no condition of the Start's own refusal: what fails here is left to the next probe, unless the API server said
    when to come again.
    """
    if not isinstance(verdict, Refusal) or verdict.error_class is not ErrorClass.REJECTED:
        return None
    gate = GATES.get(verdict.step)
    if gate is None:
        return None
    if error := observed.failure(MarkUnproven) or observed.failure(ReadBackend):
        return Result(requeue=True, retry_after=error.retry_after) if error.retry_after else None
    if not observed.backend.live:
        return ReadBackend(start_options(observed.start).backend)
    backend = observed.backend.obj
    held = [one for one in gates_of(backend or {}) if at(one, "name") == gate]
    if backend is None or is_going(backend) or not held or not at(held[0], "proven"):
        return None
    created = at(observed.train_job.obj, "metadata", "creationTimestamp")
    if not created or str(at(held[0], "lastProbeTime") or "") > str(created):
        # It was proven again since.
        return None
    name = at(observed.start, "metadata", "name")
    return MarkUnproven(
        status=backend_status.marked_unproven(backend, gate, f"DispatchStart {name} failed: {verdict.message}", now),
        name=at(backend, "metadata", "name"),
        uid=uid_of(backend),
        resource_version=at(backend, "metadata", "resourceVersion") or "",
    )
