"""The start gate in Kueue mode: an annotation opens it, the Workload's `spec.active` holds and releases.

`spec.suspend` is Kueue's, and is never written here.
"""

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile.actions import Action, find_workload, set_active, set_gates
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.trainer import TrainJob


def is_open(observed: Observed) -> bool:
    """Tell whether dispatch's gate is gone and the job is not held by us."""
    job = observed.train_job.obj
    if job is not None and START_GATE in job.metadata.gates:
        return False
    if observed.start.status.phase is not Phase.HELD:
        return True
    # What we hold is released only by a live read: a watch may not have told yet of our own hold.
    unknown = observed.start.gate is Gate.OPEN and not observed.workload.live
    return not unknown and not is_deactivated(observed)


def is_deactivated(observed: Observed) -> bool:
    """Tell whether the Workload is inactive, whoever made it so."""
    return observed.workload.obj is not None and not observed.workload.obj.spec.active


def change(observed: Observed, job: TrainJob, *, opening: bool) -> Action | None:
    """Return the request that opens, holds or releases, or finds the Workload; None while there is none to hold."""
    gates, workload = job.metadata.gates, observed.workload.obj
    if opening and START_GATE in gates:
        return set_gates(job, tuple(name for name in gates if name != START_GATE))
    if not observed.workload.live and (opening or workload is None):
        return find_workload(job)
    return set_active(workload, active=opening) if workload else None
