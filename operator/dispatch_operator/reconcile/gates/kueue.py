"""The start gate in Kueue mode: an annotation opens it, the Workload's `spec.active` holds and releases.

`spec.suspend` is Kueue's, and is never written here.
"""

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile.actions import Action, FindWorkload, SetActive, SetGates
from dispatch_operator.reconcile.observation import Observed, at
from dispatch_operator.reconcile.ownership import gates, phase_of, uid_of
from dispatch_operator.render import start_options


def is_open(observed: Observed) -> bool:
    """Tell whether dispatch's gate is gone and the job is not held by us."""
    if START_GATE in gates(observed.train_job.obj):
        return False
    if phase_of(observed.start) is not Phase.HELD:
        return True
    # What we hold is released only by a live read: a watch may not have told yet of our own hold.
    unknown = start_options(observed.start).gate is Gate.OPEN and not observed.workload.live
    return not unknown and not is_deactivated(observed)


def is_deactivated(observed: Observed) -> bool:
    """Tell whether the Workload is inactive, whoever made it so."""
    return at(observed.workload.obj, "spec", "active") is False


def change(observed: Observed, *, opening: bool) -> Action | None:
    """Return the request that opens, holds or releases, or finds the Workload; None while there is none to hold."""
    job, workload = observed.train_job.obj, observed.workload.obj
    if opening and START_GATE in gates(job):
        left = tuple(name for name in gates(job) if name != START_GATE)
        return SetGates(left, uid_of(job), at(job, "metadata", "resourceVersion") or "")
    if not observed.workload.live and (opening or workload is None):
        return FindWorkload(uid_of(job))
    if workload is None:
        return None
    return SetActive(opening, at(workload, "metadata", "name"), uid_of(workload))
