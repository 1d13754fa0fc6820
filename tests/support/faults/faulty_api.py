"""A cluster in memory whose requests fail as planned, and that notices at once what must never be."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from dispatch_operator.kube.errors import ApiError
from support.fake_api import FakeApi, Request
from support.faults.fault import WHILE, Fault, Lasts
from support.faults.older_crd import OlderCrd
from support.invariants import broken_invariants
from support.operator import NOW
from support.records import at, condition, copied, maker_uid

Object = dict[str, Any]
T = TypeVar("T")
GATE = "dispatch.phpboyscout.uk/start-gate"
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
BURST = 120
"""Requests that may be made within one second: a reconcile's own budget, and some of its neighbours; more is hammering."""
WORKLOAD, JOB, COPY, START = "Workload", "TrainJob", "TrainingRuntime", "DispatchStart"
CHECK = "AdmissionCheck"


class Watcher(Protocol):
    """Somebody who is told of every change."""

    def told(self, kind: str, obj: Object, *, deleted: bool) -> None:
        """Take in an event of a watch."""


@dataclass
class FaultPlan:
    """What happens to which request, counted from 0 after the plan was made."""

    place: int = -1
    fault: Fault | None = None
    lasts: Lasts = Lasts.ONCE
    crash: str = ""
    """`before` or `after` the request, when the operator dies there."""
    meddles: Callable[["FaultyApi"], None] | None = None
    """What somebody does to the world just before the request."""
    older: OlderCrd | None = None
    """What is served from the request on, for a while."""
    count: int = 0
    began: float | None = None
    like: Request | None = None

    def meets(self, request: Request, now: float) -> Fault | None:
        """Return what happens to the next request, if anything does."""
        place, self.count = self.count, self.count + 1
        if place == self.place:
            self.began, self.like = now, request
        if self.fault is None or self.began is None or not self.fault.can_meet(request):
            return None
        if place == self.place:
            return self.fault
        if self.lasts is Lasts.ONCE or now >= self.began + WHILE:
            return None
        return self.fault if self.lasts is Lasts.OUTAGE or _alike(request, self.like) else None

    def serves(self, now: float) -> OlderCrd | None:
        """Return the older CRD that is served now."""
        return self.older if self.began is not None and now < self.began + WHILE else None


def _alike(one: Request, other: Request | None) -> bool:
    return other is not None and (one.verb, one.kind, one.subresource) == (other.verb, other.kind, other.subresource)


