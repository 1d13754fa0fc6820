"""A Start that fails in its read-back or its Workload makes its backend observe-only at once.

See docs/contract.md, Basis of a proof.
"""

from dispatch_operator.api.enums import BackendGate, Condition, ErrorClass
from dispatch_operator.reconcile.actions import Action, Get, Patch, Result, Slot, get_backend, patch_backend_status
from dispatch_operator.reconcile.backend import status as backend_status
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Refusal, Verdict

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
    if error := observed.failure(Patch, Slot.BACKEND) or observed.failure(Get, Slot.BACKEND):
        return Result(requeue=True, retry_after=error.retry_after) if error.retry_after else None
    if not observed.backend.live:
        return get_backend(observed.start)
    backend, job = observed.backend.obj, observed.train_job.obj
    if backend is None or backend.metadata.is_terminating:
        return None
    held = next((one for one in backend.status.gates if one.name is gate), None)
    created = job.metadata.creation_timestamp if job else None
    if held is None or not held.proven or not created or held.last_probe_time > created:
        # It is not proven anyway, or was proven again since.
        return None
    reason = f"DispatchStart {observed.start.metadata.name} failed: {verdict.message}"
    return patch_backend_status(backend, backend_status.marked_unproven(backend, gate, reason, now))
