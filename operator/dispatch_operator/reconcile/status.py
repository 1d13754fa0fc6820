"""The status of a DispatchStart, composed in one place from what was observed (docs/contract.md, Conditions)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass, Phase
from dispatch_operator.api.models.status import MESSAGE_LIMIT, ObjectReference, Outcome, Source, StartStatus
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.reconcile.conditions import Wanted, conditions
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import in_kueue_mode, made_for
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting
from dispatch_operator.render.environment import first_epoch

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
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
_NEXT: Mapping[Phase, str] = {
    Phase.PENDING: "will be looked at again: ",
    Phase.STARTING: "goes on: ",
    Phase.IN_FLIGHT: "the outcome is being read: ",
    Phase.STOPPING: "what was created is being deleted: ",
}


@dataclass(frozen=True, slots=True)
class Readiness:
    """What Ready says, which a person and kstatus read first."""

    status: ConditionStatus
    reason: str
    message: str


def of_verdict(observed: Observed, verdict: Verdict, phase: Phase, now: float, *, unresolved: str = "") -> StartStatus:
    """Return the status while a Start waits, is refused for now, or is refused for good.

    Args:
        observed: All that this reconcile knows.
        verdict: What the step came to.
        phase: Where that leaves the Start.
        now: Seconds since the epoch.
        unresolved: What is not known of the stop of a refused Start; it is told in the place of the refusal.
    """
    match verdict:
        case Waiting(reason=reason):
            status = UNKNOWN
        case Refusal(error_class=error_class):
            status, reason = FALSE, error_class.value
    whole = Readiness(status, reason, verdict.message)
    if unresolved:
        whole = Readiness(FALSE, ErrorClass.OUTCOME_UNKNOWN.value, unresolved)
    progress = Wanted(Condition.RECONCILING, TRUE, whole.reason, unresolved or _NEXT.get(phase, "") + whole.message)
    wanted = [
        *(_done(step) for step in STEPS[: STEPS.index(verdict.step)]),
        Wanted(verdict.step, status, reason, verdict.message),
        Wanted(Condition.STARTED, whole.status, whole.reason, whole.message),
        NOT_STARTED,
        Wanted(Condition.STALLED, TRUE, reason, whole.message) if phase is Phase.REFUSED else progress,
    ]
    return compose(observed, phase, whole, wanted, now, _refused(whole) if phase is Phase.REFUSED else {})


def _refused(whole: Readiness) -> Mapping[str, Any]:
    return {"outcome": Outcome("Refused", whole.reason, message=whole.message[:MESSAGE_LIMIT])}


def started_steps(observed: Observed) -> list[Wanted]:
    """Return the conditions of a Start that is whole."""
    return [
        *(_done(step) for step in STEPS if step is not Condition.WORKLOAD_GATED or in_kueue_mode(observed)),
        Wanted(Condition.STARTED, TRUE, "Started", "the TrainJob exists behind its gate, as it was asked for"),
    ]


def _done(step: Condition) -> Wanted:
    return Wanted(step, TRUE, *DONE[step])


def compose(  # noqa: PLR0913, PLR0917 - a status has this many parts.
    observed: Observed,
    phase: Phase,
    ready: Readiness,
    wanted: Iterable[Wanted],
    now: float,
    extra: Mapping[str, Any] | None = None,
) -> StartStatus:
    """Put a status together: what stood, what is known better now, and the conditions.

    Ready and Finished are set here alone.
    """
    current, generation = observed.start.status, observed.start.metadata.generation
    shown = [*wanted, Wanted(Condition.READY, ready.status, ready.reason, ready.message), _finished(phase)]
    objects = _objects(observed)
    if objects.get("reference", current.reference):
        # There is a TrainJob, so that the request was right.
        objects["epoch"] = first_epoch(observed.start.request)
    return structs.replace(
        current,
        phase=phase,
        observed_generation=generation,
        conditions=conditions(shown, current.conditions, generation, now, Entry),
        **objects,
        **(extra or {}),
    )


def _finished(phase: Phase) -> Wanted:
    if phase.is_end:
        return Wanted(Condition.FINISHED, TRUE, phase, "nothing more will happen; status.outcome says how it ended")
    return Wanted(Condition.FINISHED, FALSE, phase, "it has not ended")


def _objects(observed: Observed) -> dict[str, Any]:
    """Return the references to our copy and TrainJob; once Started is recorded they are never changed."""
    if observed.start.status.has_started:
        return {}
    found: dict[str, Any] = {}
    job, copy = observed.train_job.obj, observed.copy.obj
    if observed.train_job.live and job is not None and made_for(job, observed.start):
        meta = job.metadata
        found["reference"] = ObjectReference(f"{meta.namespace}/{meta.name}", meta.uid)
    if observed.copy.live and copy is not None and made_for(copy, observed.start):
        found["copied"] = ObjectReference(copy.metadata.name, copy.metadata.uid)
        if source := _source(copy.metadata.annotations.source):
            found["source"] = source
    return found


def _source(annotation: str | None) -> Source | None:
    """Read the source from the copy's own annotation: `<kind>/<name> <uid> <generation>`."""
    match (annotation or "").split(" "):
        case [reference, uid, generation] if "/" in reference and generation.isdecimal():
            kind, name = reference.split("/", 1)
            return Source(kind, name, uid, int(generation))
        case _:
            return None


def refusal_of(status: StartStatus) -> Refusal:
    """Return the refusal that a status records: the step that failed keeps its class and message."""
    held = {entry.type: entry for entry in status.conditions}
    failed = next((step for step in STEPS if step in held and held[step].status is FALSE), None)
    entry = held.get(failed or Condition.STARTED)
    step = failed or Condition.REQUEST_VALID
    return Refusal(step, _class(entry.reason), entry.message) if entry else Refusal(step, _class(""), "")


def _class(reason: str) -> ErrorClass:
    return next((one for one in ErrorClass if one == reason), ErrorClass.REJECTED)
