"""The requests that a reconcile may make, each spelled once: what is decided is one of these values.

Only the reconciler carries them out, and `Observed.apply` says what an answer adds to what is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dispatch_operator.api.group import (
    ANNOTATION_GATED_BY,
    ANNOTATION_HELD,
    ANNOTATION_OPENED,
    LABEL_JOB,
    LABEL_JOB_UID,
    LABEL_PROBE,
    LABEL_SUBMISSION,
    NODE,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models.status import BackendStatus, StartStatus, Status, fields_of
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob

Json = Mapping[str, Any]
MOST_SELECTED = 10_000
"""Objects that are read of one list, at most."""
MOST_WAITING, MOST_WARNINGS = 100, 500
"""Pods and Events that are looked at to learn why nothing runs."""


class Slot(StrEnum):
    """What an action is about: the field of `Observed` that its answer fills."""

    START = "start"
    BACKEND = "backend"
    RUNTIME = "runtime"
    COPY = "copy"
    TRAIN_JOB = "train_job"
    OTHER = "other"
    WORKLOAD = "workload"
    LOCAL_QUEUE = "local_queue"
    CLUSTER_QUEUE = "cluster_queue"
    CHECK = "check"
    PRIORITY_CLASS = "priority_class"
    PROBES = "probes"
    PODS = "pods"
    TRAINER_JOB = "trainer_job"
    WARNINGS = "warnings"
    CHILD_WARNINGS = "child_warnings"


ActionKey = tuple[type["Action"], Slot]
"""By which a failure is remembered: the kind of request, and what it was about."""


@dataclass(frozen=True)
class Action:
    """One request to the API server, or a wait for what a watch tells."""

    slot: Slot

    @property
    def key(self) -> ActionKey:
        """The kind of request, and what it is about."""
        return type(self), self.slot


@dataclass(frozen=True)
class Get(Action):
    """Read one object live."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class List(Action):
    """List objects of the namespace."""

    kind: Kind
    label_selector: str = ""
    field_selector: str = ""
    owner: str = ""
    """When set, only the first object that this UID owns is wanted."""
    most: int = MOST_SELECTED
    """Objects after which no further page is asked for."""


@dataclass(frozen=True)
class AwaitWorkload(Action):
    """Wait until a watch tells of the TrainJob's Workload, for some seconds at most."""

    owner: str
    seconds: float


@dataclass(frozen=True)
class Create(Action):
    """Create one object."""

    kind: Kind
    body: Json
    pause: float = 0.0
    """Seconds to wait first: a webhook's cache has not seen the copy yet."""


@dataclass(frozen=True)
class Patch(Action):
    """Merge-patch one object, whose UID the body holds as a precondition."""

    kind: Kind
    name: str
    body: Json
    subresource: str = ""
    reads_after_failure: bool = False
    """Whether a failure of any kind calls for a live read: only that tells whether it was carried out."""


@dataclass(frozen=True)
class Delete(Action):
    """Delete one object, if it is still the one of this UID and resourceVersion."""

    kind: Kind
    name: str
    uid: str
    resource_version: str | None = None
    reason: str = ""
    """Why an ended job's TrainJob is deleted, which no status tells; empty otherwise."""


@dataclass(frozen=True)
class PatchStatus(Action):
    """Write the DispatchStart's status, at the resourceVersion that the reconcile began with (Record before acting)."""

    status: StartStatus
    slot: Slot = field(default=Slot.START, init=False)


@dataclass(frozen=True)
class Result:
    """The reconcile is over: nothing is to be done until something changes, or until a time has come."""

    requeue: bool = False
    """Whether another reconcile is wanted, with backoff."""
    retry_after: float | None = None
    """Seconds that the API server asked to wait at least, if it did."""
    requeue_after: float | None = None
    """Seconds after which another reconcile is wanted, without backoff."""
    refused: bool = False
    """Whether a status was refused for good: the backoff grows longer, and no event ends it."""


