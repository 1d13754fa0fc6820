"""Step 1: whether the backend takes a Start at all (contract section 4)."""

from dispatch_operator.models import Backend
from dispatch_operator.problems import Problem
from dispatch_operator.quoting import quote
from dispatch_operator.vocabulary import BackendState, ErrorClass

STATE = "state"


def backend_problem(name: str, backend: Backend | None) -> Problem | None:
    """Return why nothing else of the request is looked at, or None when the backend is open."""
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
