"""The frame: kopf watches, and every event asks the work queue for a reconcile. Nothing is decided here."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from typing import Any, NamedTuple, cast

import kopf

from dispatch_operator.api.group import API_VERSION, KUEUE_GROUP, LABEL_JOB, LABEL_MANAGED_BY, MANAGED_BY
from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.api.quoting import escaped
from dispatch_operator.controllers.admission_check import AdmissionChecks
from dispatch_operator.controllers.backend import BackendController
from dispatch_operator.controllers.enqueue import backends_of, starts_of, targets_of, workloads_of
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.missed_deletions import MissedDeletions, Relists
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.events import Owned, events
from dispatch_operator.reconcile.reconciler import Reconciler
from dispatch_operator.records.reading import AnyRecord, RecordError, read_watched

logger = logging.getLogger(__name__)

MAX_CONCURRENT = 20
"""Objects that are reconciled at the same time. The API server answers more requests no sooner; they only wait."""
PROBES = 4
"""Backends that are probed at once; each probe is a Start, and waits most of its time."""
GRACE_PERIOD = 5.0
"""Seconds that a reconcile under way is given to end when the operator stops."""


LOGIN_PAUSE = 5.0
"""Seconds."""


WATCHED: Mapping[Kind, str] = {
    Kind.DISPATCH_BACKEND: "",
    Kind.CLUSTER_TRAINING_RUNTIME: "",
    Kind.TRAINING_RUNTIME: "",
    Kind.TRAIN_JOB: f"{LABEL_MANAGED_BY}={MANAGED_BY}",
    Kind.JOB_SET: LABEL_JOB,
    Kind.WORKLOAD: "",
    Kind.ADMISSION_CHECK: "",
    Kind.DISPATCH_START: "",
}
"""The kinds that wake reconciles, and the label selector of those objects that do."""
NAMESPACED = tuple(kind for kind in WATCHED if kind is not Kind.ADMISSION_CHECK)

Concerned = Callable[[Store, AnyRecord], Iterable[Key]]


class Route(NamedTuple):
    """A work queue, and whom of its keys a change of an object concerns."""

    queue: WorkQueue[Key]
    concerned: Concerned


def required_watches(namespaces: Sequence[str]) -> Iterator[str]:
    """Yield the paths that must be watched: all but Kueue's, which a cluster may lack.

    Args:
        namespaces: To serve; none for all.
    """
    for resource in (RESOURCES[kind] for kind in NAMESPACED):
        if resource.group != KUEUE_GROUP:
            scopes = namespaces if resource.namespaced and namespaces else (None,)
            yield from (resource.path(namespace) for namespace in scopes)


def register(client: Client, watching: Callable[[str], None], *, clusterwide: bool) -> kopf.OperatorRegistry:
    """Return kopf's registry of all handlers of one operator, around one cache and its work queues.

    Args:
        client: Where to.
        watching: Called with the path of a watch when it begins, which is when kopf has its list whole.
        clusterwide: Whether every namespace is served.
    """
    registry = kopf.OperatorRegistry()
    store = Store()
    starts = WorkQueue(Reconciler(client, store, _record_events).reconcile, max_concurrent=MAX_CONCURRENT)
    leftovers = WorkQueue(
        Leftovers(ForegroundDeletion(client, store), OrphanedCopies(client, store)).reconcile,
        max_concurrent=MAX_CONCURRENT,
    )
    checks = WorkQueue(AdmissionChecks(client, store).reconcile, max_concurrent=MAX_CONCURRENT)
    backends = WorkQueue(BackendController(client, store, _record_events).reconcile, max_concurrent=PROBES)
    routes = [Route(starts, starts_of), Route(backends, backends_of), Route(leftovers, targets_of)]
    if clusterwide:
        # AdmissionChecks are the cluster's: a namespaced operator only reads them.
        routes.append(Route(checks, workloads_of))
    contexts: list[Context] = []
    gone = _as_kopf_does(contexts, _gone(store, routes))
    missed = WorkQueue(MissedDeletions(client, store, WATCHED, gone).reconcile, max_concurrent=MAX_CONCURRENT)
    kopf.on.login(registry=registry)(_login(client, _answered(watching, missed)))
    for kind in WATCHED if clusterwide else NAMESPACED:
        where = _kopf_resource(kind)
        plural = where[2]
        # kopf fills every index before it calls the first event handler: no reconcile begins with a half-filled cache.
        kopf.index(*where, id=f"store {plural}", registry=registry)(_put(store, kind, contexts))
        kopf.on.event(*where, id=f"wake {plural}", registry=registry)(_wake(store, routes, kind))

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
        await asyncio.gather(
            *(queue.close(grace_period=GRACE_PERIOD) for queue in (missed, *(route.queue for route in routes)))
        )

    return registry


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings for a level-triggered operator that keeps nothing on the objects it watches."""
    made = kopf.OperatorSettings()
    # CRDs and namespaces are not watched, so that a Role is enough.
    made.scanning.disabled = True
    made.posting.reporting_component = MANAGED_BY
    made.posting.event_name_prefix = "dispatch-"
    made.peering.standalone = True
    for kind, selector in WATCHED.items():
        if selector:
            made.watching.label_selectors[_kopf_resource(kind)] = selector
    return made


