"""A Start that fails in its read-back or its Workload makes its backend observe-only at once.

See docs/contract.md, Basis of a proof.
"""

from dispatch_operator.api import times
from dispatch_operator.api.enums import BackendGate, Condition, ErrorClass
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Action, Get, Patch, Slot, get_backend, patch_backend_status
from dispatch_operator.reconcile.backend import status as backend_status
from dispatch_operator.reconcile.backend.proof import probed_at
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Refusal, Verdict

GATES = {
    Condition.READ_BACK: BackendGate.FIELDS_KEPT,
    Condition.WORKLOAD_GATED: BackendGate.START_GATE,
}


def mark_unproven(observed: Observed, verdict: Verdict, now: float) -> Action | ApiError | None:
    """Return what takes a gate's proof away after a Start has shown that it does not hold.

    It keeps no stop back, but the refusal's last record: who would try again, once nothing but the backend is left?

    Returns:
        What is to be done, how it failed in this reconcile, or None when the gate is marked or needs no mark.
    """
    if not isinstance(verdict, Refusal) or verdict.error_class is not ErrorClass.REJECTED:
        return None
    gate = GATES.get(verdict.step)
    if gate is None:
        return None
    if error := observed.failure(Patch, Slot.BACKEND) or observed.failure(Get, Slot.BACKEND):
        return error
    if not observed.backend.live:
        return get_backend(observed.start)
    backend = observed.backend.obj
    if backend is None or backend.metadata.is_terminating:
        return None
    held = next((one for one in backend.status.gates if one.name is gate), None)
    if held is None or not held.proven or probed_at(held, now) > _made_at(observed, now):
        # It is not proven anyway, or was proven again since.
        return None
    reason = f"DispatchStart {observed.start.metadata.name} failed: {verdict.message}"
    return patch_backend_status(backend, backend_status.marked_unproven(backend, gate, reason, now))


def _made_at(observed: Observed, now: float) -> float:
    """Return when the TrainJob was created, which may be gone: what was probed before says nothing against it."""
    created = observed.start.status.condition(Condition.TRAIN_JOB_CREATED)
    since = times.read(created.last_transition_time) if created else None
    return now if since is None else since
