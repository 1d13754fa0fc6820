"""The frame: reflectors watch, every event asks a work queue for a reconcile, and kopf runs it all. Nothing is decided.

kopf handles signals, posts Events and ends in order; it watches nothing
(docs/design/2026-11-30-reflectors-and-kopf.md says why).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import kopf

from dispatch_operator.api.group import API_VERSION, MANAGED_BY
from dispatch_operator.api.quoting import escaped
from dispatch_operator.controllers.admission_check import AdmissionChecks
from dispatch_operator.controllers.backend import BackendController
from dispatch_operator.controllers.enqueue import backends_of, starts_of, targets_of, workloads_of
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.controllers.watches import Route, supervised
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.reflectors import ReflectorEndedError, Reflectors
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.events import Owned, events
from dispatch_operator.reconcile.reconciler import Reconciler

logger = logging.getLogger(__name__)

MAX_CONCURRENT = 20
"""Objects that are reconciled at the same time. The API server answers more requests no sooner; they only wait."""
PROBES = 4
"""Backends that are probed at once; each probe is a Start, and waits most of its time."""
GRACE_PERIOD = 5.0
"""Seconds that a reconcile under way is given to end when the operator stops."""
LOGIN_PAUSE = 5.0
"""Seconds between two logins of kopf, when the API server does not accept the credentials."""


class Frame:
    """One operator: its store, its work queues, and the reflectors that feed them."""

    def __init__(self, client: Client, namespaces: Sequence[str]) -> None:
        """Prepare to serve namespaces; none for all."""
        store = Store()
        self._client = client
        starts = Reconciler(client, store, record_events)
        backends = BackendController(client, store, record_events)
        leftovers = Leftovers(ForegroundDeletion(client, store), OrphanedCopies(client, store))
        self._routes = [
            Route(_queue(starts.reconcile, MAX_CONCURRENT), starts_of),
            Route(_queue(backends.reconcile, PROBES), backends_of),
            Route(_queue(leftovers.reconcile, MAX_CONCURRENT), targets_of),
        ]
        if not namespaces:
            # AdmissionChecks are the cluster's: a namespaced operator only reads them.
            checks = AdmissionChecks(client, store)
            self._routes.append(Route(_queue(checks.reconcile, MAX_CONCURRENT), workloads_of))
        self.reflectors = Reflectors(
            time.monotonic, *supervised(client, store, self._routes, namespaces, time.monotonic)
        )
        self._task: asyncio.Task[Any] | None = None
        self._stop = asyncio.Event()

    async def serve(self, identity: str) -> None:
        """Serve until a signal comes.

        Raises:
            ReflectorEndedError: A reflector ended, which it never does by itself.
        """
        await kopf.operator(
            registry=self._registry(),
            settings=settings(),
            # kopf would make one of the user's name, which a pod's user does not have.
            identity=identity,  # type: ignore[arg-type]
            clusterwide=True,
            stop_flag=self._stop,
        )
        if self._task and self._task.done() and not self._task.cancelled():
            raise ReflectorEndedError(str(self._task.exception())) from self._task.exception()

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login())

        @kopf.on.startup(registry=registry)
        async def start(**_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
            # What is begun here posts its Events by kopf, which knows its poster by the context.
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(lambda _: self._stop.set())

        @kopf.on.cleanup(registry=registry)
        async def stop(**_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
            if self._task:
                self._task.cancel()
            await asyncio.gather(*(route.queue.close(grace_period=GRACE_PERIOD) for route in self._routes))

        return registry

    async def _work(self) -> None:
        """Watch, and reconcile as soon as everything that can be listed has been."""
        for route in self._routes:
            route.queue.hold()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflectors.run())
            await self.reflectors.listed()
            logger.info("everything is listed; reconciles begin")
            for route in self._routes:
                route.queue.release()

    def _login(self) -> Callable[..., Any]:
        pause = 0.0

        async def login(**_: Any) -> kopf.AiohttpSession:  # noqa: ANN401 - kopf's arguments.
            nonlocal pause
            # The credentials are read anew at each login, but not as fast as the API server refuses them.
            await asyncio.sleep(pause)
            pause = LOGIN_PAUSE
            return kopf.AiohttpSession(server=self._client.server, aiohttp_session=self._client.session())

        return login


def _queue(reconcile: Callable[[Key], Awaitable[Result]], max_concurrent: int) -> WorkQueue[Key]:
    return WorkQueue(reconcile, max_concurrent=max_concurrent, group=lambda key: key.namespace)


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings for an operator whose objects it neither watches nor writes."""
    made = kopf.OperatorSettings()
    # CRDs and namespaces are not watched, so that a Role is enough.
    made.scanning.disabled = True
    made.posting.reporting_component = MANAGED_BY
    made.posting.event_name_prefix = "dispatch-"
    made.peering.standalone = True
    return made


def record_events(before: Owned, after: Owned) -> None:
    """Log, and post as Events, what a write of an object's status has changed."""
    meta = after.metadata
    reference = {
        "apiVersion": API_VERSION,
        "kind": after.KIND.value,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
    }
    for event in events(before, after):
        logger.info("%s/%s: %s", meta.namespace, meta.name, escaped(event.message))
        body = kopf.Body(cast("kopf.RawBody", reference))
        kopf.event(body, type=event.type, reason=event.reason, message=event.message)
