"""Whose an object is, and whether it is on its way out (docs/contract.md, Ownership and Orphaned copies)."""

from enum import Enum
from typing import Any

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.group import MANAGED_BY, START_GATE, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.names import is_object_name, object_name
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Action, Get, get_copy, get_other, get_train_job
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, read_first
from dispatch_operator.records.base import KubeObject
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob
from dispatch_operator.render.terms import read_terms

REFUSED_OR_CANCELLED = (Phase.STOPPING, Phase.REFUSED, Phase.CANCELLED)
"""Phases of a DispatchStart that leaves nothing of its own behind."""


class Standing(Enum):
    """What the TrainJob of our name is to a Start that has been recorded once, whatever is left of the record."""

    THE_ONE = "the TrainJob that was started"
    LATE = "another one of ours, which came late"
    UNKNOWN = "one of ours, and nothing tells which"
    ABSENT = "none of ours"


class Ownership(Enum):
    """Whose a copy or TrainJob of our name is."""

    OURS = "bears a mark of this DispatchStart, or is known to be its by the UID"
    LEFTOVER = "its DispatchStart is gone or ended for good"
    FOREIGN = "belongs to another"


def start_uid(obj: KubeObject) -> str | None:
    """Return the UID of the DispatchStart that an object was made for, if one is named."""
    return obj.metadata.annotations.start_uid or None


def made_for(obj: KubeObject | None, start: DispatchStart | DispatchBackend) -> bool:
    """Tell whether a copy or TrainJob bears a mark of this DispatchStart (of a probe: DispatchBackend) and no other."""
    return obj is not None and obj.metadata.marks == {start.metadata.uid}


def is_ours(observed: Observed, obj: KubeObject | None) -> bool:
    """Tell whether a copy or TrainJob is this start's: by its marks, or by a UID that they can't belie.

    Somebody may strip or change marks, even as an object is created. What our own create returned is then still ours,
    and so is what the status names.
    """
    if obj is None:
        return False
    reference = observed.start.status.reference
    recorded = reference is not None and obj.metadata.uid == reference.uid
    return recorded or made_for(obj, observed.start) or _created_here(observed, obj)


def _created_here(observed: Observed, obj: KubeObject) -> bool:
    """Tell whether this reconcile has created an object, and nobody has taken it over since.

    Another Start of the submission takes over a copy that it finds left behind, by the marks that it gives it; nobody
    takes over a TrainJob.
    """
    meta = obj.metadata
    version = dict(observed.created).get(meta.uid)
    if version is None or not isinstance(obj, TrainingRuntime):
        return version is not None
    return meta.resource_version == version or not meta.marks - {observed.start.metadata.uid}


def bears_our_name(obj: KubeObject) -> bool:
    """Tell whether an object's name is one of ours, and no label says another: a user's copy of one of ours does."""
    name, labels = obj.metadata.name, obj.metadata.labels
    stands_for = object_name(labels.job, labels.submission) if labels.job and labels.submission else name
    return is_object_name(name) and name == stands_for


def is_made_by_us(obj: KubeObject) -> bool:
    """Tell whether anything still says that an object is one of dispatch's; each mark can be taken away."""
    made_by = maker(obj)
    return made_by is not None or obj.metadata.labels.managed_by == MANAGED_BY


def maker(obj: KubeObject) -> tuple[Kind, str] | None:
    """Return the kind and name of what a copy or TrainJob was made for; None where its marks name nothing, or two."""
    meta = obj.metadata
    if len(meta.marks) != 1:
        return None
    owner, name = meta.controller, meta.annotations.start
    if owner is not None:
        ours = (Kind.DISPATCH_START, Kind.DISPATCH_BACKEND)
        return next(((kind, owner.name) for kind in ours if kind == owner.kind), None)
    return (Kind.DISPATCH_BACKEND if meta.labels.probe else Kind.DISPATCH_START, name) if name else None


def owner_reference(train_job: TrainJob) -> dict[str, Any]:
    """Return the reference that makes a TrainJob the owner of its copy."""
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": Kind.TRAIN_JOB.value,
        "name": train_job.metadata.name,
        "uid": train_job.metadata.uid,
        "controller": False,
    }


def owned_by(obj: KubeObject, owner: KubeObject) -> bool:
    """Tell whether an object goes with another."""
    return any(reference.uid == owner.metadata.uid for reference in obj.metadata.owner_references)


def owned_by_train_job(copy: TrainingRuntime) -> bool:
    """Tell whether a copy's owner is a TrainJob of its own name, present or past: it goes with that one."""
    named = (Kind.TRAIN_JOB, copy.metadata.name)
    return any((owner.kind, owner.name) == named for owner in copy.metadata.owner_references)


def left_of_ours(observed: Observed) -> bool:
    """Tell whether the copy is one that this Start leaves behind: unowned, or going with its TrainJob."""
    copy = observed.copy.obj
    if copy is None or not is_ours(observed, copy):
        return False
    return not copy.metadata.owner_references or owned_by_train_job(copy)


