"""Step 1: does the backend let a Start through?"""

from dispatch_operator import duration
from dispatch_operator.acts import Act, ReadBackend
from dispatch_operator.models import Backend, InvalidObject
from dispatch_operator.problems import Problem
from dispatch_operator.render import backend_problem, read_backend, start_frame
from dispatch_operator.seen import Seen
from dispatch_operator.verdicts import Refusal, Verdict, transient
from dispatch_operator.vocabulary import Condition, ErrorClass

DEFAULT_CALL_BOUND = 30.0
"""Seconds; CallBound where no backend says another."""


def admit(seen: Seen, _now: float) -> Act | Verdict | None:
    """Refuse what a missing, closed or read-only backend does not take; a cached refusal is read live first."""
    problem = _problem(seen)
    if problem is None:
        return None
    if error := seen.failure(ReadBackend):
        return transient(Condition.REQUEST_VALID, error)
    if not seen.backend.live:
        return ReadBackend(start_frame(seen.start).backend)
    return Refusal.of(Condition.REQUEST_VALID, (problem,))


def usable(seen: Seen) -> Backend | None:
    """Return the backend, or None when it is missing or no valid DispatchBackend."""
    try:
        return read_backend(seen.backend.obj) if seen.backend.obj else None
    except InvalidObject:
        return None


def call_bound(seen: Seen) -> float:
    """Return the bound of each API call in seconds: `timeouts.call` (contract section 2)."""
    backend = usable(seen)
    return duration.seconds(backend.spec.timeouts.call) if backend else DEFAULT_CALL_BOUND


def _problem(seen: Seen) -> Problem | None:
    name = start_frame(seen.start).backend
    try:
        return backend_problem(name, read_backend(seen.backend.obj) if seen.backend.obj else None)
    except InvalidObject as error:
        return Problem(ErrorClass.UNREACHABLE, "state", f"DispatchBackend {name} can't be used: {error}")
