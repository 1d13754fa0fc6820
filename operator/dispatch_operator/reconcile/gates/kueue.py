"""The start gate in Kueue mode: an annotation opens it, the Workload's `spec.active` holds and releases.

What we hold bears our mark, so that a hold of our own is told from what Kueue deactivated itself, whatever the status
says. `spec.suspend` is Kueue's, and is never written here.
"""

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.api.group import START_GATE
from dispatch_operator.reconcile.actions import (
    Action,
    find_workload,
    get_workload,
    hold_workload,
    release_workload,
    set_gates,
)
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainJob

HOLDS = (Phase.HOLDING, Phase.HELD)
"""Phases in which the wish to hold is recorded."""


def is_gated(observed: Observed) -> bool:
    """Tell whether dispatch's gate is still on the TrainJob: it was never open."""
    job = observed.train_job.obj
    return job is not None and START_GATE in job.metadata.gates


def is_open(observed: Observed) -> bool:
    """Tell whether dispatch's gate is gone and the job is not held."""
    if is_gated(observed):
        return False
    if observed.start.gate is Gate.OPEN:
        return _held_for(observed.workload.obj) is None
    return bool(why_not_held(observed))


def why_not_held(observed: Observed) -> str:
    """Say what is missing until the cluster holds a job that is to be held; "" when it does."""
    job, workload = observed.train_job.obj, observed.workload.obj
    if workload is None:
        return "Kueue has no Workload for the job"
    if workload.metadata.is_terminating:
        return f"Workload {workload.metadata.name} is being deleted; Kueue makes another"
    if workload.spec.active or not _is_sure(observed):
        return f"Workload {workload.metadata.name} is still active"
    if job is not None and job.spec.suspend is not True:
        return "Kueue has not suspended the TrainJob yet"
    return ""


def _is_sure(observed: Observed) -> bool:
    """Held is told first by what the API server itself says: what a watch told of may be another Workload by now."""
    return observed.workload.live or observed.start.status.phase is Phase.HELD


def opening(observed: Observed, job: TrainJob) -> Action | None:
    """Return the request that opens the gate, or that releases what we hold."""
    gates, workload = job.metadata.gates, observed.workload
    if START_GATE in gates:
        return set_gates(job, tuple(name for name in gates if name != START_GATE))
    if not workload.live and observed.start.status.phase in HOLDS:
        # A watch may not have told yet of our own hold.
        return find_workload(job)
    held_for = _held_for(workload.obj)
    if workload.obj is None or held_for is None or held_for >= observed.start.metadata.generation:
        # A newer wish than the one that is looked at may be to hold it.
        return None
    return release_workload(workload.obj)


def holding(observed: Observed, job: TrainJob) -> Action | None:
    """Return the request that holds the job, or that finds its Workload; None while there is none to hold."""
    if START_GATE in job.metadata.gates:
        return None
    workload = observed.workload.obj
    if workload is None or workload.metadata.is_terminating:
        return None if observed.workload.live else find_workload(job)
    if workload.spec.active:
        return hold_workload(workload, observed.start.metadata.generation)
    # What is inactive already is held, whoever made it so, and is not touched.
    return None if _is_sure(observed) else get_workload(workload)


def _held_for(workload: Workload | None) -> int | None:
    """Return the generation of the DispatchStart for which we hold a Workload; None when we do not."""
    mark = workload.metadata.annotations.held if workload else None
    return int(mark) if mark and mark.isascii() and mark.isdecimal() else None