def in_kueue_mode(observed: Observed) -> bool:
    """Tell whether the gate is Kueue's: step 9 was made, or the TrainJob says that it was created so."""
    status = observed.start.status
    if status.says_started:
        return status.condition(Condition.WORKLOAD_GATED) is not None
    job = observed.train_job.obj
    terms = read_terms(job.metadata.annotations.backend) if job else None
    return job is not None and (START_GATE in job.metadata.gates or (terms is not None and terms.queue is not None))


def was_opened(observed: Observed) -> bool:
    """Tell whether the TrainJob bears the mark of its own opening: it has been recorded as started."""
    job = observed.train_job.obj
    return job is not None and job.metadata.annotations.opened == job.metadata.uid and is_ours(observed, job)


def is_the_one(observed: Observed) -> bool:
    """Tell whether the TrainJob is the one that was started, as far as is known: by status, its copy, or its mark."""
    status, job, copy = observed.start.status, observed.train_job.obj, observed.copy
    if job is None:
        return False
    if (status.reference is not None and status.reference.uid == job.metadata.uid) or was_opened(observed):
        return True
    if status.copied is None or copy.obj is None or not copy.live or not is_ours(observed, job):
        return False
    return copy.obj.metadata.uid == status.copied.uid and owned_by(copy.obj, job)


def standing(observed: Observed) -> Standing | Get | ApiError:
    """Tell what the TrainJob of our name is to this Start, what must be read first, or why it can't be."""
    status, job = observed.start.status, observed.train_job.obj
    if job is not None and status.reference is not None and status.reference.uid == job.metadata.uid:
        return Standing.THE_ONE
    if due := observed.due(get_train_job(observed.start)):
        return due
    if job is None or not is_ours(observed, job):
        return Standing.ABSENT
    if not was_opened(observed) and status.copied is not None and (due := observed.due(get_copy(observed.start))):
        return due
    if is_the_one(observed):
        return Standing.THE_ONE
    return Standing.LATE if status.reference is not None else Standing.UNKNOWN


def ownership_of_train_job(observed: Observed, job: TrainJob) -> Ownership | Get:
    """Tell whose the TrainJob found under our name is, or which object must be read first."""
    if is_ours(observed, job):
        return Ownership.OURS
    return _ownership_of_another(observed, job, (*REFUSED_OR_CANCELLED, Phase.LOST))


def ownership_of_copy(observed: Observed, copy: TrainingRuntime) -> Ownership | Get:
    """Tell whose the unowned copy found under our name is, or which object must be read first."""
    if is_ours(observed, copy):
        return Ownership.OURS
    return _ownership_of_another(observed, copy, REFUSED_OR_CANCELLED)


def _ownership_of_another(observed: Observed, obj: KubeObject, ended: tuple[Phase, ...]) -> Ownership | Get:
    made_by = maker(obj)
    if made_by is None:
        return Ownership.FOREIGN
    kind, name = made_by
    if not observed.other.live:
        return get_other(kind, name)
    other = observed.other.obj
    if other is None or {other.metadata.uid} != obj.metadata.marks:
        return Ownership.LEFTOVER
    has_ended = isinstance(other, DispatchStart) and other.status.phase in ended
    return Ownership.LEFTOVER if has_ended else Ownership.FOREIGN


def check_ownership(observed: Observed, step: Condition, *, never_final: bool = False) -> Action | Verdict | None:
    """Judge the TrainJob of our name by a live read: None when it is absent, or ours and stays."""
    if unread := read_first(observed, get_train_job(observed.start), step, never_final=never_final):
        return unread
    job = observed.train_job.obj
    if job is None:
        return None
    name = job.metadata.name
    match ownership_of_train_job(observed, job):
        case Get() as get:
            return read_first(observed, get, step)
        case Ownership.FOREIGN:
            return Refusal(
                step,
                ErrorClass.REJECTED,
                f"TrainJob {name} exists and is not of this DispatchStart; submit under another number, for this "
                "refusal is final, even when that TrainJob is gone",
            )
        case Ownership.LEFTOVER:
            message = f"waiting for TrainJob {name} of an ended DispatchStart to go away"
            return Waiting(step, "TrainJobLeaving", message + _nobody_deletes(job))
        case Ownership.OURS if job.metadata.is_terminating:
            return Waiting(step, "TrainJobLeaving", f"waiting for TrainJob {name} to be deleted")
        case Ownership.OURS:
            return None


def _nobody_deletes(job: TrainJob) -> str:
    """Say what to do about a TrainJob that was left behind, as by a deletion of its owner with --cascade=orphan."""
    meta = job.metadata
    if meta.owner_references or meta.is_terminating:
        return ""
    command = f"kubectl delete trainjob {meta.name} --namespace {meta.namespace}"
    return f"; it has no owner, so that nothing deletes it: {command}"