def _answered(watching: Callable[[str], None], missed: WorkQueue[Key]) -> Callable[[str, bool], None]:
    """Return what is told of each list and watch of kopf's."""
    relists = Relists()

    def answered(path: str, watch: bool) -> None:  # noqa: FBT001 - an answer of aiohttp's.
        if watch:
            watching(path)
        if relists.answered(path, watch=watch):
            plural, namespace = path.rpartition("/")[2], path.partition("/namespaces/")[2].partition("/")[0]
            missed.add(Key(namespace, next(kind for kind in WATCHED if RESOURCES[kind].plural == plural)))

    return answered


def _login(client: Client, answered: Callable[[str, bool], None]) -> Callable[..., Any]:
    logins = itertools.count()

    async def login(**_: Any) -> kopf.AiohttpSession:  # noqa: ANN401 - kopf's arguments.
        if next(logins):
            # The API server did not accept the credentials; they are read anew, but not as fast as it refuses them.
            await asyncio.sleep(LOGIN_PAUSE)
        return kopf.AiohttpSession(server=client.server, aiohttp_session=client.session(answered))

    return login


def _kopf_resource(kind: Kind) -> tuple[str, str, str]:
    resource = RESOURCES[kind]
    return resource.group, resource.version, resource.plural


def _as_kopf_does(contexts: list[Context], gone: Callable[[AnyRecord], None]) -> Callable[[AnyRecord], None]:
    """Enqueue in a context of kopf's handlers: in others, `kopf.event` knows nowhere to post Events."""
    return lambda obj: contexts[0].copy().run(gone, obj)


def _put(store: Store, kind: Kind, contexts: list[Context]) -> Callable[..., Any]:
    # Asynchronous, because kopf runs plain functions in threads, and the store is the event loop's alone.
    async def put(body: kopf.Body, **_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
        if not contexts:
            contexts.append(copy_context())
        if obj := _read(kind, dict(body)):
            store.put(obj)

    return put


def _wake(store: Store, routes: Iterable[Route], kind: Kind) -> Callable[..., Any]:
    gone = _gone(store, routes)

    async def wake(event: kopf.RawEvent, **_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
        obj = _read(kind, cast("dict[str, Any]", event["object"]))
        if obj is None:
            return
        if event["type"] == "DELETED":
            gone(obj)
        else:
            _enqueue(_concerned(store, routes, obj))

    return wake


def _read(kind: Kind, raw: Mapping[str, Any]) -> AnyRecord | None:
    try:
        return read_watched(kind, raw)
    except RecordError as error:
        # One object that can't be read must not keep the others from being served.
        meta = raw.get("metadata") or {}
        who = f"{kind} {meta.get('namespace')}/{meta.get('name')}"
        logger.warning("%s can't be read, and is left alone: %s", escaped(who), escaped(str(error)))
        return None


def _gone(store: Store, routes: Iterable[Route]) -> Callable[[AnyRecord], None]:
    def gone(obj: AnyRecord) -> None:
        concerned = _concerned(store, routes, obj)
        store.drop(obj)
        _enqueue(concerned)

    return gone


def _concerned(store: Store, routes: Iterable[Route], obj: AnyRecord) -> list[tuple[WorkQueue[Key], Key]]:
    return [(queue, key) for queue, concerned in routes for key in set(concerned(store, obj))]


def _enqueue(concerned: Iterable[tuple[WorkQueue[Key], Key]]) -> None:
    for queue, key in concerned:
        queue.add(key)


def _record_events(before: Owned, after: Owned) -> None:
    meta = after.metadata
    for event in events(before, after):
        logger.info("%s/%s: %s", meta.namespace, meta.name, escaped(event.message))
        reference = {
            "apiVersion": API_VERSION,
            "kind": after.KIND.value,
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        }
        body = kopf.Body(cast("kopf.RawBody", reference))
        kopf.event(body, type=event.type, reason=event.reason, message=event.message)
