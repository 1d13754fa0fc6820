"""What the operator renders and finds wrong, over the raw objects of tests."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator import render
from dispatch_operator.api.models import Backend, read_backend
from dispatch_operator.checks.problems import Problem
from dispatch_operator.render.terms import BackendTerms, terms_of
from support.records import runtime_of, start_of

Object = Mapping[str, Any]


def target_name(start: Object) -> str:
    """Return the name of a start's copy and TrainJob; empty when its job or submission is not valid."""
    return start_of(start).target


def problems(start: Object, backend: Backend, runtime: Object | None) -> tuple[Problem, ...]:
    """Return every problem of steps 2 to 4."""
    return render.problems(start_of(start), backend, runtime_of(runtime) if runtime else None)


def render_copy(start: Object, runtime: Object) -> dict[str, Any]:
    """Return the TrainingRuntime to create."""
    return render.render_copy(start_of(start), runtime_of(runtime))


def render_train_job(start: Object, terms: BackendTerms, runtime_spec: Object) -> dict[str, Any]:
    """Return the TrainJob to create."""
    return render.render_train_job(start_of(start), terms, runtime_spec)


__all__ = ["problems", "read_backend", "render_copy", "render_train_job", "target_name", "terms_of"]
