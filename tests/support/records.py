"""Raw objects of tests as the operator's records, and a reach into raw objects that tests alone need."""

from collections.abc import Mapping
from typing import Any, TypeVar

from dispatch_operator.api.kinds import Kind
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.reading import (
    AnyRecord,
    read_dispatch_backend,
    read_dispatch_start,
    read_record,
    read_watched,
)
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob

Object = Mapping[str, Any]
T = TypeVar("T")


def at(obj: object, *path: str) -> Any:
    """Return what lies at a path of a JSON value, or None where any part of it is missing."""
    for part in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(part)
    return obj


def copied(value: T) -> T:
    """Return a copy of a JSON value that shares nothing which can be changed: much sooner than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [copied(part) for part in value]  # type: ignore[return-value]
    return value


def condition(obj: object, kind: str) -> Object:
    """Return a condition of an object's status by its type; empty when it has none such."""
    return next((entry for entry in at(obj, "status", "conditions") or () if at(entry, "type") == kind), {})


def maker_uid(obj: object) -> str | None:
    """Return the UID of what a copy or TrainJob was made for, by either of its marks."""
    uid = at(obj, "metadata", "annotations", "dispatch.phpboyscout.uk/start-uid")
    owners = at(obj, "metadata", "ownerReferences") or ()
    found = uid or next((owner["uid"] for owner in owners if owner.get("controller")), None)
    return str(found) if found else None


def watched(obj: Object, kind: str | None = None) -> AnyRecord:
    """Return an object as a watch tells of it."""
    return read_watched(Kind(kind or obj["kind"]), obj)


def start_of(obj: Object) -> DispatchStart:
    """Return a DispatchStart as a request answers with it."""
    return read_dispatch_start(obj)


def backend_of(obj: Object) -> DispatchBackend:
    """Return a DispatchBackend as a request answers with it."""
    return read_dispatch_backend(obj)


def runtime_of(obj: Object) -> TrainingRuntime:
    """Return a runtime of either kind as a request answers with it."""
    found = read_record(Kind(obj.get("kind", Kind.CLUSTER_TRAINING_RUNTIME)), obj)
    assert isinstance(found, TrainingRuntime)
    return found


def job_of(obj: Object) -> TrainJob:
    """Return a TrainJob as a request answers with it."""
    found = read_record(Kind.TRAIN_JOB, obj)
    assert isinstance(found, TrainJob)
    return found
