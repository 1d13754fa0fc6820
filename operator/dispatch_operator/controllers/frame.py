"""The frame: reflectors watch, every event asks a work queue for a reconcile, and kopf runs it all. Nothing is decided.

kopf handles signals, and has everything begin and end in order; it watches nothing
(docs/design/2026-11-30-reflectors-and-kopf.md says why).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import kopf

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.label_selector import LabelSelector
from dispatch_operator.controllers.admission_check import AdmissionChecks
from dispatch_operator.controllers.backend import BackendController
from dispatch_operator.controllers.collector import OperatorCollector
from dispatch_operator.controllers.enqueue import (
    MADE_BY_STARTS,
    backends_of,
    is_whole,
    starts_of,
    targets_of,
    workloads_of,
)
from dispatch_operator.controllers.event_recorder import EventRecorder
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.controllers.shard import Shard, if_served
from dispatch_operator.controllers.watches import Route, supervised
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.log_subject import SUBJECT
from dispatch_operator.kube.outdated_crd import OutdatedCrd
from dispatch_operator.kube.reflectors import Reflectors
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.reconciler import Reconciler

logger = logging.getLogger(__name__)

QUEUES = ("starts", "backends", "leftovers", "workloads")
"""What the metrics call them."""
MAX_CONCURRENT = 20
"""Objects that are reconciled at the same time. The API server answers more requests no sooner; they only wait."""
PROBES = 4
"""Backends that are probed at once; each probe is a Start, and waits most of its time."""
GRACE_PERIOD = 4.0
"""Seconds that a reconcile under way is given to end when the operator stops."""
POSTING_PERIOD = 1.0
"""Seconds after that in which the Events that wait are posted."""
EXITING_TIMEOUT = 15.0
"""Seconds after a signal in which the process ends, whatever hangs: kopf kills it then."""
LOGIN_PAUSE = 5.0
"""Seconds between two logins of kopf, when the API server does not accept the credentials."""
SCAN_PAUSES = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0) + (10.0,) * 10_000
"""Seconds between kopf's requests at its start: an API server that is away for a day must not end the process."""


Elect = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
"""Waits until this operator is the one of all shards that cares for the rest, and runs what it is given while it is."""


