"""What the watches last said: enough to wake a reconcile and to begin one, never for a verdict (section 4, rule 1)."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from dispatch_operator.api.group import ANNOTATION_START, LABEL_PROBE
from dispatch_operator.api.kinds import Kind
from dispatch_operator.reconcile.backend.proof import probe_runtime
from dispatch_operator.reconcile.observation import Object, Observation, Observed, at
from dispatch_operator.reconcile.ownership import gates, made_for, owners, uid_of
from dispatch_operator.reconcile.sanitized import sanitized
from dispatch_operator.render import start_options, target_name

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Key(NamedTuple):
    """Which DispatchStart, or which name of a copy and a TrainJob."""

    namespace: str
    name: str


class Store:
    """Objects by kind, namespace and name, and which DispatchStarts each of them concerns."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._targets: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._workloads: dict[Key, Key] = {}
        """By the namespace and the owner's UID: what names an owner in another namespace has none."""
        self._awaited: dict[Key, asyncio.Future[None]] = {}
        self._written: dict[str, str] = {}
        self._unmoved: dict[str, str] = {}
        self._waiting: set[asyncio.Future[None]] = set()

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return what the watch last said of an object; None when it said nothing, or that it is gone."""
        return self._objects.get((kind, namespace, name))

    def put(self, kind: str, obj: Object) -> None:
        """Keep an object, unless a newer state of it is held already."""
        key = (kind, at(obj, "metadata", "namespace") or "", at(obj, "metadata", "name"))
        held = self._objects.get(key)
        if held is not None and uid_of(held) == uid_of(obj) and _version(held) > _version(obj):
            return
        if kind == Kind.WORKLOAD and held is not None and what_matters(held) == what_matters(obj):
            self._unmoved[uid_of(obj)] = str(at(obj, "metadata", "resourceVersion"))
        self._objects[key] = _slim(sanitized(obj) if kind == Kind.DISPATCH_START else obj)
        self._tell()
        if kind == Kind.DISPATCH_START and (target := target_name(obj)):
            self._targets[key[1], target].add(key[2])
        if kind == Kind.WORKLOAD:
            self._put_workload(obj)

    def put_written(self, kind: str, obj: Object) -> None:
        """Keep an object as this operator has just written it: a watch that then tells of it tells nothing new."""
        self.put(kind, obj)
        self._written[uid_of(obj)] = at(obj, "metadata", "resourceVersion")

    def drop(self, kind: str, obj: Object) -> None:
        """Forget an object that is gone, unless another of its name is held already."""
        namespace, name = at(obj, "metadata", "namespace") or "", at(obj, "metadata", "name")
        held = self._objects.get((kind, namespace, name))
        if held is None or uid_of(held) != uid_of(obj):
            return
        del self._objects[kind, namespace, name]
        self._written.pop(uid_of(obj), None)
        self._unmoved.pop(uid_of(obj), None)
        self._tell()
        if kind == Kind.DISPATCH_START and (target := target_name(obj)):
            self._targets[namespace, target].discard(name)
        if kind == Kind.WORKLOAD:
            for owner in owners(obj):
                if self._workloads.get(Key(namespace, owner["uid"])) == Key(namespace, name):
                    del self._workloads[Key(namespace, owner["uid"])]

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

    async def gone(self, kind: str, namespace: str, name: str, uid: str, seconds: float) -> bool:
        """Wait until the watch says that an object is gone, for some seconds at most; tell whether it says so."""
        return await self.until(lambda: uid_of(self.get(kind, namespace, name)) != uid, seconds)

    def _tell(self) -> None:
        for change in self._waiting:
            if not change.done():
                change.set_result(None)

    def of_kind(self, kind: str, namespace: str | None) -> list[Object]:
        """Return all objects of a kind, in one namespace or in all."""
        return [
            obj for (held, held_in, _), obj in self._objects.items() if held == kind and namespace in (None, held_in)
        ]

    def workload(self, namespace: str, owner_uid: str) -> Object | None:
        """Return the Workload that a TrainJob owns, whatever its name."""
        key = self._workloads.get(Key(namespace, owner_uid))
        return self.get(Kind.WORKLOAD, *key) if key else None

    async def workload_of(self, namespace: str, owner_uid: str, seconds: float) -> Object | None:
        """Return the Workload that a TrainJob owns once it lists admission checks, or as it is after some seconds."""
        deadline = asyncio.get_running_loop().time() + seconds
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not at(self.workload(namespace, owner_uid), "status", "admissionChecks"):
                    await asyncio.shield(self._awaited.setdefault(Key(namespace, owner_uid), asyncio.Future()))
        return self.workload(namespace, owner_uid)

    def _put_workload(self, workload: Object) -> None:
        namespace, name = at(workload, "metadata", "namespace"), at(workload, "metadata", "name")
        for owner in owners(workload):
            self._workloads[Key(namespace, owner["uid"])] = Key(namespace, name)
            if waiting := self._awaited.pop(Key(namespace, owner["uid"]), None):
                waiting.set_result(None)

    def observe(self, key: Key) -> Observed | None:
        """Begin a reconcile with what is cached; None when the DispatchStart is gone."""
        start = self.get(Kind.DISPATCH_START, *key)
        if start is None:
            return None
        target = target_name(start) or ""
        train_job = self.get(Kind.TRAIN_JOB, key.namespace, target)
        return Observed(
            start=start,
            backend=Observation(self.get(Kind.DISPATCH_BACKEND, key.namespace, start_options(start).backend)),
            copy=Observation(self.get(Kind.TRAINING_RUNTIME, key.namespace, target)),
            train_job=Observation(train_job),
            workload=Observation(self.workload(key.namespace, uid_of(train_job))),
            job_set=self.get(Kind.JOB_SET, key.namespace, target),
        )

    def concerned(self, kind: str, obj: Object) -> Iterable[Key]:
        """Return the DispatchStarts that a change of this object may concern."""
        namespace, name = at(obj, "metadata", "namespace") or "", at(obj, "metadata", "name")
        match kind:
            case Kind.DISPATCH_START:
                # Another submission of the same name may wait for this one to end.
                concerned = {Key(namespace, name), *self._at_target(namespace, target_name(obj) or "")}
                return concerned - {Key(namespace, name)} if self._is_echo(obj) else concerned
            case Kind.DISPATCH_BACKEND:
                return [key for key, start in self._starts(namespace) if start_options(start).backend == name]
            case Kind.TRAIN_JOB | Kind.JOB_SET:
                return self._at_target(namespace, name)
            case Kind.WORKLOAD:
                if self._unmoved.get(uid_of(obj)) == at(obj, "metadata", "resourceVersion"):
                    return []
                names = [at(owner, "name") for owner in owners(obj) if at(owner, "kind") == Kind.TRAIN_JOB]
                return [key for name in names for key in self._at_target(namespace, name)]
            case Kind.TRAINING_RUNTIME:
                return {*self._at_target(namespace, name), *self._using(kind, name, namespace)}
            case _:
                return self._using(kind, name, None)

    def checked(self, kind: str, obj: Object) -> Iterable[Key]:
        """Return the Workloads, and the AdmissionCheck itself, whose state a change of this object may concern."""
        namespace, name = at(obj, "metadata", "namespace") or "", at(obj, "metadata", "name")
        match kind:
            case Kind.WORKLOAD:
                return [Key(namespace, name)]
            case Kind.ADMISSION_CHECK:
                return [
                    Key("", name),
                    *(
                        Key(held_in, held_name)
                        for (held, held_in, held_name), workload in self._objects.items()
                        if held == Kind.WORKLOAD
                        and any(at(entry, "name") == name for entry in at(workload, "status", "admissionChecks") or ())
                    ),
                ]
            case Kind.TRAIN_JOB | Kind.DISPATCH_START:
                jobs = [self.get(Kind.TRAIN_JOB, *target) for target in self.targets(kind, obj)]
                owned = [Key(namespace, uid_of(job)) for job in jobs]
                return [self._workloads[owner] for owner in owned if owner in self._workloads]
            case _:
                return []

    def probed(self, kind: str, obj: Object) -> Iterable[Key]:
        """Return the DispatchBackends whose probe a change of this object may concern."""
        namespace, name = at(obj, "metadata", "namespace") or "", at(obj, "metadata", "name")
        match kind:
            case Kind.DISPATCH_BACKEND:
                return [Key(namespace, name)]
            case Kind.CLUSTER_TRAINING_RUNTIME | Kind.TRAINING_RUNTIME:
                return {*_probe_of(obj), *self._probing(kind, name, namespace)}
            case Kind.TRAIN_JOB:
                return _probe_of(obj)
            case _:
                return []

    def left_by_probes(self, backend: Object) -> list[Object]:
        """Return the TrainJobs and the copies that probes of a backend have made."""
        return [
            obj
            for (kind, _, _), obj in self._objects.items()
            if kind in {Kind.TRAIN_JOB, Kind.TRAINING_RUNTIME}
            and at(obj, "metadata", "labels", LABEL_PROBE)
            and made_for(obj, backend)
        ]

    def targets(self, kind: str, obj: Object) -> Iterable[Key]:
        """Return the names of the copies and TrainJobs that an object is, or that it is the start or backend of."""
        namespace, name = at(obj, "metadata", "namespace") or "", at(obj, "metadata", "name")
        match kind:
            case Kind.DISPATCH_BACKEND:
                return [
                    Key(namespace, name)
                    for name in {str(at(left, "metadata", "name")) for left in self.left_by_probes(obj)}
                ]
            case Kind.DISPATCH_START:
                target = target_name(obj)
                return [Key(namespace, target)] if target else []
            case Kind.TRAIN_JOB | Kind.TRAINING_RUNTIME:
                return [Key(namespace, name)]
            case _:
                return []

    def _is_echo(self, obj: Object) -> bool:
        uid, version = uid_of(obj), at(obj, "metadata", "resourceVersion")
        return uid in self._written and self._written[uid] == version

    def _at_target(self, namespace: str, target: str) -> list[Key]:
        return [Key(namespace, name) for name in self._targets.get((namespace, target), ())]

    def _using(self, kind: str, name: str, namespace: str | None) -> list[Key]:
        path = ("spec", "request", "spec", "extensions", "kubeflow/RuntimeRef")
        return [
            key
            for key, start in self._starts(namespace)
            if at(start, *path, "name") == name and (at(start, *path, "kind") or Kind.CLUSTER_TRAINING_RUNTIME) == kind
        ]

    def _probing(self, kind: str, name: str, namespace: str) -> Iterator[Key]:
        """Yield the backends that are probed on a runtime; one of a namespace concerns only those beside it."""
        for (held, held_in, held_name), backend in self._objects.items():
            if held == Kind.DISPATCH_BACKEND and namespace in ("", held_in) and probe_runtime(backend) == (kind, name):
                yield Key(held_in, held_name)

    def _starts(self, namespace: str | None) -> Iterator[tuple[Key, Object]]:
        for (kind, held_in, name), obj in self._objects.items():
            if kind == Kind.DISPATCH_START and namespace in (None, held_in):
                yield Key(held_in, name), obj


def _probe_of(obj: Object) -> list[Key]:
    """Return the backend that an object was made for by a probe."""
    name = at(obj, "metadata", "annotations", ANNOTATION_START)
    is_probes = at(obj, "metadata", "labels", LABEL_PROBE) and isinstance(name, str)
    return [Key(at(obj, "metadata", "namespace") or "", name)] if is_probes else []


def what_matters(workload: Object) -> tuple[object, ...]:
    """Return what a reconcile reads of a Workload.

    Of one that is gated the conditions are left out: while its queue is blocked too, two controllers of Kueue 0.19
    overwrite each other's reason many times a second (docs/design/2026-11-30-kueue-observed.md).
    """
    conditions = () if gates(workload) else at(workload, "status", "conditions")
    status = [at(workload, "status", key) for key in ("admissionChecks", "schedulingStats")]
    return uid_of(workload), gates(workload), owners(workload), at(workload, "spec", "active"), conditions, *status


def _version(obj: Object) -> int:
    """Return a resourceVersion as the number that Kubernetes 1.35 promises it to be; 0 where it is none."""
    version = at(obj, "metadata", "resourceVersion")
    return int(version) if isinstance(version, str) and version.isdecimal() else 0


def _slim(obj: Object) -> dict[str, Any]:
    """Leave out what is large and never looked at."""
    meta: dict[str, Any] = {key: value for key, value in at(obj, "metadata").items() if key != "managedFields"}
    if annotations := meta.get("annotations"):
        meta["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**obj, "metadata": meta}
