"""What the watches last said: enough to wake a reconcile and to begin one, never for a verdict.

See docs/contract.md, Live verdicts.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar, cast

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.index import Index, Key
from dispatch_operator.kube.tally import Tally
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.reading import AnyRecord
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob

R = TypeVar("R", bound=AnyRecord)
ERROR_CLASSES = frozenset(ErrorClass)


class Store:
    """Objects by kind, namespace and name; nothing here costs more for an object because there are others."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[Key, AnyRecord]] = {kind: {} for kind in Kind}
        self.starts_by_target = Index(DispatchStart, _target_of_start)
        self.starts_by_backend = Index(DispatchStart, lambda start: [Key(start.metadata.namespace, start.backend)])
        self.starts_by_runtime = Index(DispatchStart, _runtime_of_start)
        self.backends_by_runtime = Index(DispatchBackend, lambda backend: [_scoped(backend, *backend.probe_runtime)])
        self.workloads_by_owner = Index(Workload, _owners_of_workload)
        self.workloads_by_check = Index(Workload, lambda held: [check.name for check in held.status.admission_checks])
        self.jobs_of_probes = Index(TrainJob, _start_of_probe)
        self.copies_of_probes = Index(TrainingRuntime, _start_of_probe)
        self.starts_by_state = Tally(DispatchStart, _state_of_start)
        self.backends_by_state = Tally(DispatchBackend, _state_of_backend)
        indexes: Iterable[Index[Any] | Tally[Any, Any]] = (
            self.starts_by_target,
            self.starts_by_backend,
            self.starts_by_runtime,
            self.backends_by_runtime,
            self.workloads_by_owner,
            self.workloads_by_check,
            self.jobs_of_probes,
            self.copies_of_probes,
            self.starts_by_state,
            self.backends_by_state,
        )
        self._indexes: dict[Kind, list[Index[Any] | Tally[Any, Any]]] = {kind: [] for kind in Kind}
        for index in indexes:
            self._indexes[index.kind.KIND].append(index)
        self._gone: dict[Kind, dict[Key, AnyRecord]] = {kind: {} for kind in Kind}
        """What a live read did not find any more, until the watch tells of its deletion."""
        self._quiet: dict[str, str] = {}
        """By UID, the resourceVersion that tells nothing new."""
        self._told: dict[str, tuple[object, ...]] = {}
        """By UID of a backend, what the watch has told of it that a Start reads."""
        self._waiting: set[asyncio.Future[None]] = set()

    def __iter__(self) -> Iterator[AnyRecord]:
        """Iterate over all objects."""
        return chain.from_iterable(objects.values() for objects in self._objects.values())

    def get(self, kind: type[R], namespace: str, name: str) -> R | None:
        """Return what the watch last said of an object; None when it said nothing, or that it is gone."""
        return cast("R | None", self._objects[kind.KIND].get(Key(namespace, name)))

    def held(self, kind: Kind, key: Key, uid: str) -> AnyRecord | None:
        """Return what was last known of an object of this UID, also when it was dropped because it is gone."""
        known = (self._objects[kind].get(key), self._gone[kind].get(key))
        return next((obj for obj in known if obj is not None and obj.metadata.uid == uid), None)

    def put(self, obj: AnyRecord, *, listed: bool = False) -> None:
        """Keep an object as a watch tells of it, unless a newer state of it is held already.

        Args:
            obj: The object.
            listed: Whether a list tells of it: then no other state is newer, whatever versions say. Etcd may have been
                restored from a backup.
        """
        meta = obj.metadata
        key = Key(meta.namespace, meta.name)
        held = self._objects[obj.KIND].get(key)
        if not listed and held is not None and held.metadata.uid == meta.uid and _version(held) > _version(obj):
            return
        self._gone[obj.KIND].pop(key, None)
        if isinstance(obj, Workload) and isinstance(held, Workload) and what_matters(held) == what_matters(obj):
            self._quiet[meta.uid] = meta.resource_version
        if isinstance(obj, DispatchBackend):
            self._hear_of(obj)
        self._replace(key, held, obj)

    def _hear_of(self, backend: DispatchBackend) -> None:
        """Note whether a watch tells anything of a backend that a Start reads; what was written here may be held."""
        uid, told = backend.metadata.uid, what_starts_read(backend)
        if self._told.get(uid) == told:
            self._quiet[uid] = backend.metadata.resource_version
        else:
            self._quiet.pop(uid, None)
        self._told[uid] = told

    def refresh(self, obj: AnyRecord) -> None:
        """Keep an object as a request of this operator found or left it, unless a watch has told of its end since."""
        key = Key(obj.metadata.namespace, obj.metadata.name)
        held = self._objects[obj.KIND].get(key)
        if held is None or held.metadata.uid != obj.metadata.uid or _version(held) > _version(obj):
            return
        self._replace(key, held, obj)

    def put_written(self, obj: AnyRecord) -> None:
        """Keep an object as this operator has just written it: a watch that then tells of it tells nothing new."""
        self.refresh(obj)
        if self.held(obj.KIND, Key(obj.metadata.namespace, obj.metadata.name), obj.metadata.uid):
            self._quiet[obj.metadata.uid] = obj.metadata.resource_version

    def note_end(self, obj: AnyRecord) -> None:
        """Note that an object is about to be dropped: its end is news, whether its last state was or not."""
        self._quiet.pop(obj.metadata.uid, None)

    def drop(self, obj: AnyRecord) -> None:
        """Forget an object that is gone, unless another of its name is held already."""
        key = Key(obj.metadata.namespace, obj.metadata.name)
        self._gone[obj.KIND].pop(key, None)
        held = self._objects[obj.KIND].get(key)
        if held is None or held.metadata.uid != obj.metadata.uid:
            return
        self._quiet.pop(obj.metadata.uid, None)
        self._told.pop(obj.metadata.uid, None)
        self._replace(key, held, None)

    def drop_unfound(self, obj: AnyRecord) -> None:
        """Forget an object that a live read did not find; its deletion is still to be told, and to wake others."""
        key = Key(obj.metadata.namespace, obj.metadata.name)
        held = self._objects[obj.KIND].get(key)
        if held is None or held.metadata.uid != obj.metadata.uid:
            return
        self.drop(obj)
        self._gone[obj.KIND][key] = held

    def is_quiet(self, obj: AnyRecord) -> bool:
        """Tell whether this state of an object tells nothing new: our own write, or a change of what nobody reads."""
        return self._quiet.get(obj.metadata.uid) == obj.metadata.resource_version

    def _replace(self, key: Key, before: AnyRecord | None, after: AnyRecord | None) -> None:
        kind = (after or before).KIND  # type: ignore[union-attr]  # One of them is there.
        if after is None:
            del self._objects[kind][key]
        else:
            self._objects[kind][key] = after
        for index in self._indexes[kind]:
            index.replace(key, before, after)
        for change in self._waiting:
            if not change.done():
                change.set_result(None)

    def workload(self, namespace: str, owner_uid: str) -> Workload | None:
        """Return the Workload that a TrainJob owns, whatever its name."""
        key = next(iter(self.workloads_by_owner.of(Key(namespace, owner_uid))), None)
        return self.get(Workload, *key) if key else None

    async def workload_of(self, namespace: str, owner_uid: str, seconds: float) -> Workload | None:
        """Return the Workload that a TrainJob owns once it lists admission checks, or as it is after some seconds."""

        def is_listed() -> bool:
            workload = self.workload(namespace, owner_uid)
            return workload is not None and bool(workload.status.admission_checks)

        await self.until(is_listed, seconds)
        return self.workload(namespace, owner_uid)

    def left_by_probes(self, backend: DispatchBackend) -> list[TrainJob | TrainingRuntime]:
        """Return the TrainJobs and the copies that probes of a backend have made."""
        uid = backend.metadata.uid
        jobs = [self.get(TrainJob, *key) for key in self.jobs_of_probes.of(uid)]
        copies = [self.get(TrainingRuntime, *key) for key in self.copies_of_probes.of(uid)]
        return [left for left in (*jobs, *copies) if left is not None]

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until what the watches say fulfils a condition, for some seconds at most; tell whether it does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    change = asyncio.get_running_loop().create_future()
                    self._waiting.add(change)
                    try:
                        await change
                    finally:
                        self._waiting.discard(change)
        return condition()

    async def gone(self, kind: type[AnyRecord], key: Key, uid: str, seconds: float) -> bool:
        """Wait until the watch says that an object is gone, for some seconds at most; tell whether it says so."""

        def is_gone() -> bool:
            held = self._objects[kind.KIND].get(key)
            return held is None or held.metadata.uid != uid

        return await self.until(is_gone, seconds)


