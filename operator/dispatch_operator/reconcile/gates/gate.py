"""The start gate: where the user wants it, where it is, and the request that moves it (contract section 12)."""

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.reconcile.actions import Act
from dispatch_operator.reconcile.gates import kueue, plain
from dispatch_operator.reconcile.observation import Seen, Source
from dispatch_operator.reconcile.ownership import in_kueue_mode, phase_of
from dispatch_operator.render import start_frame

OPENED = (Phase.QUEUED, Phase.RUNNING, Phase.HELD)
"""Phases that tell that the gate has been open before."""


def wants_open(seen: Seen) -> bool:
    """Tell whether the user wants the job to run."""
    return start_frame(seen.start).gate is Gate.OPEN


def is_open(seen: Seen) -> bool:
    """Tell whether the job may run, as far as dispatch's gate goes."""
    return kueue.is_open(seen) if in_kueue_mode(seen) else plain.is_open(seen)


def next_change(seen: Seen) -> Act | None:
    """Return the request that brings the gate to where the user wants it; None when it is there."""
    if wants_open(seen) == is_open(seen):
        return None
    change = kueue.change if in_kueue_mode(seen) else plain.change
    return change(seen, opening=wants_open(seen))


def was_undone(seen: Seen) -> bool:
    """Tell whether the gate was moved in this reconcile already, and something moved it back at once."""
    return Source.WRITE in {seen.train_job.source, seen.workload.source}


def must_be_recorded(seen: Seen) -> bool:
    """Tell whether Held must stand in the status before the gate is closed.

    A Workload is activated again only after our own recorded Held: what Kueue deactivated is not fought over.
    """
    return in_kueue_mode(seen) and not wants_open(seen) and phase_of(seen.start) is not Phase.HELD


def is_kueues(seen: Seen) -> bool:
    """Tell whether Kueue manages a job that was started in plain mode: its gate is then not ours to move."""
    return not in_kueue_mode(seen) and seen.workload.obj is not None


def closed_phase(seen: Seen) -> Phase:
    """Return Held when the gate has been open before, else Gated.

    Held stays until the gate is open again: in Kueue mode it is what allows the release (section 12).
    """
    phase, gate = phase_of(seen.start), start_frame(seen.start).gate
    return Phase.HELD if phase is Phase.HELD or (phase in OPENED and gate is Gate.HELD) else Phase.GATED
