"""Transitions worth an Event: what changed between two statuses of a DispatchStart or a DispatchBackend."""

from collections.abc import Iterator
from dataclasses import dataclass

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.reconcile.conditions import FALSE, TRUE
from dispatch_operator.reconcile.observation import Object, at, condition
from dispatch_operator.reconcile.ownership import phase_of

_BAD = (Phase.REFUSED, Phase.STOPPING, Phase.FAILED, Phase.LOST, Phase.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class Event:
    """One Event on a DispatchStart or a DispatchBackend."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


def events(before: Object, after: Object) -> Iterator[Event]:
    """Yield the Events for what a write of an object's status has changed."""
    return (_of_backend if after.get("kind") == Kind.DISPATCH_BACKEND else _of_start)(before, after)


def _of_backend(before: Object, after: Object) -> Iterator[Event]:
    """Yield an Event when the gates are proven, when they no longer are, and when they are not for another reason."""
    was, ready = condition(before, Condition.READY), condition(after, Condition.READY)
    told = ("status", "reason", "message")
    if ready.get("status") == TRUE and was.get("status") != TRUE:
        yield Event("Normal", str(ready["reason"]), str(ready["message"]))
    if ready.get("status") == FALSE and any(ready.get(key) != was.get(key) for key in told):
        yield Event("Warning", str(ready["reason"]), str(ready["message"]))


def _of_start(before: Object, after: Object) -> Iterator[Event]:
    """Yield an Event for a new phase, and one for a new class of a refusal that keeps the phase."""
    phase, ready = phase_of(after), condition(after, Condition.READY)
    moved = phase is not phase_of(before)
    refused = ready.get("reason") in set(ErrorClass)
    if phase is None or not (
        moved or (refused and ready.get("reason") != condition(before, Condition.READY).get("reason"))
    ):
        return
    reason = str(ready["reason"]) if refused else phase.value
    kind = "Warning" if refused or phase in _BAD else "Normal"
    yield Event(kind, reason, f"{phase.value}: {_message(after)}")


def _message(start: Object) -> str:
    job = condition(start, Condition.SUCCEEDED)
    ready = condition(start, Condition.READY)
    told = job if ready.get("status") == "True" else ready
    return str(told.get("message") or at(start, "status", "phase"))
