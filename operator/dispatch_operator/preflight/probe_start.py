"""A probe as a Start: the DispatchStart that is made up for a backend, and its steps. Pure.

See docs/contract.md, The preflight probe.
"""

import re
from dataclasses import replace

from msgspec import structs

from dispatch_operator.api import times
from dispatch_operator.api.enums import BackendGate, Condition, ConditionStatus, ErrorClass, Gate, Retry
from dispatch_operator.api.group import API_VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend
from dispatch_operator.api.models.backend import NO_GUARD_RAILS
from dispatch_operator.api.models.start import IMAGE, RUNTIME_REF
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.reconcile.actions import Action
from dispatch_operator.reconcile.observation import Observation, Observed, Origin
from dispatch_operator.reconcile.ownership import is_ours
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting
from dispatch_operator.reconcile.steps.check_request import check_request
from dispatch_operator.reconcile.steps.copy_runtime import copy_runtime
from dispatch_operator.reconcile.steps.create_train_job import create_train_job
from dispatch_operator.reconcile.steps.order import WITH_TRAIN_JOB, Step
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.reading import read_dispatch_start

PROBE_IMAGE = "dispatch.invalid/never:probe"

WITHOUT_TRAIN_JOB: tuple[Step, ...] = (check_request, copy_runtime, create_train_job)
"""The first step is left out: whether the backend may take Starts is what the probe is to find out."""


def begin(backend: DispatchBackend, valid: Backend, job: str) -> Observed:
    """Return what a probe of a backend knows at its beginning.

    Args:
        backend: The DispatchBackend, as it was just read.
        valid: What it says.
        job: A job id that nobody has used.
    """
    reference, meta = valid.spec.probe_runtime, backend.metadata
    extensions = {IMAGE: {"ref": PROBE_IMAGE}, RUNTIME_REF: {"kind": reference.kind.value, "name": reference.name}}
    start = read_dispatch_start(
        {
            "apiVersion": API_VERSION,
            "kind": Kind.DISPATCH_BACKEND.value,
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "spec": {
                "backend": meta.name,
                "gate": Gate.CLOSED.value,
                "retry": Retry.ON_CHANGE.value,
                "request": {
                    "job": job,
                    "submission": 1,
                    "attempt": 1,
                    "spec": {"command": ["true"], "nodes": 1, "extensions": extensions},
                },
            },
        }
    )
    # What is allowed is about requests of people: a probe runs nowhere, and its runtime is the admin's.
    spec = valid.spec.model_copy(update={**NO_GUARD_RAILS, "runtimes": (*valid.spec.runtimes, reference)})
    allowed = valid.model_copy(update={"spec": spec})
    return Observed(start=start, backend=Observation(replace(backend, valid=allowed), Origin.READ))


def next_step(observed: Observed, now: float) -> Action | Verdict | None:
    """Return the next action of a probe, why it can't go on, or None when all steps have succeeded."""
    has_train_job = is_ours(observed, observed.train_job.obj)
    for step in WITH_TRAIN_JOB if has_train_job else WITHOUT_TRAIN_JOB:
        if (result := step(observed, now)) is not None:
            return result
    return None


def awaiting_workload(start: DispatchStart, now: float) -> DispatchStart:
    """Return a made-up start whose status says since when the last step waits, as a DispatchStart's own would."""
    since = times.written(now)
    done = Entry(Condition.READ_BACK, ConditionStatus.TRUE, 0, since, "Equal", "")
    waits = Entry(Condition.WORKLOAD_GATED, ConditionStatus.UNKNOWN, 0, since, "Waiting", "")
    return replace(start, status=structs.replace(start.status, conditions=(done, waits)))


def is_verdict(verdict: Verdict) -> bool:
    """Tell whether a step's verdict says something of the backend, and not only that a request failed in passing."""
    if isinstance(verdict, Waiting):
        return False
    return not verdict.transient and verdict.error_class not in {ErrorClass.UNREACHABLE, ErrorClass.OUTCOME_UNKNOWN}


def gate_of(refusal: Refusal) -> BackendGate:
    """Return the gate that a step's failure leaves unproven."""
    return BackendGate.START_GATE if refusal.step is Condition.WORKLOAD_GATED else BackendGate.FIELDS_KEPT


def without_names(message: str, job: str) -> str:
    """Return what a probe says without the names that it gave: the next one gives others, and must say the same.

    A text that changes each time would wake whoever waits for the backend, and be told as an Event, again and again.
    """
    return re.sub(rf"[-\w]*{job}[-\w]*", "<probe>", message, flags=re.IGNORECASE)
