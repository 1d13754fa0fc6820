"""Transitions worth an Event: what changed between two statuses of a DispatchStart or a DispatchBackend."""

from collections.abc import Iterator
from dataclasses import dataclass

from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass, Phase
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart

TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE
_BAD = (Phase.REFUSED, Phase.FAILED, Phase.LOST, Phase.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class Event:
    """One Event on a DispatchStart or a DispatchBackend."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


def of_expiry(train_job: str, reason: str, failure: str = "") -> Event:
    """Return the Event of the delete of an ended job's TrainJob: no status tells of it.

    Args:
        train_job: Its name.
        reason: Why it is deleted.
        failure: How that failed, if it did.
    """
    if failure:
        told = f"TrainJob {train_job} is to be deleted, for {reason}; it is tried again: {failure}"
        return Event("Warning", "TrainJobNotDeleted", told)
    return Event("Normal", "TrainJobDeleted", f"TrainJob {train_job} was deleted, for {reason}; this record stays")


Owned = DispatchStart | DispatchBackend
"""An object whose status is the operator's."""


def events(before: Owned, after: Owned) -> Iterator[Event]:
    """Yield the Events for what a write of an object's status has changed."""
    match before, after:
        case DispatchBackend(), DispatchBackend():
            yield from _of_backend(before, after)
        case DispatchStart(), DispatchStart():
            yield from _of_start(before.status, after.status)


def _of_backend(before: DispatchBackend, after: DispatchBackend) -> Iterator[Event]:
    """Yield an Event when the gates are proven, when they no longer are, and when they are not for another reason."""
    was, ready = before.status.condition(Condition.READY), after.status.condition(Condition.READY)
    if ready is None:
        return
    told = (ready.status, ready.reason, ready.message)
    if ready.status is TRUE and (was is None or was.status is not TRUE):
        yield Event("Normal", ready.reason, ready.message)
    if ready.status is FALSE and (was is None or told != (was.status, was.reason, was.message)):
        yield Event("Warning", ready.reason, ready.message)


def _of_start(before: StartStatus, after: StartStatus) -> Iterator[Event]:
    """Yield an Event for a new phase, and one for a new class of a refusal that keeps the phase."""
    was, ready = before.condition(Condition.READY), after.condition(Condition.READY)
    if after.phase is None or ready is None:
        return
    refused = ready.reason in set(ErrorClass)
    if after.phase is before.phase and not (refused and (was is None or ready.reason != was.reason)):
        return
    reason = ready.reason if refused else after.phase.value
    kind = "Warning" if refused or after.phase in _BAD else "Normal"
    job = after.condition(Condition.SUCCEEDED)
    told = job if job and ready.status is TRUE else ready
    yield Event(kind, reason, f"{after.phase.value}: {told.message or after.phase.value}")
