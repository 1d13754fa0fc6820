"""A TrainJob that was started, and of which status has lost that: it is recorded anew, and never stopped for it.

See docs/contract.md, Lost status.
"""

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile import job_status
from dispatch_operator.reconcile.actions import Action, Get, PatchStatus, Result, get_train_job
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import was_opened
from dispatch_operator.reconcile.step_result import Refusal, Waiting
from dispatch_operator.reconcile.steps.await_workload import await_workload
from dispatch_operator.reconcile.steps.order import Step
from dispatch_operator.reconcile.steps.read_back import read_back
from dispatch_operator.reconcile.steps.set_owner import set_owner

OF_OPENED: tuple[Step, ...] = (set_owner, read_back)
"""What is seen of a TrainJob that has been open: its Workload has no gate any more."""
OF_CLOSED: tuple[Step, ...] = (*OF_OPENED, await_workload)


def take_up(observed: Observed, now: float) -> Action | Result | Refusal:
    """Return what records a TrainJob anew as started, or the refusal of one that was never opened.

    Nothing is recorded before all is known: a status without a phase is all that tells that it was lost.
    """
    match observed.due(get_train_job(observed.start)):
        case ApiError() as error:
            return Result(requeue=True, retry_after=error.retry_after)
        case Get() as due:
            return due
    opened, told = was_opened(observed), []
    for step in OF_OPENED if opened else OF_CLOSED:
        match step(observed, now):
            case Action() as action:
                return action
            case Refusal(error_class=ErrorClass.REJECTED) as refusal if opened:
                # What a later step would see rests on this one.
                told.append(refusal)
                break
            case Refusal(error_class=ErrorClass.REJECTED) as refusal:
                return refusal
            case Refusal(retry_after=retry_after):
                return Result(requeue=True, retry_after=retry_after)
            case Waiting(requeue_after=requeue_after) if not opened:
                return Result(requeue=requeue_after is None, requeue_after=requeue_after)
    return PatchStatus(job_status.taken_up(observed, told, now).status(observed, now))
