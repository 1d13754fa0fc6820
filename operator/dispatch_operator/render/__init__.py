"""What a DispatchStart becomes, and everything that is wrong with it: pure functions of records.

See docs/contract.md, Request fields and Steps of a Start.
"""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.start import RuntimeReference, reference, start_problems
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.trainer import TrainingRuntime
from dispatch_operator.render.identity import Identity, Owner
from dispatch_operator.render.runtime_copy import runtime_copy
from dispatch_operator.render.terms import BackendTerms
from dispatch_operator.render.train_job import train_job


def runtime_reference(start: DispatchStart, backend: Backend) -> RuntimeReference | None:
    """Return the runtime to read, or None when the request names none that this backend lets it read."""
    wanted = reference(start.reading)
    return wanted if wanted is not None and wanted.is_among(backend.spec.runtimes) else None


def problems(start: DispatchStart, backend: Backend, runtime: TrainingRuntime | None) -> tuple[Problem, ...]:
    """Return every problem of steps 2 to 4; a ``runtime`` of None does not exist or may not be read."""
    return tuple(start_problems(start.reading, backend, {"spec": runtime.spec} if runtime else None))


def render_copy(start: DispatchStart, runtime: TrainingRuntime) -> dict[str, Any]:
    """Return the TrainingRuntime to create, for a start without problems."""
    return runtime_copy(_identity(start), runtime)


def render_train_job(start: DispatchStart, terms: BackendTerms, runtime_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the TrainJob to create, for a start without problems."""
    image = start.request.spec.extensions.image
    return train_job(_identity(start), image.ref if image else "", terms, runtime_spec)


def _identity(start: DispatchStart) -> Identity:
    # A probe is a Start whose DispatchStart is made up for its DispatchBackend.
    kind = Kind.DISPATCH_BACKEND if start.is_probe else Kind.DISPATCH_START
    meta = start.metadata
    return Identity(
        owner=Owner(kind, meta.name, meta.uid or None), namespace=meta.namespace or None, request=start.request
    )