def after_status(error: ApiError) -> Result:
    """Return when a write of a status that failed is made again."""
    return Result(requeue=True, retry_after=error.retry_after, refused=error.for_good)


def get_start(start: DispatchStart) -> Get:
    """Read the DispatchStart itself, after somebody else has written it."""
    return Get(Slot.START, Kind.DISPATCH_START, start.metadata.name)


def get_backend(start: DispatchStart) -> Get:
    """Read the DispatchBackend that a start names."""
    return Get(Slot.BACKEND, Kind.DISPATCH_BACKEND, start.backend)


def get_runtime(kind: str, name: str) -> Get:
    """Read the source runtime."""
    return Get(Slot.RUNTIME, Kind(kind), name)


def get_copy(start: DispatchStart) -> Get:
    """Read the copy by its name."""
    return Get(Slot.COPY, Kind.TRAINING_RUNTIME, start.target)


def get_train_job(start: DispatchStart) -> Get:
    """Read the TrainJob by its name."""
    return Get(Slot.TRAIN_JOB, Kind.TRAIN_JOB, start.target)


def get_other(kind: Kind, name: str) -> Get:
    """Read the DispatchStart (or, for a probe's, DispatchBackend) that another's object names."""
    return Get(Slot.OTHER, kind, name)


def get_workload(workload: Workload) -> Get:
    """Read the TrainJob's Workload, which a watch has told of."""
    return Get(Slot.WORKLOAD, Kind.WORKLOAD, workload.metadata.name)


def find_workload(train_job: TrainJob) -> List:
    """List the namespace's Workloads for the one that the TrainJob owns."""
    uid = train_job.metadata.uid
    return List(Slot.WORKLOAD, Kind.WORKLOAD, label_selector=f"{LABEL_JOB_UID}={uid}", owner=uid)


def list_probes() -> List:
    """List the TrainJobs of probes, of any backend of the namespace."""
    return List(Slot.PROBES, Kind.TRAIN_JOB, label_selector=f"{LABEL_PROBE}=true")


def list_pods(start: DispatchStart) -> List:
    """List the job's pods, to learn why it failed; there may be ten thousand."""
    return List(Slot.PODS, Kind.POD, label_selector=_of_submission(start))


def list_waiting_pods(start: DispatchStart) -> List:
    """List some of the job's pods that do not run, to learn why."""
    return List(
        Slot.PODS,
        Kind.POD,
        label_selector=_of_submission(start),
        field_selector="status.phase=Pending",
        most=MOST_WAITING,
    )


def _of_submission(start: DispatchStart) -> str:
    return f"{LABEL_JOB}={start.request.job},{LABEL_SUBMISSION}={start.request.submission}"


def get_trainer_job(start: DispatchStart) -> Get:
    """Read the Job that makes the trainer's pods, to learn how many of them are ready."""
    return Get(Slot.TRAINER_JOB, Kind.JOB, f"{start.target}-{NODE}-0")


def list_warnings(start: DispatchStart) -> List:
    """List the warnings about the TrainJob and the JobSet of its name, to learn why there are no pods."""
    return _list_warnings(Slot.WARNINGS, start.target)


def list_child_warnings(name: str) -> List:
    """List the warnings about one of the job's pods, or of its Jobs."""
    return _list_warnings(Slot.CHILD_WARNINGS, name)


def _list_warnings(slot: Slot, name: str) -> List:
    return List(slot, Kind.EVENT, field_selector=f"involvedObject.name={name},type=Warning", most=MOST_WARNINGS)


def create_copy(body: Json) -> Create:
    """Create the copy."""
    return Create(Slot.COPY, Kind.TRAINING_RUNTIME, body)


def create_train_job(body: Json, pause: float = 0.0) -> Create:
    """Create the TrainJob."""
    return Create(Slot.TRAIN_JOB, Kind.TRAIN_JOB, body, pause)


