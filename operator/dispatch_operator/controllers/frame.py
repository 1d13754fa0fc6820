"""The frame: kopf watches, and every event asks the work queue for a reconcile. Nothing is decided here."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context, copy_context
from typing import Any, NamedTuple, cast

import kopf

from dispatch_operator.api.group import (
    GROUP,
    KUEUE_GROUP,
    KUEUE_VERSION,
    LABEL_JOB,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    TRAINER_GROUP,
    TRAINER_VERSION,
    VERSION,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.quoting import escaped
from dispatch_operator.controllers.admission_check import AdmissionChecks
from dispatch_operator.controllers.backend import BackendController
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.missed_deletions import MissedDeletions, Relists
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.store import Key, Store
from dispatch_operator.reconcile.events import events
from dispatch_operator.reconcile.observation import Object
from dispatch_operator.reconcile.reconciler import Reconciler

logger = logging.getLogger(__name__)

MAX_CONCURRENT = 20
"""Reconciles different objects that go on at once: more than the API server answers sooner only adds waiting."""
PROBES = 4
"""Backends that are probed at once; each probe is a Start, and waits most of its time."""
GRACE_PERIOD = 5.0
"""Seconds that a reconcile under way is given to end when the operator stops."""


LOGIN_PAUSE = 5.0
"""Seconds."""


class Watched(NamedTuple):
    """A resource that wakes looks, and which of its objects do."""

    kind: str
    group: str
    version: str
    plural: str
    label_selector: str = ""
    namespaced: bool = True


WATCHED = (
    Watched(Kind.DISPATCH_BACKEND, GROUP, VERSION, "dispatchbackends"),
    Watched(Kind.CLUSTER_TRAINING_RUNTIME, TRAINER_GROUP, TRAINER_VERSION, "clustertrainingruntimes", namespaced=False),
    Watched(Kind.TRAINING_RUNTIME, TRAINER_GROUP, TRAINER_VERSION, "trainingruntimes"),
    Watched(Kind.TRAIN_JOB, TRAINER_GROUP, TRAINER_VERSION, "trainjobs", f"{LABEL_MANAGED_BY}={MANAGED_BY}"),
    Watched(Kind.JOB_SET, "jobset.x-k8s.io", "v1alpha2", "jobsets", LABEL_JOB),
    Watched(Kind.WORKLOAD, KUEUE_GROUP, KUEUE_VERSION, "workloads"),
    Watched(Kind.ADMISSION_CHECK, KUEUE_GROUP, KUEUE_VERSION, "admissionchecks"),
    Watched(Kind.DISPATCH_START, GROUP, VERSION, "dispatchstarts"),
)
NAMESPACED = tuple(watched for watched in WATCHED if watched.kind != Kind.ADMISSION_CHECK)


class Route(NamedTuple):
    """A work queue, and whom of its keys a change of an object concerns."""

    queue: WorkQueue[Key]
    concerned: Callable[[str, Object], Iterable[Key]]


def required_watches(namespaces: Iterable[str]) -> Iterator[str]:
    """Yield the paths that must be watched: all but Kueue's, which a cluster may lack.

    Args:
        namespaces: To serve; none for all.
    """
    for watched in NAMESPACED:
        if watched.group != KUEUE_GROUP:
            scopes = [f"/namespaces/{namespace}" for namespace in namespaces] if watched.namespaced else []
            for scope in scopes or [""]:
                yield f"/apis/{watched.group}/{watched.version}{scope}/{watched.plural}"


def register(client: Client, watching: Callable[[str], None], *, clusterwide: bool) -> kopf.OperatorRegistry:
    """Return kopf's registry of all handlers of one operator, around one cache and its work queues.

    Args:
        client: Where to.
        watching: Called with the path of a watch when it begins, which is when kopf has its list whole.
        clusterwide: Whether every namespace is served.
    """
    registry = kopf.OperatorRegistry()
    store = Store()
    starts = WorkQueue(Reconciler(client, store, _announce).reconcile, max_concurrent=MAX_CONCURRENT)
    leftovers = WorkQueue(
        Leftovers(ForegroundDeletion(client, store), OrphanedCopies(client, store)).reconcile,
        max_concurrent=MAX_CONCURRENT,
    )
    checks = WorkQueue(AdmissionChecks(client, store).reconcile, max_concurrent=MAX_CONCURRENT)
    backends = WorkQueue(BackendController(client, store, _announce).reconcile, max_concurrent=PROBES)
    routes = [Route(starts, store.concerned), Route(backends, store.probed), Route(leftovers, store.targets)]
    if clusterwide:
        # AdmissionChecks are the cluster's: a namespaced operator only reads them.
        routes.append(Route(checks, store.checked))
    selectors = {watched.kind: watched.label_selector for watched in WATCHED}
    contexts: list[Context] = []
    gone = _as_kopf_does(contexts, _gone(store, routes))
    missed = WorkQueue(MissedDeletions(client, store, selectors, gone).reconcile, max_concurrent=MAX_CONCURRENT)
    kopf.on.login(registry=registry)(_login(client, _answered(watching, missed)))
    for watched in WATCHED if clusterwide else NAMESPACED:
        where = (watched.group, watched.version, watched.plural)
        # kopf fills every index before it calls the first event handler: no reconcile begins with a half-filled cache.
        kopf.index(*where, id=f"cache {watched.plural}", registry=registry)(_put(store, watched.kind, contexts))
        kopf.on.event(*where, id=f"wake {watched.plural}", registry=registry)(_wake(store, routes, watched.kind))

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
    for watched in WATCHED:
        if watched.label_selector:
            key = (watched.group, watched.version, watched.plural)
            made.watching.label_selectors[key] = watched.label_selector
    return made


def _answered(watching: Callable[[str], None], missed: WorkQueue[Key]) -> Callable[[str, bool], None]:
    """Return what is told of each list and watch of kopf's."""
    relists = Relists()

    def answered(path: str, watch: bool) -> None:  # noqa: FBT001 - an answer of aiohttp's.
        if watch:
            watching(path)
        if relists.answered(path, watch=watch):
            plural, namespace = path.rpartition("/")[2], path.partition("/namespaces/")[2].partition("/")[0]
            missed.add(Key(namespace, next(one.kind for one in WATCHED if one.plural == plural)))

    return answered


