"""Where raw JSON becomes records: the answer of a request, and what a watch tells."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from dispatch_operator.api import times
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import InvalidObject, StartReading, read_backend, read_start
from dispatch_operator.api.models.reading import without_nulls
from dispatch_operator.api.models.status import BackendStatus, StartStatus, Status, fields_of
from dispatch_operator.api.names import is_job, is_submission, object_name
from dispatch_operator.records.base import KubeObject, ObjectMeta
from dispatch_operator.records.core import Event, Job, Pod
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.kueue import AdmissionCheck, ClusterQueue, LocalQueue, Workload, WorkloadPriorityClass
from dispatch_operator.records.shared_texts import with_shared_texts
from dispatch_operator.records.trainer import ClusterTrainingRuntime, JobSet, TrainingRuntime, TrainJob

Json = Mapping[str, Any]
Runtime = TrainingRuntime
"""A source or a copy: a ClusterTrainingRuntime is a TrainingRuntime of every namespace."""
AnyRecord = DispatchStart | DispatchBackend | KubeObject
S = TypeVar("S", bound=Status)
T = TypeVar("T")

_OTHERS: Mapping[Kind, type[KubeObject]] = {
    record.KIND: record
    for record in (
        TrainJob,
        TrainingRuntime,
        ClusterTrainingRuntime,
        JobSet,
        Workload,
        LocalQueue,
        ClusterQueue,
        AdmissionCheck,
        WorkloadPriorityClass,
        Job,
        Pod,
        Event,
    )
}


class RecordError(Exception):
    """An object that is not what its kind promises; the message names the field."""


def read_record(kind: Kind, raw: Json) -> AnyRecord:
    """Read an object of a kind, whole, as a request's answer holds it.

    Raises:
        RecordError: It is not what its kind promises.
    """
    match kind:
        case Kind.DISPATCH_START:
            return read_dispatch_start(raw)
        case Kind.DISPATCH_BACKEND:
            return read_dispatch_backend(raw)
        case Kind.TRAIN_JOB:
            return msgspec.structs.replace(_converted(raw, TrainJob), stored=dict(raw))
        case _:
            return _converted(raw, _OTHERS[kind])


def read_watched(kind: Kind, raw: Json) -> AnyRecord:
    """Read an object of a kind without what is large and never read of what a watch tells.

    Raises:
        RecordError: It is not what its kind promises.
    """
    if kind not in _OTHERS:
        return read_record(kind, raw)
    metadata = with_shared_texts(_read_of(raw.get("metadata")))
    if kind in {Kind.TRAINING_RUNTIME, Kind.CLUSTER_TRAINING_RUNTIME}:
        return _converted({"metadata": metadata}, _OTHERS[kind])
    return _converted(
        {**raw, "metadata": metadata, "status": with_shared_texts(raw.get("status") or {})}, _OTHERS[kind]
    )


def _read_of(metadata: object) -> object:
    """Leave out the largest part of all metadata, which nobody reads."""
    match metadata:
        case {"managedFields": _}:
            return {key: value for key, value in metadata.items() if key != "managedFields"}  # type: ignore[attr-defined]
    return metadata


def read_dispatch_start(raw: Json) -> DispatchStart:
    """Read a DispatchStart, or what a probe makes up; whatever its spec is, there is something to decide by.

    Raises:
        RecordError: Its metadata is not what every object has.
    """
    reading = read_start(raw)
    return DispatchStart(
        metadata=_converted(with_shared_texts(_read_of(raw.get("metadata") or {})), ObjectMeta),
        reading=reading,
        target=_target(reading),
        status=as_far_as_it_fits(with_shared_texts(raw.get("status")), StartStatus),
        is_probe=raw.get("kind") == Kind.DISPATCH_BACKEND,
        status_was_written=_status_was_written(raw),
    )


def _status_was_written(raw: Json) -> bool:
    """Tell whether a write of the status is on record that is not older than the object: a restored one's are."""
    match raw:
        case {"metadata": {"creationTimestamp": str(created), "managedFields": [*entries]}}:
            return any(_is_of_status(entry, times.read(created) or 0.0) for entry in entries)
    return False


def _is_of_status(entry: object, created: float) -> bool:
    match entry:
        case {"subresource": "status", "time": str(written)}:
            return (times.read(written) or 0.0) >= created
    return False


def read_dispatch_backend(raw: Json) -> DispatchBackend:
    """Read a DispatchBackend.

    Raises:
        RecordError: Its metadata is not what every object has.
    """
    valid, fault = None, ""
    try:
        valid = read_backend(raw)
    except InvalidObject as error:
        fault = str(error)
    return DispatchBackend(
        metadata=_converted(raw.get("metadata") or {}, ObjectMeta),
        valid=valid,
        fault=fault,
        status=as_far_as_it_fits(raw.get("status"), BackendStatus),
    )


def as_far_as_it_fits(raw: object, status: type[S]) -> S:
    """Read a status as far as it has the shape that the operator writes, whoever wrote it.

    The CRD holds the types; an older CRD, or none of ours, may not have. What does not fit is not there; of a list the
    items that fit are kept.
    """
    held: dict[str, Any] = {}
    for field in fields_of(status) if isinstance(raw, Mapping) else ():
        value = cast("Json", raw).get(field.encode_name)
        if value is None:
            continue
        try:
            held[field.name] = msgspec.convert(value, field.type)
        except msgspec.ValidationError:
            if isinstance(value, list):
                held[field.name] = tuple(item for one in value for item in _fitting(one, field.type))
    return status(**held)


def _fitting(item: object, listed: Any) -> tuple[Any, ...]:  # noqa: ANN401 - the type of a field.
    try:
        return cast("tuple[Any, ...]", msgspec.convert([item], listed))
    except msgspec.ValidationError:
        return ()


def _target(reading: StartReading) -> str:
    request = reading.request
    faulty = reading.is_faulty("request", "job") or reading.is_faulty("request", "submission")
    named = not faulty and is_job(request.job) and is_submission(request.submission)
    return object_name(request.job, request.submission) if named else ""


def _converted(raw: object, record: type[T]) -> T:
    try:
        return msgspec.convert(raw, record)
    except msgspec.ValidationError:
        pass
    # Kubernetes writes no nulls, but others may: null is absent.
    try:
        return msgspec.convert(without_nulls(raw), record)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RecordError(f"it is no {record.__name__}: {error}") from error
