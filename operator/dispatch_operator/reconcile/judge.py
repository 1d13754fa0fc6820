"""The verdict on a TrainJob found under our name (contract section 4, "Ours")."""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.reconcile.actions import Action, ReadOther, ReadTrainJob
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import Claim, claim_on_train_job, is_going
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient


def judge_train_job(observed: Observed, step: Condition, *, never_final: bool = False) -> Action | Verdict | None:
    """Judge the TrainJob of our name by a live read: None when it is ours and stays."""
    if not observed.train_job.live:
        error = observed.failure(ReadTrainJob)
        return transient(step, error, never_final=never_final) if error else ReadTrainJob()
    claim = claim_on_train_job(observed)
    name = at(observed.train_job.obj, "metadata", "name")
    match claim:
        case ReadOther():
            return transient(step, error) if (error := observed.failure(ReadOther)) else claim
        case Claim.FOREIGN:
            return Refusal(
                step,
                ErrorClass.REJECTED,
                f"TrainJob {name} exists and is not of this DispatchStart; delete it, or submit under another number",
            )
        case Claim.LEFTOVER:
            return Waiting(step, "TrainJobLeaving", f"waiting for TrainJob {name} of an ended DispatchStart to go away")
        case Claim.OURS:
            going = is_going(observed.train_job.obj)
            return Waiting(step, "TrainJobLeaving", f"waiting for TrainJob {name} to be deleted") if going else None
