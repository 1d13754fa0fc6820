"""The verdict on a TrainJob found under our name (contract section 4, "Ours")."""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.reconcile.actions import Action, ReadOther, ReadTrainJob
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import Ownership, is_going, ownership_of_train_job
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient


def check_ownership(observed: Observed, step: Condition, *, never_final: bool = False) -> Action | Verdict | None:
    """Judge the TrainJob of our name by a live read: None when it is ours and stays."""
    if not observed.train_job.live:
        error = observed.failure(ReadTrainJob)
        return transient(step, error, never_final=never_final) if error else ReadTrainJob()
    ownership = ownership_of_train_job(observed)
    name = at(observed.train_job.obj, "metadata", "name")
    match ownership:
        case ReadOther():
            return transient(step, error) if (error := observed.failure(ReadOther)) else ownership
        case Ownership.FOREIGN:
            return Refusal(
                step,
                ErrorClass.REJECTED,
                f"TrainJob {name} exists and is not of this DispatchStart; delete it, or submit under another number",
            )
        case Ownership.LEFTOVER:
            return Waiting(step, "TrainJobLeaving", f"waiting for TrainJob {name} of an ended DispatchStart to go away")
        case Ownership.OURS:
            going = is_going(observed.train_job.obj)
            return Waiting(step, "TrainJobLeaving", f"waiting for TrainJob {name} to be deleted") if going else None
