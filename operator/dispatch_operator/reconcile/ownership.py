"""Whose an object is, and whether it is on its way out (contract section 4, "Ours", and section 13)."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from dispatch_operator.api.enums import Condition, Phase
from dispatch_operator.api.group import (
    ANNOTATION_GATED_BY,
    ANNOTATION_START,
    ANNOTATION_START_UID,
    LABEL_JOB,
    LABEL_PROBE,
    LABEL_SUBMISSION,
    START_GATE,
    TRAINER_API_VERSION,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.names import object_name
from dispatch_operator.reconcile.actions import ReadOther
from dispatch_operator.reconcile.observation import Observed, at, condition

Object = Mapping[str, Any]


class Ownership(Enum):
    """Whose a copy or TrainJob of our name is."""

    OURS = "carries this DispatchStart's UID"
    LEFTOVER = "its DispatchStart is gone or ended for good"
    FOREIGN = "belongs to another"


def start_uid(obj: object) -> str | None:
    """Return the UID of the DispatchStart that an object was made for, if one is named."""
    uid = at(obj, "metadata", "annotations", ANNOTATION_START_UID)
    return uid if isinstance(uid, str) and uid else None


def made_for(obj: object, start: Object) -> bool:
    """Tell whether a copy or TrainJob carries the UID of this DispatchStart."""
    return isinstance(obj, Mapping) and start_uid(obj) == at(start, "metadata", "uid")


def uid_of(obj: object) -> str:
    """Return an object's UID, or "" when it has none."""
    return at(obj, "metadata", "uid") or ""


def bears_our_name(obj: object) -> bool:
    """Tell whether an object has the name that its labels stand for: a user's copy of one of ours has not."""
    labels = at(obj, "metadata", "labels")
    job, submission = at(labels, LABEL_JOB), at(labels, LABEL_SUBMISSION)
    return bool(at(obj, "metadata", "name") == object_name(str(job), str(submission)))


def is_going(obj: object) -> bool:
    """Tell whether an object is being deleted."""
    return at(obj, "metadata", "deletionTimestamp") is not None


def owners(obj: object) -> tuple[Object, ...]:
    """Return an object's owner references."""
    return tuple(at(obj, "metadata", "ownerReferences") or ())


def owner_reference(train_job: object) -> dict[str, Any]:
    """Return the reference that makes a TrainJob the owner of its copy (contract section 4, step 7)."""
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": Kind.TRAIN_JOB.value,
        "name": at(train_job, "metadata", "name"),
        "uid": uid_of(train_job),
        "controller": False,
    }


def owned_by_train_job(copy: object) -> bool:
    """Tell whether a copy's owner is a TrainJob of its own name, present or past: it goes with that one."""
    name = at(copy, "metadata", "name")
    return any(at(owner, "kind") == Kind.TRAIN_JOB and at(owner, "name") == name for owner in owners(copy))


def left_of_ours(copy: object, start: Object) -> bool:
    """Tell whether a copy is one that a Start of this object leaves behind: unowned, or going with its TrainJob."""
    return made_for(copy, start) and (not owners(copy) or owned_by_train_job(copy))


def gates(obj: object) -> tuple[str, ...]:
    """Return the names that gate Kueue's admission of a TrainJob or a Workload."""
    names = str(at(obj, "metadata", "annotations", ANNOTATION_GATED_BY) or "")
    return tuple(name.strip() for name in names.split(",") if name.strip())


def in_kueue_mode(observed: Observed) -> bool:
    """Tell whether the gate is Kueue's: step 9 was made, or the TrainJob was just created with our gate."""
    if has_started(observed.start):
        return bool(condition(observed.start, Condition.WORKLOAD_GATED))
    return START_GATE in gates(observed.train_job.obj)


def ownership_of_train_job(observed: Observed) -> Ownership | ReadOther:
    """Judge the TrainJob found under our name, or say which object must be read first."""
    job = observed.train_job.obj or {}
    labels = at(job, "metadata", "labels") or {}
    request = at(observed.start, "spec", "request")
    ours = {LABEL_JOB: at(request, "job"), LABEL_SUBMISSION: str(at(request, "submission"))}
    if made_for(job, observed.start):
        return Ownership.OURS if all(labels.get(key) == value for key, value in ours.items()) else Ownership.FOREIGN
    return _claim_of_another(observed, job, (Phase.REFUSED, Phase.STOPPING, Phase.LOST))


def ownership_of_copy(observed: Observed) -> Ownership | ReadOther:
    """Judge the unowned copy found under our name, or say which object must be read first."""
    copy = observed.copy.obj or {}
    if made_for(copy, observed.start):
        return Ownership.OURS
    return _claim_of_another(observed, copy, (Phase.REFUSED, Phase.STOPPING))


def _claim_of_another(observed: Observed, obj: Object, ended: tuple[Phase, ...]) -> Ownership | ReadOther:
    name, uid = at(obj, "metadata", "annotations", ANNOTATION_START), start_uid(obj)
    if not name or not uid:
        return Ownership.FOREIGN
    kind = Kind.DISPATCH_BACKEND if at(obj, "metadata", "labels", LABEL_PROBE) else Kind.DISPATCH_START
    if not observed.other.live:
        return ReadOther(kind, name)
    if observed.other.obj is None or uid_of(observed.other.obj) != uid:
        return Ownership.LEFTOVER
    return (
        Ownership.LEFTOVER
        if kind == Kind.DISPATCH_START and phase_of(observed.other.obj) in ended
        else Ownership.FOREIGN
    )


def phase_of(start: object) -> Phase | None:
    """Return the recorded phase of a DispatchStart; None before the first reconcile, or when it is no phase."""
    phase = at(start, "status", "phase")
    return next((one for one in Phase if one == phase), None)


def has_started(start: object) -> bool:
    """Tell whether Started has been recorded: steps 5 to 9 are then never made again (section 4, rule 3)."""
    return condition(start, Condition.STARTED).get("status") == "True"
