"""A probe as a Start: the DispatchStart that is made up for a backend, and its steps (contract section 10). Pure."""

from dispatch_operator.api import times
from dispatch_operator.api.enums import BackendGate, Condition, ErrorClass, Gate, Retry
from dispatch_operator.api.group import API_VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models.start import IMAGE, RUNTIME_REF
from dispatch_operator.reconcile.actions import Action
from dispatch_operator.reconcile.backend.proof import probe_runtime
from dispatch_operator.reconcile.observation import Object, Observation, Observed, Origin, at
from dispatch_operator.reconcile.ownership import made_for
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting
from dispatch_operator.reconcile.steps.check_request import check_and_render
from dispatch_operator.reconcile.steps.copy_runtime import copy_runtime
from dispatch_operator.reconcile.steps.create_train_job import create_train_job
from dispatch_operator.reconcile.steps.order import WITH_TRAIN_JOB, Step

PROBE_IMAGE = "dispatch.invalid/never:probe"

WITHOUT_TRAIN_JOB: tuple[Step, ...] = (check_and_render, copy_runtime, create_train_job)
"""Step 1 is left out: whether the backend may take Starts is what the probe is to find out."""


def begin(backend: Object, job: str) -> Observed:
    """Return what a probe of a backend knows at its beginning.

    Args:
        backend: The DispatchBackend, as it was just read.
        job: A job id that nobody has used.
    """
    kind, name = probe_runtime(backend)
    meta = at(backend, "metadata")
    reference = {"kind": kind, "name": name}
    start = {
        "apiVersion": API_VERSION,
        "kind": Kind.DISPATCH_BACKEND.value,
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
        "spec": {
            "backend": meta["name"],
            "gate": Gate.CLOSED.value,
            "retry": Retry.ON_CHANGE.value,
            "request": {
                "job": job,
                "generation": 0,
                "submission": 1,
                "attempt": 1,
                "spec": {
                    "command": ["true"],
                    "nodes": 1,
                    "extensions": {IMAGE: {"ref": PROBE_IMAGE}, RUNTIME_REF: reference},
                },
            },
        },
    }
    spec = at(backend, "spec")
    allowed = {**backend, "spec": {**spec, "runtimes": [*spec.get("runtimes", ()), reference]}}
    return Observed(start=start, backend=Observation(allowed, Origin.READ))


def next_step(observed: Observed, now: float) -> Action | Verdict | None:
    """Return the next act of a probe, why it can't go on, or None when all steps have succeeded."""
    has_train_job = made_for(observed.train_job.obj, observed.start)
    for step in WITH_TRAIN_JOB if has_train_job else WITHOUT_TRAIN_JOB:
        if (result := step(observed, now)) is not None:
            return result
    return None


def with_condition(start: Object, kind: Condition, now: float) -> Object:
    """Return a made-up start whose status says since when a step waits, as a DispatchStart's own would."""
    entry = {"type": kind.value, "status": "Unknown", "lastTransitionTime": times.written(now)}
    return {**start, "status": {"conditions": [entry]}}


def is_verdict(verdict: Verdict) -> bool:
    """Tell whether a step's verdict says something of the backend, and not only that a request failed in passing."""
    if isinstance(verdict, Waiting):
        return False
    return not verdict.transient and verdict.error_class not in {ErrorClass.UNREACHABLE, ErrorClass.OUTCOME_UNKNOWN}


def gate_of(refusal: Refusal) -> BackendGate:
    """Return the gate that a step's failure leaves unproven."""
    return BackendGate.START_GATE if refusal.step is Condition.WORKLOAD_GATED else BackendGate.FIELDS_KEPT
