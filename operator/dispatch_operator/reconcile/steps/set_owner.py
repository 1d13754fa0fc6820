"""Step 7: make the TrainJob the copy's owner, so that deleting the one collects the other.

See docs/contract.md, Set the owner.
"""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.reconcile.actions import Action, Patch, Slot, get_copy, own_copy
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import is_ours, owned_by, owner_reference
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, read_first, transient

STEP = Condition.OWNER_SET


def set_owner(observed: Observed, _now: float) -> Action | Verdict | None:
    """Set the owner reference; only a copy that is absent or another's is a failure."""
    job, copy = observed.train_job.obj, observed.copy.obj
    if unread := read_first(observed, get_copy(observed.start), STEP, never_final=True):
        return unread
    name = observed.start.target
    if copy is None or job is None:
        return Refusal(STEP, ErrorClass.REJECTED, f"the copy, TrainingRuntime {name}, is gone")
    if owned_by(copy, job):
        return None
    if copy.metadata.owner_references or not is_ours(observed, copy):
        return Refusal(STEP, ErrorClass.REJECTED, f"the copy, TrainingRuntime {name}, is another's")
    if copy.metadata.is_terminating:
        return Waiting(STEP, "CopyLeaving", f"TrainingRuntime {name} is being deleted before it has an owner")
    error = observed.failure(Patch, Slot.COPY)
    return _after_failure(error) if error else own_copy(copy, owner_reference(job))


def _after_failure(error: ApiError) -> Verdict:
    if error.effect is Effect.DEFINITE:
        return Refusal(STEP, ErrorClass.REJECTED, f"the copy's owner could not be set: {error}")
    return transient(STEP, error, never_final=True)
