"""The status of a DispatchStart, composed in one place from what was observed (docs/contract.md, Conditions)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass, Phase
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.api.models.status import CopyReference, ObjectReference, Outcome, Source, StartStatus
from dispatch_operator.api.quoting import one_line
from dispatch_operator.checks.problems import names_in
from dispatch_operator.reconcile.conditions import Wanted, conditions
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.ownership import in_kueue_mode, is_ours, is_the_one, owned_by
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting
from dispatch_operator.records.trainer import TrainingRuntime
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
POINTER = "see the condition"
TOLD = (Condition.OWNER_SET, Condition.READ_BACK)
"""Steps whose failure stops nothing once the gate was open: it is told."""
NOT_STARTED = Wanted(Condition.SUCCEEDED, UNKNOWN, "NotStarted", "the job has not been started")
BRIEF = 200
"""Characters of a message for which there is hardly room."""
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


def of_verdict(  # noqa: PLR0913 - a verdict has this many parts.
    observed: Observed, verdict: Verdict, phase: Phase, now: float, *, unresolved: str = "", progress: str = ""
) -> StartStatus:
    """Return the status while a Start waits, is refused for now, or is refused for good.

    A refusal is told in full by its step alone; the other conditions say what it is about, and where it is told.

    Args:
        observed: All that this reconcile knows.
        verdict: What the step came to.
        phase: Where that leaves the Start.
        now: Seconds since the epoch.
        unresolved: What is not known of the stop of a refused Start; Started tells it in the place of the refusal.
        progress: What still goes on, where it is something else than the phase says.
    """
    match verdict:
        case Waiting(reason=reason):
            status, told = UNKNOWN, verdict.message
        case Refusal(error_class=error_class):
            status, reason, told = FALSE, error_class.value, told_by(verdict.step, verdict.message)
    started = Wanted(Condition.STARTED, status, reason, told)
    if unresolved:
        started = Wanted(Condition.STARTED, FALSE, ErrorClass.OUTCOME_UNKNOWN.value, unresolved)
        told = told_by(Condition.STARTED, unresolved)
    whole = Readiness(started.status, started.reason, told)
    going_on = Wanted(Condition.RECONCILING, TRUE, whole.reason, progress or _NEXT.get(phase, "") + told)
    wanted = [
        *(_done(step, observed) for step in STEPS[: STEPS.index(verdict.step)]),
        Wanted(verdict.step, status, reason, verdict.message),
        started,
        NOT_STARTED,
        Wanted(Condition.STALLED, TRUE, reason, told) if phase is Phase.REFUSED else going_on,
    ]
    return compose(observed, phase, whole, wanted, now, _refused(whole) if phase is Phase.REFUSED else {})


def _refused(whole: Readiness) -> Mapping[str, Any]:
    return {"outcome": Outcome("Refused", whole.reason, message=whole.message)}


def told_by(condition: Condition, message: str) -> str:
    """Return what stands in the place of a message that a condition tells in full."""
    names = names_in(one_line(message))
    return f"{names}: {POINTER} {condition}" if names else f"{POINTER} {condition}"


def started_steps(observed: Observed) -> list[Wanted]:
    """Return the conditions of a Start that is whole; what was told of one that was taken up again stays told."""
    steps = STEPS if in_kueue_mode(observed) else [step for step in STEPS if step is not Condition.WORKLOAD_GATED]
    return [
        *(_told(observed, step) or _done(step, observed) for step in steps),
        Wanted(Condition.STARTED, TRUE, "Started", "the TrainJob exists behind its gate, as it was asked for"),
    ]


def _done(step: Condition, observed: Observed) -> Wanted:
    """Return a step that has succeeded; of the TrainJob it is told since when there is one, also when that is gone."""
    job = observed.train_job.obj if step is Condition.TRAIN_JOB_CREATED else None
    return Wanted(step, TRUE, *DONE[step], since=times.read(job.metadata.creation_timestamp) if job else None)


def _told(observed: Observed, step: Condition) -> Wanted | None:
    status = observed.start.status
    held = status.condition(step)
    if held is None or step not in TOLD or not status.says_started or held.reason != ErrorClass.REJECTED:
        return None
    return Wanted(step, held.status, held.reason, held.message)


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
        in_flight_since=_in_flight_since(current, phase, now),
        **objects,
        **(extra or {}),
    )


def _finished(phase: Phase) -> Wanted:
    if phase.is_end:
        return Wanted(Condition.FINISHED, TRUE, phase, "nothing more will happen; status.outcome says how it ended")
    return Wanted(Condition.FINISHED, FALSE, phase, "it has not ended")


def _in_flight_since(current: StartStatus, phase: Phase, now: float) -> str | None:
    """Return since when a create is unanswered; a time that lies ahead was written by a wrong clock."""
    if phase is not Phase.IN_FLIGHT:
        return None
    since = times.read(current.in_flight_since) if current.phase is phase else None
    return current.in_flight_since if since is not None and since <= now else times.written(now)


def referring(observed: Observed) -> StartStatus:
    """Return the status as it stands, with what the cluster tells better of the TrainJob and its copy."""
    return structs.replace(observed.start.status, **_objects(observed))


def _objects(observed: Observed) -> dict[str, Any]:
    """Return the references to our TrainJob and to the copy that it owns.

    Once Started is recorded they are not changed any more, unless they are missing, or name another TrainJob than the
    one that was started.
    """
    status, job, copy = observed.start.status, observed.train_job.obj, observed.copy.obj
    found: dict[str, Any] = {}
    is_fixed = status.has_started or observed.start.lost_its_status
    if job is None or not (is_the_one(observed) if is_fixed else is_ours(observed, job)):
        return found
    meta, reference = job.metadata, status.reference
    if observed.train_job.live and (reference is None or reference.uid != meta.uid):
        found["reference"] = ObjectReference(f"{meta.namespace}/{meta.name}", meta.uid)
    if observed.copy.live and copy is not None and owned_by(copy, job):
        source = _source(copy.metadata.annotations.source)
        if not is_fixed or status.copied is None:
            found["copied"] = _copied(observed, copy)
        if source and (not is_fixed or status.source is None):
            found["source"] = source
    return found


def _copied(observed: Observed, copy: TrainingRuntime) -> CopyReference:
    """Return the copy, with the generation at which it was equal to its source: a leftover may have been edited."""
    meta, held, source = copy.metadata, observed.start.status.copied, observed.runtime
    is_equal = source.live and source.obj is not None and source.obj.spec == copy.spec
    if is_equal or (held is not None and (held.uid, held.generation) == (meta.uid, meta.generation)):
        return CopyReference(meta.name, meta.uid, meta.generation)
    return CopyReference(meta.name, meta.uid)


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


def brief(status: StartStatus) -> StartStatus:
    """Return a status with short messages, for an object that leaves no room for long ones."""
    told = tuple(structs.replace(entry, message=_brief(entry.message)) for entry in status.conditions)
    outcome = status.outcome and structs.replace(status.outcome, message=_brief(status.outcome.message or "") or None)
    return structs.replace(status, conditions=told, outcome=outcome)


def _brief(message: str) -> str:
    if len(message) <= BRIEF:
        return message
    return f"{message[:BRIEF]}… ({len(message)} characters; the object is too large for more of them to be stored)"


def stands(status: StartStatus, current: StartStatus) -> bool:
    """Tell whether a status is what is recorded, in full or as briefly as the object's size allowed."""
    return status == current or brief(status) == current
