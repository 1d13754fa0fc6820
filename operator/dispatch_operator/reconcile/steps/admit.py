"""Step 1: does the backend let a Start through? (docs/contract.md, Admit)."""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.checks.backend import backend_problem, observe_only_problems
from dispatch_operator.checks.problems import Problem
from dispatch_operator.reconcile.actions import Action, Get, Slot, get_backend
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient

STEP = Condition.REQUEST_VALID


def admit(observed: Observed, _now: float) -> Action | Verdict | None:
    """Refuse what a missing, closed, read-only or observe-only backend does not take, by a live read."""
    backend, name = observed.backend.obj, observed.start.backend
    problem = _problem(observed)
    gates = backend.status.gates if backend else ()
    if problem is None and not gates:
        return _not_probed(observed)
    problems = (problem,) if problem else tuple(observe_only_problems(name, gates))
    if not problems:
        return None
    if error := observed.failure(Get, Slot.BACKEND):
        return transient(STEP, error)
    # What has no name can't be read: the request would be one for a list.
    known = observed.backend.live or not name
    return Refusal.of(STEP, problems) if known else get_backend(observed.start)


def _not_probed(observed: Observed) -> Waiting:
    """There is no verdict on the backend yet; the message says how far its probe is."""
    backend = observed.backend.obj
    ready = backend.status.condition(Condition.READY) if backend else None
    progress = (ready.message if ready else "") or "it has not been probed yet"
    return Waiting(STEP, "WaitingForProbe", f"DispatchBackend {observed.start.backend}: {progress}")


def _problem(observed: Observed) -> Problem | None:
    backend, name = observed.backend.obj, observed.start.backend
    if backend is not None and backend.valid is None:
        return Problem(ErrorClass.UNREACHABLE, "state", f"DispatchBackend {name} can't be used: {backend.fault}")
    return backend_problem(name, backend.valid if backend else None)
