"""Steps 2 to 4 together: every problem of a request, of its runtime, and of the one on the other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.api.models import Backend, StartReading
from dispatch_operator.api.models.backend import BackendRuntime
from dispatch_operator.api.models.start import RUNTIME_REF
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks.compatibility import fit_problems
from dispatch_operator.checks.guard_rails import guard_rail_problems
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.request import request_problems
from dispatch_operator.checks.runtime import runtime_problems


@dataclass(frozen=True, slots=True)
class RuntimeReference:
    """The runtime that a request names."""

    kind: str
    """Perhaps not one of RuntimeKind."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {quote(self.name)}"

    def is_among(self, runtimes: Iterable[BackendRuntime]) -> bool:
        """Whether a backend's configured runtimes include it."""
        return any((runtime.kind, runtime.name) == (self.kind, self.name) for runtime in runtimes)


def reference(reading: StartReading) -> RuntimeReference | None:
    """Return the runtime that a request names, or None when that can't be read."""
    extension = reading.request.spec.extensions.runtime_ref
    if extension is None or not extension.name:
        return None
    if any(reading.is_faulty("request", "spec", "extensions", RUNTIME_REF, key) for key in ("kind", "name")):
        return None
    return RuntimeReference(extension.kind, extension.name)


def start_problems(reading: StartReading, backend: Backend, runtime: Mapping[str, Any] | None) -> Iterator[Problem]:
    """Yield every problem of steps 2 to 4; a ``runtime`` of None does not exist or may not be read."""
    yield from request_problems(reading)
    yield from guard_rail_problems(reading, backend)
    wanted = reference(reading)
    if wanted is None:
        yield from _kind_problem(reading)
    elif (text := _why_not_read(wanted, backend)) is not None:
        yield Problem(ErrorClass.UNSUPPORTED, RUNTIME_REF, text)
    elif runtime is None:
        yield Problem(ErrorClass.UNSUPPORTED, RUNTIME_REF, f"{wanted} does not exist")
    else:
        yield from runtime_problems(runtime, backend.spec.gpu_resource)
        yield from fit_problems(reading, runtime, backend.spec.gpu_resource)


def _kind_problem(reading: StartReading) -> Iterator[Problem]:
    """Say that a kind is not supported, also where a missing name leaves nothing to read."""
    extension = reading.request.spec.extensions.runtime_ref
    faulty = reading.is_faulty("request", "spec", "extensions", RUNTIME_REF, "kind")
    if extension is not None and not faulty and (text := _unsupported(extension.kind)) is not None:
        yield Problem(ErrorClass.UNSUPPORTED, RUNTIME_REF, text)


def _unsupported(kind: str) -> str | None:
    return (
        None if kind in set(RuntimeKind) else f"kind {quote(kind)} is not supported, only {' and '.join(RuntimeKind)}"
    )


def _why_not_read(wanted: RuntimeReference, backend: Backend) -> str | None:
    if (text := _unsupported(wanted.kind)) is not None:
        return text
    if not wanted.is_among(backend.spec.runtimes):
        return f"{wanted} is not one of the backend's runtimes"
    return None