class Frame:
    """One operator: its store, its work queues, and the reflectors that feed them."""

    def __init__(
        self,
        client: Client,
        namespaces: Sequence[str],
        selector: LabelSelector | None = None,
        outdated: OutdatedCrd | None = None,
    ) -> None:
        """Prepare to serve namespaces, none for all, and of their DispatchStarts those that are selected.

        What is found out of older CRDs is noted in `outdated`, for whoever asks.
        """
        store = Store()
        shard = Shard(store, selector or LabelSelector())
        self._client = client
        self._store = store
        self._shard = shard
        # What the API server stamps is compared with what is noted here, so that one clock must tell both.
        clock = client.clock
        self._recorder = EventRecorder(client, clock)
        self.outdated = outdated or OutdatedCrd()
        record_events, tell = self._recorder.record_events, self._recorder.tell
        reconciler = Reconciler(client, store, record_events, tell, clock, outdated=self.outdated)
        backends = BackendController(client, store, record_events, clock, outdated=self.outdated)
        leftovers = Leftovers(ForegroundDeletion(client, store), OrphanedCopies(client, store))

        def reconcile_start(key: Key) -> Awaitable[Result]:
            return reconciler.reconcile(key, woken=starts.woken(key))

        starts = queue_of(shard.serves_start, reconcile_start, MAX_CONCURRENT, partial(is_whole, store))
        left = queue_of(shard.serves_target, leftovers.reconcile, MAX_CONCURRENT, lambda _: True)
        self._routes = [
            Route(starts, starts_of, MADE_BY_STARTS),
            Route(queue_of(shard.serves_rest, backends.reconcile, PROBES), backends_of),
            Route(left, targets_of, frozenset(Kind)),
        ]
        if not namespaces:
            # AdmissionChecks are the cluster's: a namespaced operator only reads them.
            checks = AdmissionChecks(client, store, clock, shard.serves_start)
            self._routes.append(Route(queue_of(shard.serves_workload, checks.reconcile, MAX_CONCURRENT), workloads_of))
        self.reflectors = Reflectors(
            time.monotonic, *supervised(client, store, self._routes, namespaces, clock=time.monotonic, shard=shard)
        )
        queues = {name: route.queue for name, route in zip(QUEUES, self._routes, strict=False)}
        self.collector = OperatorCollector(queues, self.reflectors, store)
        self._elect: Elect | None = None
        self._work: asyncio.Task[None] | None = None
        self._sessions: list[Any] = []
        """Those that kopf was given."""
        self._stop = asyncio.Event()

    async def serve(self, identity: str, elect: Elect | None = None) -> None:
        """Serve until a signal comes.

        Args:
            identity: Of this process, for kopf.
            elect: Says when this operator cares for what belongs to no DispatchStart; None when others never do.

        Raises:
            ReflectorEndedError: A reflector ended, which it never does by itself.
            Exception: The election ended, as it says.
        """
        self._elect = elect
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=settings(),
                # kopf would make one of the user's name, which a pod's user does not have.
                identity=identity,  # type: ignore[arg-type]
                clusterwide=True,
                stop_flag=self._stop,
            )
        finally:
            # kopf calls no clean-up when it is cancelled, as it is when the Lease is lost.
            await self._end(grace_period=0.0, posting_period=0.0)
            for session in self._sessions:
                await session.close()
        if self._work and not self._work.cancelled():
            self._work.result()

    def unready(self, patience: float) -> list[str]:
        """Say what keeps the operator from its work; a watch may be down for so many seconds."""
        return [*self.reflectors.unready(patience), *self.outdated.problems()]

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login())

        @kopf.on.startup(registry=registry)
        async def start(**_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
            self._begin()

        @kopf.on.cleanup(registry=registry)
        async def stop(**_: Any) -> None:  # noqa: ANN401 - kopf's arguments.
            await self._end(grace_period=GRACE_PERIOD, posting_period=POSTING_PERIOD)

        return registry

    def _begin(self) -> None:
        """Begin to watch; what ends by itself ends the process, which would be half dead."""
        for route in self._routes:
            route.queue.hold()
        self._recorder.start()
        self._work = asyncio.create_task(self._watch())
        self._work.add_done_callback(lambda _: self._stop.set())

    async def _watch(self) -> None:
        """Watch, and reconcile as soon as everything that can be listed has been."""
        releasing = asyncio.create_task(self._release_when_listed())
        for_ever: list[asyncio.Future[Any]] = [asyncio.create_task(self.reflectors.run())]
        if self._elect:
            for_ever.append(asyncio.ensure_future(self._elect(self._care_for_rest)))
        try:
            # Whichever ends first, or could not release the queues: held ones would do nothing for ever.
            ended, _ = await asyncio.wait({releasing, *for_ever}, return_when=asyncio.FIRST_COMPLETED)
            if ended == {releasing} and releasing.exception() is None:
                ended, _ = await asyncio.wait(for_ever, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in (releasing, *for_ever):
                task.cancel()
            await asyncio.gather(releasing, *for_ever, return_exceptions=True)

    async def _care_for_rest(self) -> None:
        """Care for what belongs to no DispatchStart, until cancelled; what others have left is looked at now."""
        logger.info("caring for what belongs to no DispatchStart, for all shards")
        self._shard.cares_for_rest = True
        _of_starts, *of_rest = self._routes
        for obj in tuple(self._store):
            for route in of_rest:
                for key in route.concerned(self._store, obj):
                    route.queue.add(key)
        await asyncio.get_running_loop().create_future()

    async def _release_when_listed(self) -> None:
        await self.reflectors.listed()
        lacking = ", ".join(str(each) for each in self.reflectors if not each.state.synced)
        logger.info("reconciles begin; %s", f"not listed yet: {lacking}" if lacking else "everything is listed")
        for route in self._routes:
            route.queue.release()

    async def _end(self, *, grace_period: float, posting_period: float) -> None:
        """End what goes on: the watches, then the reconciles, then the Events that these have recorded.

        Args:
            grace_period: Seconds for the reconciles.
            posting_period: Seconds for the Events.
        """
        if self._work:
            self._work.cancel()
        await asyncio.gather(*(route.queue.close(grace_period=grace_period) for route in self._routes))
        if self._work:
            # An election may have taken the same time to give its Lease back.
            await asyncio.gather(self._work, return_exceptions=True)
        await self._recorder.shutdown(grace_period=posting_period)

    def _login(self) -> Callable[..., Any]:
        pause = 0.0

        async def login(**_: Any) -> kopf.AiohttpSession:  # noqa: ANN401 - kopf's arguments.
            nonlocal pause
            # The credentials are read anew at each login, but not as fast as the API server refuses them.
            await asyncio.sleep(pause)
            pause = LOGIN_PAUSE
            session = self._client.session()
            self._sessions.append(session)
            return kopf.AiohttpSession(server=self._client.server, aiohttp_session=session)

        return login


def queue_of(
    serves: Callable[[Key], bool],
    reconcile: Callable[[Key], Awaitable[Result]],
    max_concurrent: int,
    at_rest: Callable[[Key], bool] = lambda _: False,
) -> WorkQueue[Key]:
    """Return a queue of what is served, whose log lines say what is being reconciled."""
    served = if_served(serves, reconcile)

    def reconcile_and_say_what(key: Key) -> Awaitable[Result]:
        # Each reconcile is a task of its own, so that nobody else's lines get this subject.
        SUBJECT.set(key)
        return served(key)

    return WorkQueue(
        reconcile_and_say_what, max_concurrent=max_concurrent, group=lambda key: key.namespace, at_rest=at_rest
    )


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings for an operator whose objects it neither watches nor writes."""
    made = kopf.OperatorSettings()
    # CRDs and namespaces are not watched, so that a Role is enough.
    made.scanning.disabled = True
    # Events are the recorder's.
    made.posting.enabled = False
    made.networking.error_backoffs = SCAN_PAUSES
    made.process.ultimate_exiting_timeout = EXITING_TIMEOUT
    made.peering.standalone = True
    return made
