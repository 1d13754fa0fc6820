"""The operator as it runs, its frame aside: its cache, its reconciles and its work queues, fed by the world's watches."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.label_selector import LabelSelector
from dispatch_operator.controllers.admission_check import AdmissionChecks
from dispatch_operator.controllers.enqueue import MADE_BY_STARTS, is_whole, starts_of, targets_of, workloads_of
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.controllers.shard import Shard, if_served
from dispatch_operator.controllers.watches import WATCHES, Route, is_relevant
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.reconciler import Reconciler
from support.faults.faulty_api import FaultyApi
from support.records import watched

Object = dict[str, Any]
Reconcile = Callable[[Key], Awaitable[Result]]
WATCHED = {watch.kind.value for watch in WATCHES}


@dataclass(eq=False)
class RunningOperator:
    """One cluster-wide operator over a world, or a shard of several."""

    world: FaultyApi
    client: Any = None
    """What it asks in the world's place."""
    selector: LabelSelector = field(default_factory=LabelSelector)
    store: Store = field(default_factory=Store)
    routes: tuple[Route, ...] = ()
    shard: Shard = field(init=False)

    def start(self) -> None:
        """List everything, then watch and work."""
        cluster: Any = self.client or self.world
        store, clock = self.store, self.world.clock
        shard = self.shard = Shard(store, self.selector)
        starts = Reconciler(cluster, store, lambda *_: None, lambda *_: None, clock)
        leftovers = Leftovers(ForegroundDeletion(cluster, store), OrphanedCopies(cluster, store))
        cares_for = shard.serves_target if self.world.has_collector else _nobody
        checks = AdmissionChecks(cluster, store, clock, shard.serves_start)

        def queue(
            serves: Callable[[Key], bool], reconcile: Reconcile, at_rest: Callable[[Key], bool]
        ) -> WorkQueue[Key]:
            return WorkQueue(if_served(serves, reconcile), max_concurrent=20, at_rest=at_rest)

        self.routes = (
            Route(queue(shard.serves_start, starts.reconcile, partial(is_whole, store)), starts_of, MADE_BY_STARTS),
            Route(queue(cares_for, leftovers.reconcile, lambda _: True), targets_of, frozenset(Kind)),
            Route(queue(shard.serves_workload, checks.reconcile, lambda _: False), workloads_of),
        )
        for (kind, _, _), obj in self.world.objects.items():
            if _is_watched(kind, obj):
                self._label(obj)
                store.put(watched(obj))
        for (kind, _, _), obj in list(self.world.objects.items()):
            self.told(kind, obj, deleted=False)
        self.world.watchers.append(self)

    def told(self, kind: str, obj: Object, *, deleted: bool) -> None:
        """Take in an event of a watch, as the frame does."""
        if not _is_watched(kind, obj):
            return
        self._label(obj)
        record = watched(obj)
        if not deleted:
            self.store.put(record)
        concerned = [(route, set(route.concerned(self.store, record))) for route in self.routes]
        if deleted:
            self.store.drop(record)
        for route, keys in concerned:
            for key in sorted(keys):
                route.wake(record.KIND, key)

    def care_for_rest(self) -> None:
        """Become the one of all shards that cares for what belongs to no DispatchStart."""
        self.shard.cares_for_rest = True
        for (kind, _, _), obj in list(self.world.objects.items()):
            self.told(kind, obj, deleted=False)

    def _label(self, obj: Object) -> None:
        meta = obj["metadata"]
        if obj["kind"] == Kind.DISPATCH_START:
            self.shard.label(Key(meta["namespace"], meta["name"]), meta.get("labels", {}))

    async def end(self) -> None:
        """Die at once, whatever goes on."""
        self.world.watchers.remove(self)
        for route in self.routes:
            await route.queue.close(grace_period=0)


def _nobody(_key: Key) -> bool:
    return False


def _is_watched(kind: str, obj: Object) -> bool:
    return kind in WATCHED and is_relevant(Kind(kind), obj)


async def live(world: FaultyApi, seconds: float) -> None:
    """Run the operator for some virtual time; when it dies as planned, another one takes its place."""
    random.seed(1)
    until = asyncio.get_running_loop().time() + seconds
    operator = RunningOperator(world)
    operator.start()
    died = asyncio.create_task(world.crashed.wait())
    await asyncio.wait({died}, timeout=seconds)
    died.cancel()
    await operator.end()
    if world.crashed.is_set():
        world.crashed.clear()
        await live(world, until - asyncio.get_running_loop().time())
