"""Steps 1 to 4 of a Start as pure functions of what the API server returned (contract section 4)."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend, StartReading, read_backend, read_start
from dispatch_operator.api.names import object_name
from dispatch_operator.checks.backend import backend_problem
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.request import is_job, is_submission
from dispatch_operator.checks.start import RuntimeReference, reference, start_problems
from dispatch_operator.render.identity import Identity, Owner
from dispatch_operator.render.runtime_copy import runtime_copy
from dispatch_operator.render.start_options import StartOptions, start_options
from dispatch_operator.render.terms import BackendTerms, read_terms, terms_of
from dispatch_operator.render.train_job import train_job

__all__ = [
    "BackendTerms",
    "RuntimeReference",
    "StartOptions",
    "backend_problem",
    "problems",
    "read_backend",
    "read_terms",
    "render_copy",
    "render_train_job",
    "runtime_reference",
    "start_options",
    "target_name",
    "terms_of",
]


def target_name(start: Mapping[str, Any]) -> str | None:
    """Return the name of the copy and the TrainJob, or None when the job or the submission is not valid."""
    reading = read_start(start)
    request = reading.request
    if reading.is_faulty("request", "job") or reading.is_faulty("request", "submission"):
        return None
    return object_name(request.job, request.submission) if _is_named(reading) else None


def runtime_reference(start: Mapping[str, Any], backend: Backend) -> RuntimeReference | None:
    """Return the runtime to read, or None when the request names none that this backend lets it read."""
    wanted = reference(read_start(start))
    return wanted if wanted is not None and wanted.is_among(backend.spec.runtimes) else None


def problems(start: Mapping[str, Any], backend: Backend, runtime: Mapping[str, Any] | None) -> tuple[Problem, ...]:
    """Return every problem of steps 2 to 4; a ``runtime`` of None does not exist or may not be read."""
    return tuple(start_problems(read_start(start), backend, runtime))


def render_copy(start: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return the TrainingRuntime to create, for a start without problems."""
    return runtime_copy(_identity(start, read_start(start)), runtime)


def render_train_job(start: Mapping[str, Any], terms: BackendTerms, runtime_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the TrainJob to create, for a start without problems."""
    reading = read_start(start)
    image = reading.request.spec.extensions.image
    return train_job(_identity(start, reading), image.ref if image else "", terms, runtime_spec)


def _is_named(reading: StartReading) -> bool:
    return is_job(reading.request.job) and is_submission(reading.request.submission)


def _identity(start: Mapping[str, Any], reading: StartReading) -> Identity:
    metadata = start["metadata"]
    # A probe is a Start whose DispatchStart is made up for its DispatchBackend.
    kind = Kind.DISPATCH_BACKEND if start.get("kind") == Kind.DISPATCH_BACKEND else Kind.DISPATCH_START
    return Identity(
        owner=Owner(kind, metadata["name"], metadata.get("uid")),
        namespace=metadata.get("namespace"),
        request=reading.request,
    )
