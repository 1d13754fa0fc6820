"""A quota that the operator's own probe fills refuses nothing (docs/contract.md, The probe is a guest)."""

from dispatch_operator.api.enums import Condition
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Action, List, Slot, list_probes
from dispatch_operator.reconcile.backend.proof import last_probed
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Verdict, Waiting, transient

SETTLES = 30.0
"""Seconds after a probe within which the API server's count of a quota has certainly seen that its objects are gone."""
AGAIN = 2.0
"""Seconds after which a create is tried again that only a probe was in the way of."""


def unless_final(observed: Observed, step: Condition, error: ApiError, now: float) -> Action | Verdict | None:
    """Say what comes of a create that a quota denied; None when it is denied for good.

    A full quota says nothing about a backend, so that it is no verdict of a probe; and a Start waits for a probe that
    is in its way.
    """
    if not error.exceeds_quota:
        return None
    if observed.start.is_probe:
        return transient(step, error)
    if failed := observed.failure(List, Slot.PROBES):
        return transient(step, failed, never_final=True)
    if observed.probes is None:
        return list_probes()
    if not observed.probes and not _probed_lately(observed, now):
        return None
    message = f"{error}; a probe of the operator counts in this quota, or did a moment ago: the create is tried again"
    return Waiting(step, "WaitingForProbe", message, requeue_after=AGAIN)


def _probed_lately(observed: Observed, now: float) -> bool:
    backend = observed.backend.obj
    return backend is not None and now - last_probed(backend, now) < SETTLES