def _login(client: Client, answered: Callable[[str, bool], None]) -> Callable[..., Any]:
    logins = itertools.count()

    async def login(**_: Any) -> kopf.AiohttpSession:  # noqa: ANN401 - kopf's arguments.
        if next(logins):
            # The API server did not accept the credentials; they are read anew, but not as fast as it refuses them.
            await asyncio.sleep(LOGIN_PAUSE)
        return kopf.AiohttpSession(server=client.server, aiohttp_session=client.session(answered))

    return login


def _as_kopf_does(contexts: list[Context], gone: Callable[[str, Object], None]) -> Callable[[str, Object], None]:
    """Ask for reconciles in a context of kopf's handlers: in others, `kopf.event` knows nowhere to post what they tell."""
    return lambda kind, obj: contexts[0].copy().run(gone, kind, obj)


def _put(store: Store, kind: str, contexts: list[Context]) -> Callable[..., Any]:
    # Asynchronous, because kopf runs plain functions in threads, and the cache is the event loop's alone.
    async def put(body: kopf.Body, **_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
        if not contexts:
            contexts.append(copy_context())
        store.put(kind, dict(body))

    return put


def _wake(store: Store, routes: Iterable[Route], kind: str) -> Callable[..., Any]:
    gone = _gone(store, routes)

    async def wake(event: kopf.RawEvent, **_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
        if event["type"] == "DELETED":
            gone(kind, event["object"])
        else:
            _ask(_concerned(routes, kind, event["object"]))

    return wake


def _gone(store: Store, routes: Iterable[Route]) -> Callable[[str, Object], None]:
    def gone(kind: str, obj: Object) -> None:
        concerned = _concerned(routes, kind, obj)
        store.drop(kind, obj)
        _ask(concerned)

    return gone


def _concerned(routes: Iterable[Route], kind: str, obj: Object) -> list[tuple[WorkQueue[Key], Key]]:
    return [(queue, key) for queue, whom in routes for key in set(whom(kind, obj))]


def _ask(concerned: Iterable[tuple[WorkQueue[Key], Key]]) -> None:
    for queue, key in concerned:
        queue.add(key)


def _announce(before: Object, after: Object) -> None:
    for event in events(before, after):
        meta = after["metadata"]
        logger.info("%s/%s: %s", meta["namespace"], meta["name"], escaped(event.message))
        body = kopf.Body(cast("kopf.RawBody", dict(after)))
        kopf.event(body, type=event.type, reason=event.reason, message=event.message)