def what_matters(workload: Workload) -> tuple[object, ...]:
    """Return what a reconcile reads of a Workload.

    Of one that is gated the conditions are left out: while its queue is blocked too, two controllers of Kueue 0.19
    overwrite each other's reason many times a second (docs/design/2026-11-30-kueue-observed.md).
    """
    meta, status = workload.metadata, workload.status
    conditions = () if meta.gates else status.conditions
    whose = (meta.uid, meta.gates, meta.owner_references)
    return (*whose, workload.spec.active, conditions, status.admission_checks, status.scheduling_stats)


def what_starts_read(backend: DispatchBackend) -> tuple[object, ...]:
    """Return what a reconcile of a DispatchStart reads of its backend: when it was last probed is not of it."""
    meta, status = backend.metadata, backend.status
    gates = tuple((gate.name, gate.proven, gate.reason) for gate in status.gates)
    # Only where there is no verdict yet, a Start tells how far the probe is.
    progress = None if gates else status.condition("Ready")
    return meta.generation, meta.is_terminating, backend.fault, gates, progress and progress.message


def runtime_key(kind: str, namespace: str, name: str) -> tuple[str, Key]:
    """Return by what a runtime is named: a ClusterTrainingRuntime belongs to no namespace."""
    return kind, Key("" if kind == Kind.CLUSTER_TRAINING_RUNTIME else namespace, name)


