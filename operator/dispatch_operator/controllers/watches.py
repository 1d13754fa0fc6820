"""What is watched, and what a change of it wakes: the store is kept, and the keys that it concerns are enqueued."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dispatch_operator.api.group import LABEL_JOB
from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.api.names import is_object_name
from dispatch_operator.controllers.shard import NotesLabels, Shard
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.known_objects import Identity, read_metadata
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector, ResourceEventHandler
from dispatch_operator.kube.reflectors import Supervised
from dispatch_operator.kube.store import Store
from dispatch_operator.records.reading import AnyRecord, read_watched


class Watch(NamedTuple):
    """How a kind is watched."""

    kind: Kind
    required: bool = True
    """Whether the operator is of no use without it; a cluster may lack Kueue."""
    label_selector: str = ""
    metadata_only: bool = False
    clusterwide_only: bool = False
    """Whether only a cluster-wide operator may watch it."""


WATCHES = (
    Watch(Kind.DISPATCH_BACKEND),
    Watch(Kind.CLUSTER_TRAINING_RUNTIME, metadata_only=True),
    Watch(Kind.TRAINING_RUNTIME, metadata_only=True),
    # Without a label: somebody may take it off a TrainJob whose end a Start waits for.
    Watch(Kind.TRAIN_JOB),
    Watch(Kind.JOB_SET, label_selector=LABEL_JOB),
    Watch(Kind.WORKLOAD, required=False),
    Watch(Kind.ADMISSION_CHECK, required=False, clusterwide_only=True),
    # Last, so that most of what a DispatchStart rests on is known when it is reconciled first.
    Watch(Kind.DISPATCH_START),
)


class Route(NamedTuple):
    """A work queue, and whom of its keys a change of an object concerns."""

    queue: WorkQueue[Key]
    concerned: Callable[[Store, AnyRecord], Iterable[Key]]
    may_wait: Collection[Kind] = ()
    """The kinds of which several changes in a short time are looked at once, where the key is at rest."""

    def wake(self, kind: Kind, key: Key) -> None:
        """Have a key reconciled that a change of an object of a kind concerns."""
        if kind in self.may_wait:
            self.queue.add_soon(key)
        else:
            self.queue.add(key)


class StoreAndEnqueue:
    """Handles the events of one kind's reflector."""

    def __init__(self, kind: Kind, store: Store, routes: Sequence[Route]) -> None:
        self._kind = kind
        self._store = store
        self._routes = routes

    def added_or_modified(self, raw: dict[str, Any], *, listed: bool) -> None:
        """Keep an object, and wake whom it concerns.

        Raises:
            RecordError: It is not what its kind promises.
        """
        if not is_relevant(self._kind, raw):
            self._forget(read_metadata(raw)[0])
            return
        obj = (None if listed else self._held(raw)) or read_watched(self._kind, raw)
        self._store.put(obj, listed=listed)
        self._enqueue(self._concerned(obj))

    def deleted(self, identity: Identity) -> None:
        """Forget an object, and wake whom it concerned."""
        self._forget(identity)

    def synced(self) -> None:
        """Nothing waits for this alone."""

    def _held(self, raw: dict[str, Any]) -> AnyRecord | None:
        """Return what is held of just this state of an object: most that is told of a Start is the operator's write."""
        identity, resource_version = read_metadata(raw)
        held = self._store.held(self._kind, Key(identity.namespace, identity.name), identity.uid)
        return held if held is not None and held.metadata.resource_version == resource_version else None

    def _forget(self, identity: Identity) -> None:
        held = self._store.held(self._kind, Key(identity.namespace, identity.name), identity.uid)
        if held is None:
            return
        self._store.note_end(held)
        concerned = self._concerned(held)
        self._store.drop(held)
        self._enqueue(concerned)

    def _concerned(self, obj: AnyRecord) -> list[tuple[Route, Key]]:
        return [(route, key) for route in self._routes for key in set(route.concerned(self._store, obj))]

    def _enqueue(self, concerned: Iterable[tuple[Route, Key]]) -> None:
        for route, key in concerned:
            route.wake(self._kind, key)


def is_relevant(kind: Kind, raw: dict[str, Any]) -> bool:
    """Tell whether an object may ever matter: there may be thousands of others, and they must cost next to nothing.

    A TrainJob or a JobSet matters when its name is one that Starts give. A Workload matters when it lists admission
    checks, one of which may be dispatch's, or when such a TrainJob owns it.
    """
    match kind, raw:
        case ((Kind.TRAIN_JOB | Kind.JOB_SET), {"metadata": {"name": str(name)}}):
            return is_object_name(name)
        case Kind.WORKLOAD, {"status": {"admissionChecks": [_, *_]}}:
            return True
        case Kind.WORKLOAD, {"metadata": {"ownerReferences": [*owners]}}:
            return any(map(_is_target, owners))
        case Kind.WORKLOAD, _:
            return False
        case _:
            return True


def _is_target(owner: object) -> bool:
    match owner:
        case {"kind": Kind.TRAIN_JOB.value, "name": str(name)}:
            return is_object_name(name)
    return False


def supervised(  # noqa: PLR0913 - what a reflector needs.
    client: Client,
    store: Store,
    routes: Sequence[Route],
    namespaces: Sequence[str],
    *,
    clock: Callable[[], float],
    shard: Shard,
) -> Iterator[Supervised]:
    """Yield a reflector for each kind, or for each namespace of it.

    Args:
        client: Where to.
        store: What the watches tell is kept here.
        routes: Whom changes wake.
        namespaces: To serve; none for all.
        clock: Seconds, for the reflectors' state.
        shard: Learns of the labels of DispatchStarts.
    """
    for watch in WATCHES:
        if watch.clusterwide_only and namespaces:
            continue
        handler: ResourceEventHandler = StoreAndEnqueue(watch.kind, store, routes)
        if watch.kind is Kind.DISPATCH_START:
            handler = NotesLabels(shard, handler)
        for namespace in (namespaces or (None,)) if RESOURCES[watch.kind].namespaced else (None,):
            source = ListWatch(client, watch.kind, namespace, watch.label_selector, watch.metadata_only)
            yield Supervised(Reflector(source, handler, clock), watch.required)
