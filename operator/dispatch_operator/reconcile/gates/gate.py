"""The start gate: where the user wants it, where it is, and the request that moves it.

See docs/contract.md, The start gate.
"""

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.reconcile.actions import Action
from dispatch_operator.reconcile.gates import kueue, plain
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.ownership import in_kueue_mode
from dispatch_operator.records.trainer import TrainJob

OPENED = (Phase.QUEUED, Phase.RUNNING, Phase.HELD)
"""Phases that tell that the gate has been open before."""


def wants_open(observed: Observed) -> bool:
    """Tell whether the user wants the job to run."""
    return observed.start.gate is Gate.OPEN


def is_open(observed: Observed) -> bool:
    """Tell whether the job may run, as far as dispatch's gate goes."""
    return kueue.is_open(observed) if in_kueue_mode(observed) else plain.is_open(observed)


def next_change(observed: Observed, job: TrainJob) -> Action | None:
    """Return the request that brings the gate to where the user wants it; None when it is there."""
    opening = wants_open(observed)
    if opening == is_open(observed):
        return None
    return (
        kueue.change(observed, job, opening=opening) if in_kueue_mode(observed) else plain.change(job, opening=opening)
    )


def was_undone(observed: Observed) -> bool:
    """Tell whether the gate was moved in this reconcile already, and something moved it back at once."""
    return Origin.WRITTEN in {observed.train_job.origin, observed.workload.origin}


def must_be_recorded(observed: Observed) -> bool:
    """Tell whether Held must stand in the status before the gate is closed.

    A Workload is activated again only after our own recorded Held: what Kueue deactivated is not fought over.
    """
    is_held = observed.start.status.phase is Phase.HELD
    return in_kueue_mode(observed) and not wants_open(observed) and not is_held


def is_kueues(observed: Observed) -> bool:
    """Tell whether Kueue manages a job that was started in plain mode: its gate is then not ours to move."""
    return not in_kueue_mode(observed) and observed.workload.obj is not None


def closed_phase(observed: Observed) -> Phase:
    """Return Held when the gate has been open before, else Gated.

    Held stays until the gate is open again: in Kueue mode it is what allows the release.
    """
    phase = observed.start.status.phase
    held = phase is Phase.HELD or (phase in OPENED and observed.start.gate is Gate.HELD)
    return Phase.HELD if held else Phase.GATED