def _scoped(obj: AnyRecord, kind: str, name: str) -> tuple[str, Key]:
    return runtime_key(kind, obj.metadata.namespace, name)


def _target_of_start(start: DispatchStart) -> Iterable[Key]:
    return [Key(start.metadata.namespace, start.target)] if start.target else []


def _runtime_of_start(start: DispatchStart) -> Iterable[tuple[str, Key]]:
    reference = start.request.spec.extensions.runtime_ref
    return [_scoped(start, reference.kind, reference.name)] if reference else []


def _owners_of_workload(workload: Workload) -> Iterable[Key]:
    # What names an owner in another namespace has none.
    return [Key(workload.metadata.namespace, owner.uid) for owner in workload.metadata.owner_references]


def _start_of_probe(obj: TrainJob | TrainingRuntime) -> Iterable[str]:
    """Return the DispatchBackend that an object was made for: the label may be gone that says so, too."""
    owner = obj.metadata.controller
    is_probes = obj.metadata.labels.probe or (owner and owner.kind == Kind.DISPATCH_BACKEND)
    return obj.metadata.marks if is_probes else ()


def _state_of_start(start: DispatchStart) -> tuple[str, str]:
    """Return a phase and an error class: words of ours, whatever somebody wrote into the status."""
    ready = start.status.condition(Condition.READY)
    return start.status.phase or "Unseen", ready.reason if ready and ready.reason in ERROR_CLASSES else ""


def _state_of_backend(backend: DispatchBackend) -> tuple[str, str]:
    ready = backend.status.condition(Condition.READY)
    return backend.valid.spec.state if backend.valid else "Invalid", ready.status if ready else "Unknown"


def _version(obj: AnyRecord) -> int:
    """Return a resourceVersion as the number that Kubernetes 1.35 promises it to be; 0 where it is none."""
    version = obj.metadata.resource_version
    return int(version) if version.isdecimal() else 0
