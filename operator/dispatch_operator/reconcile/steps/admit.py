"""Step 1: does the backend let a Start through?"""

from dispatch_operator.api import duration
from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.group import ANNOTATION_BACKEND
from dispatch_operator.api.models import Backend, InvalidObject
from dispatch_operator.checks.backend import gates_of, observe_only_problems
from dispatch_operator.checks.problems import Problem
from dispatch_operator.reconcile.actions import Action, ReadBackend
from dispatch_operator.reconcile.observation import Observed, at, condition
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.render import BackendTerms, backend_problem, read_backend, read_terms, start_options, terms_of

DEFAULT_CALL_BOUND = 30.0
"""Seconds; CallBound where no backend says another."""


def admit(observed: Observed, _now: float) -> Action | Verdict | None:
    """Refuse what a missing, closed, read-only or observe-only backend does not take, by a live read."""
    problem = _problem(observed)
    gates = gates_of(observed.backend.obj or {})
    if problem is None and not gates:
        return _not_probed(observed)
    name = start_options(observed.start).backend
    problems = (problem,) if problem else tuple(observe_only_problems(name, gates))
    if not problems:
        return None
    if error := observed.failure(ReadBackend):
        return transient(Condition.REQUEST_VALID, error)
    if not observed.backend.live:
        return ReadBackend(name)
    return Refusal.of(Condition.REQUEST_VALID, problems)


def _not_probed(observed: Observed) -> Waiting:
    """There is no verdict on the backend yet; the message says how far its probe is."""
    told = condition(observed.backend.obj, Condition.READY).get("message")
    message = f"DispatchBackend {start_options(observed.start).backend} has not been probed yet"
    return Waiting(Condition.REQUEST_VALID, "WaitingForProbe", f"{message}: {told}" if told else message)


def usable(observed: Observed) -> Backend | None:
    """Return the backend, or None when it is missing or no valid DispatchBackend."""
    try:
        return read_backend(observed.backend.obj) if observed.backend.obj else None
    except InvalidObject:
        return None


def bears_terms(observed: Observed) -> bool:
    """Tell whether the TrainJob itself says what was taken from its backend."""
    return read_terms(at(observed.train_job.obj, "metadata", "annotations", ANNOTATION_BACKEND)) is not None


def wrote_terms(observed: Observed) -> BackendTerms | None:
    """Return what the TrainJob was written with; by today's backend where it does not say, None when that is gone."""
    backend = usable(observed)
    borne = read_terms(at(observed.train_job.obj, "metadata", "annotations", ANNOTATION_BACKEND))
    return borne or (terms_of(backend) if backend else None)


def call_bound(observed: Observed) -> float:
    """Return the bound of each API call in seconds: `timeouts.call` (contract section 2)."""
    backend = usable(observed)
    return duration.seconds(backend.spec.timeouts.call) if backend else DEFAULT_CALL_BOUND


def _problem(observed: Observed) -> Problem | None:
    name = start_options(observed.start).backend
    try:
        return backend_problem(name, read_backend(observed.backend.obj) if observed.backend.obj else None)
    except InvalidObject as error:
        return Problem(ErrorClass.UNREACHABLE, "state", f"DispatchBackend {name} can't be used: {error}")
