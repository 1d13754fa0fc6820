"""The start gate: where the user wants it, where it is, and the request that moves it.

See docs/contract.md, The start gate.
"""

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.reconcile.actions import Action
from dispatch_operator.reconcile.gates import kueue, plain
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.ownership import in_kueue_mode
from dispatch_operator.records.trainer import TrainJob

OPENED = (Phase.QUEUED, Phase.RUNNING, *kueue.HOLDS)
"""Phases that tell that the gate has been open before."""


def wants_open(observed: Observed) -> bool:
    """Tell whether the user wants the job to run."""
    return observed.start.gate is Gate.OPEN


def is_open(observed: Observed) -> bool:
    """Tell whether the job may run, as far as dispatch's gate goes."""
    return kueue.is_open(observed) if in_kueue_mode(observed) else plain.is_open(observed)


def next_change(observed: Observed, job: TrainJob) -> Action | None:
    """Return the request that brings the gate to where the user wants it; None when it is there, or can't be made."""
    opening = wants_open(observed)
    if in_kueue_mode(observed):
        return kueue.opening(observed, job) if opening else kueue.holding(observed, job)
    return None if opening == is_open(observed) else plain.change(job, opening=opening)


def was_undone(observed: Observed) -> bool:
    """Tell whether the gate was moved in this reconcile already, and something moved it back at once."""
    return Origin.WRITTEN in {observed.train_job.origin, observed.workload.origin}


def must_be_recorded(observed: Observed) -> bool:
    """Tell whether Holding must stand in the status before the gate is closed: a crash then hides no wish to hold."""
    return is_to_be_held(observed) and observed.start.status.phase not in kueue.HOLDS


def is_to_be_held(observed: Observed) -> bool:
    """Tell whether a job whose gate has been open is to be held; in plain mode the gate can just be closed."""
    return observed.start.gate is Gate.HELD or (in_kueue_mode(observed) and not wants_open(observed))


def why_not_held(observed: Observed) -> str:
    """Say what is missing until a job that is to be held is held."""
    return kueue.why_not_held(observed) if in_kueue_mode(observed) else "the TrainJob is not suspended yet"


def is_kueues(observed: Observed) -> bool:
    """Tell whether Kueue manages a job that was started in plain mode: its gate is then not ours to move."""
    return not in_kueue_mode(observed) and observed.workload.obj is not None


def closed_phase(observed: Observed) -> Phase:
    """Return Held when the gate has been open before, else Gated."""
    phase = observed.start.status.phase
    if in_kueue_mode(observed):
        return Phase.GATED if kueue.is_gated(observed) else Phase.HELD
    held = phase in kueue.HOLDS or (phase in OPENED and observed.start.gate is Gate.HELD)
    return Phase.HELD if held else Phase.GATED