@dataclass
class FaultyApi(FakeApi):
    """The API server, its garbage collector, Kueue when there is one, and the watches."""

    plan: FaultPlan = field(default_factory=FaultPlan)
    kueue: bool = False
    watchers: list[Watcher] = field(default_factory=list)
    has_collector: bool = True
    """Whether leftover copies are collected; a Start that takes one over races with that."""
    asked: list[tuple[float, Request]] = field(default_factory=list)
    """Every request, whatever became of it, with its time."""
    crashed: asyncio.Event = field(default_factory=asyncio.Event)
    not_before: dict[Request, float] = field(default_factory=dict)
    """When a request may be made again that was answered with Retry-After."""
    broken: list[str] = field(default_factory=list)
    """What was seen that must never be."""
    base: tuple[str, str, Fault] | None = None
    """A fault that the scenario is about: the first request of a verb and kind meets it, whatever else is planned."""
    reacts: Callable[["FaultyApi"], None] = lambda _world: None
    """What the scenario's other controllers do after each request."""
    began: float | None = None
    """When this world began, by the event loop's clock."""
    has_shown_older: bool = False
    """Whether a write of a status was not kept as it was sent, by the CRD that is served now."""
    _informed: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    _opened: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def clock(self) -> float:
        """Return the virtual time in seconds since the epoch; each world begins at the same one."""
        now = asyncio.get_running_loop().time()
        self.began = now if self.began is None else self.began
        return NOW + now - self.began

    async def get(self, kind: str, namespace: str | None, name: str, *, timeout: float) -> Object | None:
        request = Request("get", str(kind), name)
        return await self._meet(request, timeout, lambda: FakeApi.get(self, kind, namespace, name, timeout=timeout))

    async def select(
        self,
        kind: str,
        namespace: str | None,
        *,
        timeout: float,
        read: Callable[[Object], T],
        most: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        def call() -> Awaitable[tuple[T, ...]]:
            return FakeApi.select(
                self,
                kind,
                namespace,
                timeout=timeout,
                read=read,
                label_selector=label_selector,
                field_selector=field_selector,
                most=most,
            )

        return await self._meet(Request("list", str(kind), ""), timeout, call)

    async def create(self, kind: str, namespace: str, body: Object, *, timeout: float) -> Object:
        request = Request("create", str(kind), body["metadata"]["name"])
        return await self._meet(request, timeout, lambda: FakeApi.create(self, kind, namespace, body, timeout=timeout))

    async def patch(
        self, kind: str, namespace: str, name: str, body: Object, *, timeout: float, subresource: str = ""
    ) -> Object:
        async def call() -> Object:
            older = self.plan.serves(asyncio.get_running_loop().time()) if is_status(kind, subresource) else None
            kept = older.take(body) if older else body
            self.has_shown_older = self.has_shown_older or kept != body
            return await FakeApi.patch(self, kind, namespace, name, kept, timeout=timeout, subresource=subresource)

        return await self._meet(Request("patch", str(kind), name, subresource), timeout, call)

    async def delete(
        self, kind: str, namespace: str, name: str, *, timeout: float, uid: str, resource_version: str | None = None
    ) -> None:
        def call() -> Awaitable[None]:
            return FakeApi.delete(
                self, kind, namespace, name, timeout=timeout, uid=uid, resource_version=resource_version
            )

        return await self._meet(Request("delete", str(kind), name), timeout, call)

    async def apply_status(
        self, kind: str, namespace: str | None, name: str, body: Object, *, timeout: float, field_manager: str
    ) -> Object:
        """Apply a status whose lists are maps, by `name` or `type`."""
        assert field_manager

        async def call() -> Object:
            held = self._existing("apply", kind, namespace or "", name)
            self._require("apply", kind, held, body["metadata"])
            made = copied(held)
            for part, entries in body["status"].items():
                key = "type" if part == "conditions" else "name"
                new = {entry[key]: entry for entry in entries}
                old = {entry[key]: entry for entry in made.setdefault("status", {}).get(part, [])}
                made["status"][part] = [*(old | new).values()]
            if made != held:
                self._store(made)
            return made

        return await self._meet(Request("apply", str(kind), name, "status"), timeout, call)

    async def _meet(self, request: Request, timeout: float, call: Callable[[], Awaitable[T]]) -> T:
        """Carry a request out, or not, as planned."""
        loop = asyncio.get_running_loop()
        place = self.plan.count
        base = self._base(request)
        fault = self.plan.meets(request, loop.time()) or base
        self.asked.append((loop.time(), request))
        if loop.time() < self.not_before.get(request, 0.0) and not (request.kind == COPY and request.verb != "patch"):
            # A copy is also looked at apart from its DispatchStart.
            self.broken.append(f"{request} came before the time that Retry-After named")
        if not self.plan.serves(loop.time()):
            self.has_shown_older = False
        elif self.has_shown_older and begins(request):
            self.broken.append(f"{request} was begun though the served CRD keeps no record of it")
        if len(self.asked) > BURST and self.asked[-BURST][0] > loop.time() - 1.0:
            self.broken.append(f"more than {BURST} requests in a second")
            await asyncio.sleep(60.0)
        await asyncio.sleep(timeout if fault and fault.slow and not fault.carried_out else 0)
        await self._die_here(place, "before")
        if self.plan.meddles and place == self.plan.place:
            self.plan.meddles(self)
            self.happened()
        if fault and not fault.carried_out:
            raise self._refused(request, fault.error(request))
        try:
            answer = await call()
        finally:
            self.happened()
        await self._die_here(place, "after")
        if fault:
            await asyncio.sleep(timeout if fault.slow else 0)
            raise fault.error(request)
        return answer

    def _refused(self, request: Request, error: ApiError) -> ApiError:
        if error.retry_after:
            self.not_before[request] = asyncio.get_running_loop().time() + error.retry_after
        return error

    def _base(self, request: Request) -> Fault | None:
        if self.base is None or self.base[:2] != (request.verb, request.kind):
            return None
        fault, self.base = self.base[2], None
        return fault

    async def _die_here(self, place: int, when: str) -> None:
        if (place, when) == (self.plan.place, self.plan.crash):
            self.crashed.set()
        if self.crashed.is_set():
            await asyncio.Future()

    def change(self, kind: str, name: str, change: Callable[[Object], None]) -> None:
        """Change an object as a human, or another controller, would."""
        obj = next(copied(obj) for (held, _, called), obj in self.objects.items() if (held, called) == (kind, name))
        change(obj)
        self._store(obj)

    def happened(self) -> None:
        """Let everybody else react to a change, check what must always hold, and tell the watchers."""
        self.collect()
        if self.kueue:
            self._make_workloads()
        self.reacts(self)
        self.collect()
        self._check()
        for key, obj in list(self._informed.items()):
            held = self.objects.get(key)
            if held is None or held["metadata"]["uid"] != obj["metadata"]["uid"]:
                del self._informed[key]
                self._inform(key[0], obj, deleted=True)
        for key, obj in list(self.objects.items()):
            # Every change puts another value in an object's place.
            if self._informed.get(key) is not obj:
                self._informed[key] = obj
                self._inform(key[0], obj, deleted=False)

    def _inform(self, kind: str, obj: Object, *, deleted: bool) -> None:
        for watcher in self.watchers:
            watcher.told(kind, obj, deleted=deleted)

    def _held(self, kind: str) -> list[Object]:
        return [obj for (held, _, _), obj in self.objects.items() if held == kind]

    def _make_workloads(self) -> None:
        owned = {owner["uid"] for made in self._held(WORKLOAD) for owner in made["metadata"]["ownerReferences"]}
        for job in self._held(JOB):
            if job["metadata"]["uid"] not in owned and at(job, "spec", "suspend") is True:
                self.put(make_workload(job), admissionChecks=[{"name": "dispatch-start", "state": "Pending"}])

    def _check(self) -> None:
        starts = {start["metadata"]["uid"]: start for start in self._held(START)}
        for start in starts.values():
            changed = (
                self._informed.get((START, start["metadata"]["namespace"], start["metadata"]["name"])) is not start
            )
            if changed and at(start, "status", "phase") and not self.plan.older:
                self.broken += broken_invariants(start["status"])
        for job in self._held(JOB):
            uid = maker_uid(job)
            if uid is None or uid not in starts or not is_open(job) or job["metadata"]["uid"] in self._opened[uid]:
                continue
            self._opened[uid].add(job["metadata"]["uid"])
            if len(self._opened[uid]) > 1:
                self.broken.append("two TrainJobs of one DispatchStart were opened")
            start = starts[uid]
            if condition(start, "Started").get("status") != "True" or (
                at(start, "status", "reference", "uid") != job["metadata"]["uid"]
            ):
                self.broken.append("a gate was opened before Started was recorded with its TrainJob's UID")


def is_status(kind: str, subresource: str) -> bool:
    """Tell whether a write is one of a DispatchStart's status."""
    return (kind, subresource) == (START, "status")


def begins(request: Request) -> bool:
    """Tell whether a write begins, opens or holds something of a DispatchStart."""
    return request.verb in {"create", "patch"} and not is_status(request.kind, request.subresource)


def is_open(job: Object) -> bool:
    """Tell whether a TrainJob of dispatch is behind no gate of dispatch."""
    gated = GATE in (at(job, "metadata", "annotations", GATED_BY) or "")
    return not gated and (
        at(job, "spec", "suspend") is not True or bool(at(job, "metadata", "labels", "kueue.x-k8s.io/queue-name"))
    )


def make_workload(job: Object) -> Object:
    """Return the Workload that Kueue makes of a TrainJob."""
    meta = job["metadata"]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": WORKLOAD,
        "metadata": {
            "name": f"trainjob-{meta['name']}",
            "namespace": meta["namespace"],
            "labels": {"kueue.x-k8s.io/job-uid": meta["uid"]},
            "annotations": {GATED_BY: at(meta, "annotations", GATED_BY) or ""},
            "ownerReferences": [{"kind": JOB, "name": meta["name"], "uid": meta["uid"]}],
        },
        "spec": {"active": True},
    }
