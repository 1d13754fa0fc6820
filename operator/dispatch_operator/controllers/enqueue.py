"""Whom an event wakes: from an object that has changed to the keys of each controller that it concerns."""

from collections.abc import Iterable

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store, runtime_key
from dispatch_operator.reconcile.ownership import maker
from dispatch_operator.records.base import KubeObject
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.kueue import AdmissionCheck, Workload
from dispatch_operator.records.reading import AnyRecord
from dispatch_operator.records.trainer import ClusterTrainingRuntime, JobSet, TrainingRuntime, TrainJob

MADE_BY_STARTS = frozenset({Kind.TRAIN_JOB, Kind.TRAINING_RUNTIME, Kind.JOB_SET, Kind.WORKLOAD})
"""Kinds of what belongs to a Start; once it is whole, they change several times together."""


def is_whole(store: Store, key: Key) -> bool:
    """Tell whether a DispatchStart has started, as far as is known: nothing that is told of its objects is urgent."""
    start = store.get(DispatchStart, *key)
    return start is not None and start.status.says_started


def starts_of(store: Store, obj: AnyRecord) -> Iterable[Key]:
    """Return the DispatchStarts that a change of this object may concern."""
    key, namespace = key_of(obj), obj.metadata.namespace
    match obj:
        case DispatchStart():
            # Another submission of the same name may wait for this one to end.
            concerned = {key, *store.starts_by_target.of(Key(namespace, obj.target))}
            return concerned - {key} if store.is_quiet(obj) else concerned
        case DispatchBackend():
            return [] if store.is_quiet(obj) else store.starts_by_backend.of(key)
        case TrainJob() | JobSet():
            return store.starts_by_target.of(key)
        case Workload() if not store.is_quiet(obj):
            jobs = [owner.name for owner in obj.metadata.owner_references if owner.kind == Kind.TRAIN_JOB]
            return [start for job in jobs for start in store.starts_by_target.of(Key(namespace, job))]
        case ClusterTrainingRuntime():
            return store.starts_by_runtime.of(runtime_key(obj.KIND, *key))
        case TrainingRuntime():
            return store.starts_by_target.of(key) | store.starts_by_runtime.of(runtime_key(obj.KIND, *key))
        case _:
            return []


def workloads_of(store: Store, obj: AnyRecord) -> Iterable[Key]:
    """Return the Workloads, and the AdmissionCheck itself, whose state a change of this object may concern."""
    match obj:
        case Workload():
            return [key_of(obj)]
        case AdmissionCheck():
            return [key_of(obj), *store.workloads_by_check.of(obj.metadata.name)]
        case TrainJob() | DispatchStart():
            jobs = [store.get(TrainJob, *target) for target in targets_of(store, obj)]
            owners = [Key(obj.metadata.namespace, job.metadata.uid) for job in jobs if job]
            return [workload for owner in owners for workload in store.workloads_by_owner.of(owner)]
        case _:
            return []


def backends_of(store: Store, obj: AnyRecord) -> Iterable[Key]:
    """Return the DispatchBackends whose probe a change of this object may concern."""
    match obj:
        case DispatchBackend():
            return [key_of(obj)]
        case TrainingRuntime():
            return {*_probed_backend(obj), *store.backends_by_runtime.of(runtime_key(obj.KIND, *key_of(obj)))}
        case TrainJob():
            return _probed_backend(obj)
        case _:
            return []


def targets_of(store: Store, obj: AnyRecord) -> Iterable[Key]:
    """Return the names of the copies and TrainJobs that an object is, or that it is the start or backend of."""
    match obj:
        case DispatchBackend():
            return {key_of(left) for left in store.left_by_probes(obj)}
        case DispatchStart():
            return [Key(obj.metadata.namespace, obj.target)] if obj.target else []
        case TrainJob():
            return [key_of(obj)]
        case TrainingRuntime() if obj.KIND is Kind.TRAINING_RUNTIME:
            return [key_of(obj)]
        case _:
            return []


def key_of(obj: AnyRecord) -> Key:
    """Return an object's key among those of its kind."""
    return Key(obj.metadata.namespace, obj.metadata.name)


def _probed_backend(obj: KubeObject) -> list[Key]:
    """Return the backend that an object was made for by a probe."""
    match maker(obj):
        case Kind.DISPATCH_BACKEND, name:
            return [Key(obj.metadata.namespace, name)]
    return []
