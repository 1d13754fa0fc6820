"""Step 1: whether the backend takes a Start at all (contract section 4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from dispatch_operator.api.enums import BackendState, ErrorClass
from dispatch_operator.api.models import Backend
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks.problems import Problem

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


def gates_of(backend: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the gates that a stored DispatchBackend's status lists; none before the first probe has ended."""
    status = backend.get("status")
    gates = status.get("gates") if isinstance(status, Mapping) else None
    return tuple(gate for gate in gates if isinstance(gate, Mapping)) if isinstance(gates, list) else ()


def observe_only_problems(name: str, gates: tuple[Mapping[str, Any], ...]) -> Iterator[Problem]:
    """Yield a problem for each gate of a backend that is not proven (contract section 10)."""
    for gate in gates:
        if gate.get("proven") is not True:
            text = f"the DispatchBackend {quote(name)} is observe-only: {gate.get('name')} is not proven"
            reason = gate.get("reason")
            yield Problem(ErrorClass.UNSUPPORTED, STATE, f"{text}: {reason}" if reason else text)