def adopt_copy(copy: TrainingRuntime, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Patch:
    """Bring dispatch's annotations and the framework's label of a leftover copy up to date."""
    return _patch_copy(copy, {"annotations": dict(annotations), "labels": dict(labels)})


def own_copy(copy: TrainingRuntime, owner: Json) -> Patch:
    """Make the TrainJob the copy's owner."""
    return _patch_copy(copy, {"ownerReferences": [owner]}, reads_after_failure=True)


def _patch_copy(copy: TrainingRuntime, metadata: Json, *, reads_after_failure: bool = False) -> Patch:
    meta = copy.metadata
    body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, **metadata}}
    return Patch(Slot.COPY, Kind.TRAINING_RUNTIME, meta.name, body, reads_after_failure=reads_after_failure)


def delete_copy(copy: TrainingRuntime) -> Delete:
    """Delete a copy that is ours and unowned."""
    meta = copy.metadata
    return Delete(Slot.COPY, Kind.TRAINING_RUNTIME, meta.name, meta.uid, meta.resource_version)


def delete_train_job(train_job: TrainJob) -> Delete:
    """Stop a TrainJob that is ours."""
    return Delete(Slot.TRAIN_JOB, Kind.TRAIN_JOB, train_job.metadata.name, train_job.metadata.uid)


def expire_train_job(train_job: TrainJob, reason: str) -> Delete:
    """Delete a TrainJob that has ended, some time after."""
    return replace(delete_train_job(train_job), reason=reason)


def set_suspend(train_job: TrainJob, *, suspend: bool) -> Patch:
    """Open, hold or release the gate in plain mode."""
    mark = {} if suspend else {"annotations": _opened(train_job)}
    body = {"metadata": {"uid": train_job.metadata.uid, **mark}, "spec": {"suspend": suspend}}
    return Patch(Slot.TRAIN_JOB, Kind.TRAIN_JOB, train_job.metadata.name, body)


def _opened(train_job: TrainJob) -> Json:
    return {ANNOTATION_OPENED: train_job.metadata.uid}


def set_gates(train_job: TrainJob, names: tuple[str, ...]) -> Patch:
    """Open the gate in Kueue mode: write the names that are left in the annotation."""
    meta = train_job.metadata
    annotations = {ANNOTATION_GATED_BY: ",".join(names) or None, **_opened(train_job)}
    body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": annotations}}
    return Patch(Slot.TRAIN_JOB, Kind.TRAIN_JOB, meta.name, body)


def hold_workload(workload: Workload, generation: int) -> Patch:
    """Hold a job in Kueue mode; the mark says that it was us, and for which generation of the DispatchStart."""
    return _patch_workload(workload, active=False, held=str(generation))


def release_workload(workload: Workload) -> Patch:
    """Release a job that we hold in Kueue mode, and take off the mark."""
    return _patch_workload(workload, active=True, held=None)


def _patch_workload(workload: Workload, *, active: bool, held: str | None) -> Patch:
    meta = workload.metadata
    marked = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": {ANNOTATION_HELD: held}}
    return Patch(Slot.WORKLOAD, Kind.WORKLOAD, meta.name, {"metadata": marked, "spec": {"active": active}})


def patch_backend_status(backend: DispatchBackend, status: BackendStatus) -> Patch:
    """Write a backend's status, if nobody has written the object since."""
    return _patch_status(Slot.BACKEND, backend, status)


def patch_start_status(start: DispatchStart, status: StartStatus) -> Patch:
    """Make a start's status exactly this one, if nobody has written the object since."""
    return _patch_status(Slot.START, start, status)


def _patch_status(slot: Slot, obj: DispatchStart | DispatchBackend, status: Status) -> Patch:
    meta = obj.metadata
    versions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {"metadata": versions, "status": _exactly(status)}
    return Patch(slot, obj.KIND, meta.name, body, subresource="status")


def _exactly(status: Status) -> dict[str, Any]:
    """Return a merge patch that takes away what does not stand any more, also where that could not be read."""
    told = status.as_json()
    values = ((field.encode_name, getattr(status, field.name)) for field in fields_of(type(status)))
    return {key: _exactly(value) if isinstance(value, Status) else told.get(key) for key, value in values}
