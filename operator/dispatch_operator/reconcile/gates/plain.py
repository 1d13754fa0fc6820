"""The start gate in plain mode: `spec.suspend`."""

from dispatch_operator.reconcile.actions import Patch, set_suspend
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.trainer import TrainJob


def is_open(observed: Observed) -> bool:
    """Tell whether the TrainJob may run."""
    job = observed.train_job.obj
    return job is None or job.spec.suspend is not True


def change(job: TrainJob, *, opening: bool) -> Patch:
    """Return the request that opens or closes the gate."""
    return set_suspend(job, suspend=not opening)
