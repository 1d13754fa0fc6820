"""The start gate in plain mode: `spec.suspend`."""

from dispatch_operator.reconcile.actions import SetSuspend
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import uid_of


def is_open(observed: Observed) -> bool:
    """Tell whether the TrainJob may run."""
    return at(observed.train_job.obj, "spec", "suspend") is not True


def change(observed: Observed, *, opening: bool) -> SetSuspend:
    """Return the request that opens or closes the gate."""
    return SetSuspend(suspend=not opening, uid=uid_of(observed.train_job.obj))
