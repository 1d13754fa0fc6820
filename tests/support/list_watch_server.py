"""A fake API server's lists and watches over real HTTP: versions, pages, bookmarks, compaction, an etcd restore, faults.

It keeps the history that it was given, and answers a watch from a version on as the real one does: with later versions
only, even when it has none because it was restored from a backup.
"""

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from aiohttp import test_utils, web
from kubernetes_asyncio import client

from dispatch_operator.kube.client import Client
from dispatch_operator.kube.presence import Presence

Object = dict[str, Any]
TRAIN_JOBS, WORKLOADS = "trainjobs", "workloads"


class Moment(Enum):
    """When a fault comes."""

    FIRST_PAGE = "at the first page"
    NEXT_PAGE = "between pages"
    WATCH = "when the watch is asked for"
    FIRST_EVENT = "before the first event"
    NEXT_EVENT = "between events"
    MID_LINE = "in the middle of a line"
    BOOKMARK = "after a bookmark"


Break = Callable[[web.Request, web.StreamResponse | None], Awaitable[web.StreamResponse]]
"""Answers a request with a fault; a watch that is under way has its answer begun."""


@dataclass
class Fault:
    """Comes once at its moment, in one resource."""

    moment: Moment
    breaks: Break
    resource: str = TRAIN_JOBS
    meanwhile: Callable[[], None] = lambda: None
    """What happens in the cluster while it lasts."""


class Request(NamedTuple):
    """What was asked, and when."""

    time: float
    resource: str
    watch: bool
    query: dict[str, str]
    accept: str
    authorization: str
    namespace: str
    """Empty for the whole cluster."""


@dataclass
class Change:
    """One version of one object, as a watch tells of it."""

    version: int
    type: str
    obj: Object


