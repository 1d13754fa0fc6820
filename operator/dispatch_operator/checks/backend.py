"""Step 1: whether the backend takes a Start at all (docs/contract.md, Admit)."""

from collections.abc import Iterable, Iterator

from dispatch_operator.api.enums import BackendState, ErrorClass
from dispatch_operator.api.models import Backend
from dispatch_operator.api.models.start import BACKEND
from dispatch_operator.api.models.status import GateState
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks.problems import Problem

STATE = "state"


def backend_problem(name: str, backend: Backend | None) -> Problem | None:
    """Return why nothing else of the request is looked at, or None when the backend is open.

    An empty name, which start options have for one that is wrong, is told as that: there is no backend to look for.
    """
    if not name:
        return Problem(ErrorClass.INVALID, "backend", BACKEND)
    if backend is None:
        return Problem(
            ErrorClass.UNREACHABLE,
            STATE,
            f"there is no DispatchBackend {quote(name)} in the DispatchStart's namespace",
        )
    if backend.spec.state is BackendState.OPEN:
        return None
    if backend.spec.state is BackendState.READ_ONLY:
        return Problem(ErrorClass.READ_ONLY, STATE, f"the DispatchBackend {quote(name)} is ReadOnly")
    return Problem(ErrorClass.UNREACHABLE, STATE, f"the DispatchBackend {quote(name)} is Closed")


def observe_only_problems(name: str, gates: Iterable[GateState]) -> Iterator[Problem]:
    """Yield a problem for each gate of a backend that is not proven."""
    for gate in gates:
        if not gate.proven:
            text = f"the DispatchBackend {quote(name)} is observe-only: {gate.name} is not proven"
            yield Problem(ErrorClass.UNSUPPORTED, STATE, f"{text}: {gate.reason}" if gate.reason else text)
