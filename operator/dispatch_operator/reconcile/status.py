"""The status of a DispatchStart, composed in one place from what was seen (contract section 11)."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.group import ANNOTATION_SOURCE
from dispatch_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Wanted, conditions
from dispatch_operator.reconcile.observation import Observed, at, condition
from dispatch_operator.reconcile.ownership import in_kueue_mode, made_for, uid_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting

Status = dict[str, Any]

STEPS = (
    Condition.REQUEST_VALID,
    Condition.RUNTIME_COPIED,
    Condition.TRAIN_JOB_CREATED,
    Condition.OWNER_SET,
    Condition.READ_BACK,
    Condition.WORKLOAD_GATED,
)
DONE: Mapping[Condition, tuple[str, str]] = {
    Condition.REQUEST_VALID: ("Valid", "the backend takes the request, and the runtime can run it"),
    Condition.RUNTIME_COPIED: ("Copied", "the copy holds what the source runtime held"),
    Condition.TRAIN_JOB_CREATED: ("Created", "the TrainJob exists"),
    Condition.OWNER_SET: ("OwnerSet", "deleting the TrainJob collects the copy"),
    Condition.READ_BACK: ("Equal", "the cluster stored what was written"),
    Condition.WORKLOAD_GATED: ("Gated", "the Workload waits behind the gate and the admission check"),
}
NOT_STARTED = Wanted(Condition.SUCCEEDED, UNKNOWN, "NotStarted", "the job has not been started")


def of_verdict(observed: Observed, verdict: Verdict, phase: Phase, now: float) -> Status:
    """Return the status while a Start waits, is refused for now, or is refused for good."""
    steps = [_done(step) for step in STEPS[: STEPS.index(verdict.step)]]
    match verdict:
        case Waiting(reason=reason, message=message):
            status, ready = UNKNOWN, UNKNOWN
        case Refusal(error_class=error_class, message=message):
            status, ready, reason = FALSE, FALSE, error_class.value
    stalled = phase is Phase.REFUSED
    progress = (
        Wanted(Condition.STALLED, TRUE, reason, message)
        if stalled
        else Wanted(Condition.RECONCILING, TRUE, reason, _next(phase, message))
    )
    return compose(
        observed,
        phase,
        [
            *steps,
            Wanted(verdict.step, status, reason, message),
            Wanted(Condition.STARTED, status, reason, message),
            NOT_STARTED,
            Wanted(Condition.READY, ready, reason, message),
            progress,
        ],
        now,
    )


def _next(phase: Phase, message: str) -> str:
    hint = {
        Phase.PENDING: "will be reconciled again: ",
        Phase.STARTING: "goes on: ",
        Phase.IN_FLIGHT: "the outcome is being read: ",
        Phase.STOPPING: "what was created is being deleted: ",
    }
    return hint.get(phase, "") + message


def started_steps(observed: Observed) -> list[Wanted]:
    """Return the conditions of a Start that is whole."""
    return [
        *(_done(step) for step in STEPS if step is not Condition.WORKLOAD_GATED or in_kueue_mode(observed)),
        Wanted(Condition.STARTED, TRUE, "Started", "the TrainJob exists behind its gate, as it was asked for"),
    ]


def _done(step: Condition) -> Wanted:
    return Wanted(step, TRUE, *DONE[step])


def compose(
    observed: Observed, phase: Phase, wanted: list[Wanted], now: float, extra: Mapping[str, Any] | None = None
) -> Status:
    """Put a status together: what stood, what is known better now, and the conditions."""
    current: Mapping[str, Any] = at(observed.start, "status") or {}
    generation = at(observed.start, "metadata", "generation") or 0
    kept = {
        key: current[key]
        for key in ("reference", "copy", "source", "outcome", "restarts", "evictions")
        if key in current
    }
    return {
        **kept,
        **_objects(observed),
        **(extra or {}),
        "phase": phase.value,
        "observedGeneration": generation,
        "conditions": conditions(wanted, current.get("conditions") or (), generation, now),
    }


def _objects(observed: Observed) -> Status:
    """Return the references to our copy and TrainJob; once Started is recorded they are never changed."""
    if condition(observed.start, Condition.STARTED).get("status") == TRUE:
        return {}
    found: Status = {}
    job, copy = observed.train_job.obj, observed.copy.obj
    if observed.train_job.live and made_for(job, observed.start):
        meta = at(job, "metadata")
        found["reference"] = {"name": f"{at(meta, 'namespace')}/{at(meta, 'name')}", "uid": uid_of(job)}
    if observed.copy.live and made_for(copy, observed.start):
        found["copy"] = {"name": at(copy, "metadata", "name"), "uid": uid_of(copy)}
        found |= _source(at(copy, "metadata", "annotations", ANNOTATION_SOURCE))
    return found


def _source(annotation: object) -> Status:
    """Read the source from the copy's own annotation: `<kind>/<name> <uid> <generation>` (section 5)."""
    match str(annotation or "").split(" "):
        case [reference, uid, generation] if "/" in reference and generation.isdecimal():
            kind, name = reference.split("/", 1)
            return {"source": {"kind": kind, "name": name, "uid": uid, "generation": int(generation)}}
        case _:
            return {}


def refusal_of(start: Mapping[str, Any]) -> Refusal:
    """Return the refusal that a status records: the step that failed keeps its class and message."""
    for step in STEPS:
        held = condition(start, step)
        if held.get("status") == FALSE:
            return Refusal(step, _class(held.get("reason")), str(held.get("message") or ""))
    held = condition(start, Condition.STARTED)
    return Refusal(Condition.REQUEST_VALID, _class(held.get("reason")), str(held.get("message") or ""))


def _class(reason: object) -> ErrorClass:
    return next((one for one in ErrorClass if one == reason), ErrorClass.REJECTED)