@dataclass
class ListWatchServer:
    """Holds the objects of some resources, and the changes that led to them."""

    version: int = 100
    faults: list[Fault] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    namespaces: dict[str, Presence] = field(default_factory=dict)
    """Those that are not there; all others are. Nobody has rights in one that is not."""
    unreadable_namespaces: bool = False
    """Whether nobody may ask which there are."""
    forbidden: set[str] = field(default_factory=set)
    """Namespaces that exist and give no rights; an empty one stands for the whole cluster."""
    compacted: int = 0
    """Up to which version the changes are forgotten."""

    def __post_init__(self) -> None:
        self.objects: dict[str, dict[tuple[str, str], Object]] = defaultdict(dict)
        self._changes: dict[str, list[Change]] = defaultdict(list)
        self.log: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        """All that ever changed, as a Recorder logs it."""
        self._snapshots: dict[str, tuple[int, list[Object]]] = {}
        self._uids = itertools.count(1)
        self._changed: set[asyncio.Event] = set()
        self._watches: set[asyncio.Transport] = set()
        self._forgotten: dict[str, int] = defaultdict(int)
        self._bookmarks: dict[str, int] = defaultdict(int)

    def put(self, name: str, resource: str = TRAIN_JOBS, namespace: str = "team-a", **fields: Any) -> Object:
        """Create an object, or update the one of that name."""
        before = self.objects[resource].get((namespace, name))
        uid = before["metadata"]["uid"] if before else f"uid-{next(self._uids)}"
        self.version += 1
        obj = {
            "apiVersion": "v1",
            "kind": "X",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self.version)},
            "spec": {"text": 'ä]}{[\\"', **fields},
        }
        self.objects[resource][namespace, name] = obj
        self._change(resource, "MODIFIED" if before else "ADDED", obj)
        return obj

    def delete(self, name: str, resource: str = TRAIN_JOBS, namespace: str = "team-a") -> None:
        """Delete an object, if it is there."""
        if obj := self.objects[resource].pop((namespace, name), None):
            self.version += 1
            last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
            self._change(resource, "DELETED", last)

    def bookmark(self, resource: str = TRAIN_JOBS) -> None:
        """Tell the watches of the version that everything has reached by now."""
        self.version += 1
        self._bookmarks[resource] = self.version
        self._tell()

    def compact(self) -> None:
        """Forget all changes and all continue tokens; a watch that has not told of them yet can't go on."""
        self.compacted = self.version
        self._snapshots.clear()
        for resource, changes in self._changes.items():
            self._forgotten[resource] = max((change.version for change in changes), default=self._forgotten[resource])
            changes.clear()
        self._tell()

    def hang_up(self) -> None:
        """Break the connection of every watch."""
        for watch in self._watches.copy():
            watch.abort()

    def restore(self, version: int, *names: str) -> None:
        """Be restored from an older backup, in which the objects are others."""
        self.compact()
        self.version, self.compacted = version, 0
        self._forgotten.clear()
        self._bookmarks.clear()
        self.objects[TRAIN_JOBS].clear()
        for name in names:
            self.put(name)
        for changes in self._changes.values():
            changes.clear()

    def _change(self, resource: str, change: str, obj: Object) -> None:
        self._changes[resource].append(Change(self.version, change, obj))
        metadata = obj["metadata"]
        told = ("deleted", metadata["uid"]) if change == "DELETED" else ("put", metadata["resourceVersion"])
        self.log[resource].append((told[0], metadata["name"], told[1]))
        self._tell()

    def _tell(self) -> None:
        for changed in self._changed:
            changed.set()

    async def _break(
        self,
        moment: Moment,
        resource: str,
        request: web.Request,
        response: web.StreamResponse | None = None,
        end: asyncio.Timeout | None = None,
    ) -> web.StreamResponse | None:
        for fault in self.faults:
            if (fault.moment, fault.resource) == (moment, resource):
                self.faults.remove(fault)
                fault.meanwhile()
                if end:
                    end.reschedule(None)
                return await fault.breaks(request, response)
        return None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a list or a watch."""
        *_, above, namespace, resource = request.path.split("/")
        if above != "namespaces":
            if namespace == "namespaces":
                return self._namespace(resource)
            namespace = ""
        query = dict(request.query)
        watch = query.get("watch") == "true"
        now = asyncio.get_running_loop().time()
        authorization = request.headers.get("Authorization", "")
        self.requests.append(Request(now, resource, watch, query, request.headers["Accept"], authorization, namespace))
        if namespace in self.forbidden or namespace in self.namespaces:
            return refusal(403, "Forbidden", f'cannot list resource "{resource}"')
        if watch:
            return await self._break(Moment.WATCH, resource, request) or await self._watch(request, resource, namespace)
        moment = Moment.NEXT_PAGE if "continue" in query else Moment.FIRST_PAGE
        return await self._break(moment, resource, request) or self._list(query, resource, namespace)

    def _namespace(self, name: str) -> web.Response:
        if self.unreadable_namespaces:
            return refusal(403, "Forbidden", 'cannot get resource "namespaces"')
        presence = self.namespaces.get(name, Presence.EXISTS)
        if presence is Presence.ABSENT:
            return refusal(404, "NotFound", f'namespaces "{name}" not found')
        leaving = {"deletionTimestamp": "2026-12-01T00:00:00Z"} if presence is Presence.LEAVING else {}
        return web.json_response({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **leaving}})

    def _list(self, query: dict[str, str], resource: str, namespace: str) -> web.Response:
        limit = int(query["limit"])
        if token := query.get("continue"):
            if token not in self._snapshots:
                return refusal(410, "Expired", "the continue token is too old")
            version, rest = self._snapshots[token]
        else:
            held = self.objects[resource].items()
            version, rest = self.version, [obj for (where, _), obj in held if namespace in {"", where}]
        page, rest = rest[:limit], rest[limit:]
        metadata = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = f"{version}-{len(rest)}-{len(self.requests)}"
            self._snapshots[metadata["continue"]] = version, rest
        return web.json_response({"apiVersion": "v1", "items": page, "kind": "XList", "metadata": metadata})

    async def _watch(self, request: web.Request, resource: str, namespace: str) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self.compacted:
            return refusal(410, "Expired", "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if broken := await self._break(Moment.FIRST_EVENT, resource, request, response):
            return broken
        changed = asyncio.Event()
        self._changed.add(changed)
        transport = request.transport
        assert transport
        self._watches.add(transport)
        try:
            async with asyncio.timeout(int(request.query["timeoutSeconds"])) as end:
                while True:
                    changed.clear()
                    if version < self._forgotten[resource]:
                        await response.write(event("ERROR", status_of(410, "Expired", "too old resource version")))
                        return response
                    for change in list(self._changes[resource]):
                        if change.version > version:
                            version = change.version
                            if namespace not in {"", change.obj["metadata"]["namespace"]}:
                                continue
                            line = event(change.type, change.obj)
                            await response.write(line[: len(line) // 2])
                            if broken := await self._break(Moment.MID_LINE, resource, request, response, end):
                                return broken
                            await response.write(line[len(line) // 2 :])
                            if broken := await self._break(Moment.NEXT_EVENT, resource, request, response, end):
                                return broken
                    if self._bookmarks[resource] > version:
                        version = self._bookmarks[resource]
                        await response.write(event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}}))
                        if broken := await self._break(Moment.BOOKMARK, resource, request, response, end):
                            return broken
                    await changed.wait()
        except TimeoutError:
            return response
        except ConnectionError:
            # Who watched is gone.
            return response
        finally:
            self._changed.discard(changed)
            self._watches.discard(transport)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Client]:
        """Serve on loopback, and yield a client."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        async with test_utils.TestServer(app) as served, connected_to(str(served.make_url("")).rstrip("/")) as cluster:
            yield cluster


@asynccontextmanager
async def connected_to(url: str) -> AsyncIterator[Client]:
    """Connect to a server without credentials."""
    configuration = client.Configuration()
    configuration.host = url
    async with client.ApiClient(configuration) as api:
        cluster = Client(api)
        try:
            yield cluster
        finally:
            await cluster.aclose()


def event(event_type: str, obj: Any) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"


def refusal(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """Return an answer that says no, as the API server words it."""
    return web.json_response(status_of(code, reason, message), status=code, headers=headers)


def status_of(code: int, reason: str, message: str) -> Object:
    """Return a Status object."""
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
