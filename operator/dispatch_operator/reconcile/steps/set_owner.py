"""Step 7: make the TrainJob the copy's owner, so that deleting the one collects the other."""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.kube.errors import ApiError, Outcome
from dispatch_operator.reconcile.actions import Action, OwnCopy, ReadCopy
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import is_going, made_for, owner_reference, owners, uid_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient

STEP = Condition.OWNER_SET


def set_owner(observed: Observed, _now: float) -> Action | Verdict | None:
    """Set the owner reference; only a copy that is absent or another's is a failure."""
    job, copy = observed.train_job.obj, observed.copy.obj
    name = at(job, "metadata", "name")
    if not observed.copy.live:
        error = observed.failure(ReadCopy)
        return transient(STEP, error, never_final=True) if error else ReadCopy()
    if copy is None:
        return Refusal(STEP, ErrorClass.REJECTED, f"the copy, TrainingRuntime {name}, is gone")
    if any(at(owner, "uid") == uid_of(job) for owner in owners(copy)):
        return None
    if owners(copy) or not made_for(copy, observed.start):
        return Refusal(STEP, ErrorClass.REJECTED, f"the copy, TrainingRuntime {name}, is another's")
    if is_going(copy):
        return Waiting(STEP, "CopyLeaving", f"TrainingRuntime {name} is being deleted before it has an owner")
    error = observed.failure(OwnCopy)
    return _after_failure(error) if error else _own(observed)


def _after_failure(error: ApiError) -> Verdict:
    if error.outcome is Outcome.DEFINITE:
        return Refusal(STEP, ErrorClass.REJECTED, f"the copy's owner could not be set: {error}")
    return transient(STEP, error, never_final=True)


def _own(observed: Observed) -> Action:
    owner = owner_reference(observed.train_job.obj)
    return OwnCopy(owner, uid_of(observed.copy.obj), at(observed.copy.obj, "metadata", "resourceVersion") or "")
