"""`python -m bench.fake.server`: serves until it is killed, and prints its port first."""

import asyncio
import copy
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any, NamedTuple

from aiohttp import web
from msgspec import json

from bench.fake.controllers import NOW, job_set, managed, merged, suspended
from bench.fake.crowd import SEED, Crowd, start_name, uid_prefix
from bench.fake.discovery import discovered
from bench.fake.objects import Key, Object, Objects, metadata_only
from dispatch_operator.api.kinds import RESOURCES

OTHERS = ("trainingruntimes", "jobsets", "workloads")
"""Resources of which a cluster is full without anything of ours."""
CONTROL = "/bench/"
BOOKMARK_SECONDS = 60.0
KINDS = {resource.plural: resource.kind.value for resource in RESOURCES.values()}


class Target(NamedTuple):
    """What a path leads to."""

    api: str
    resource: str
    namespace: str
    name: str
    subresource: str


def target_of(path: str) -> Target:
    """Take a path of the API apart."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            api = version
        case ["apis", group, version, *rest]:
            api = f"{group}/{version}"
        case _:
            return Target("", "", "", "", "")
    namespace = rest[1] if rest[:1] == ["namespaces"] else ""
    resource, name, part, *_ = [*(rest[2:] if namespace else rest), "", "", ""]
    return Target(api, resource, namespace, name, part)


class Server:
    """Answers the operator, the bare client, and what the bench asks for."""

    def __init__(self) -> None:
        self.version = 1_000
        self.resources: dict[str, Objects] = defaultdict(Objects)
        self.requests: Counter[str] = Counter()
        self._uids = 0
        self._settled = 0
        """Starts that are Gated, those of the crowd aside."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        if request.path.startswith(CONTROL):
            return await self._controlled(request)
        target = target_of(request.path)
        if not target.resource:
            return _json(discovered(request.path))
        watches = request.query.get("watch") == "true"
        verb = "watch" if watches else request.method if target.name or request.method != "GET" else "list"
        agent = request.headers.get("User-Agent", "").partition("/")[0]
        self.requests[f"{agent} {verb} {target.resource} {target.subresource}".rstrip()] += 1
        if watches:
            return await self._watch(request, target)
        body = await request.read()
        match request.method:
            case "GET" if target.name:
                stored = self.resources[target.resource].objects.get((target.namespace, target.name))
                return web.Response(body=stored, content_type="application/json") if stored else _refused(404)
            case "GET":
                return self._list(request, target)
            case "POST":
                return self._create(target, json.decode(body), agent)
            case "PATCH":
                return self._patch(target, json.decode(body), agent)
            case _:
                return self._delete(target)

    async def _controlled(self, request: web.Request) -> web.Response:
        """Do what the bench asks for: make a crowd, or tell what was asked so far."""
        match request.path.removeprefix(CONTROL):
            case "residents":
                self._settle_crowd(int(request.query["count"]))
            case "others":
                self._make_others(int(request.query["count"]))
            case "settled":
                return _json({"count": self._settled})
            case _:
                told = dict(self.requests)
                self.requests.clear()
                return _json(told)
        return _json({})

    def _settle_crowd(self, count: int) -> None:
        """Let many settled Starts be there, each like the one that the operator has settled."""
        for objects in self.resources.values():
            seeds = [stored for stored in objects.objects.values() if uid_prefix(SEED).encode() in stored]
            objects.crowds = [crowd for crowd in objects.crowds if not crowd.labelled]
            objects.crowds += [Crowd(seed, metadata_only(json.decode(seed)), count) for seed in seeds]

    def _make_others(self, count: int) -> None:
        """Let there be many objects that have nothing to do with Starts."""
        for resource in OTHERS:
            objects = self.resources[resource]
            seed = next(stored for stored in self.resources["jobsets"].objects.values() if b'"JobSet"' in stored)
            other = json.decode(seed)
            other["kind"] = KINDS[resource]
            meta = other["metadata"]
            meta |= {"name": f"other-{start_name(SEED)}", "labels": {"team": "vision"}, "annotations": {}}
            meta["ownerReferences"] = [{**meta["ownerReferences"][0], "kind": "Job", "name": start_name(SEED)}]
            crowd = Crowd(json.encode(other), metadata_only(other), count, labelled=False)
            objects.crowds = [*(one for one in objects.crowds if one.labelled), crowd]

    def _list(self, request: web.Request, target: Target) -> web.Response:
        objects = self.resources[target.resource]
        only_metadata = "PartialObjectMetadata" in request.headers["Accept"]
        limit, offset = int(request.query.get("limit", 100_000)), int(request.query.get("continue", 0))
        labelled = "labelSelector" in request.query
        items, more = objects.page(target.namespace, offset, limit, labelled=labelled, only_metadata=only_metadata)
        token = b',"continue":"%d"' % (offset + limit) if more else b""
        metadata = b'{"resourceVersion":"%d"%s}' % (self.version, token)
        body = b'{"apiVersion":"v1","items":[%s],"kind":"List","metadata":%s}' % (b",".join(items), metadata)
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        objects = self.resources[target.resource]
        only_metadata = "PartialObjectMetadata" in request.headers["Accept"]
        version = int(request.query["resourceVersion"])
        told = next((place for place, one in enumerate(objects.changes) if one.version > version), len(objects.changes))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(float(request.query.get("timeoutSeconds", 3_600))):
                while True:
                    new = objects.changes[told:]
                    told += len(new)
                    if new:
                        lines = [one.metadata_only if only_metadata else one.whole for one in new]
                        await response.write(b"".join(lines))
                        continue
                    try:
                        async with asyncio.timeout(BOOKMARK_SECONDS):
                            await objects.changed.wait()
                    except TimeoutError:
                        mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}}
                        await response.write(json.encode(mark) + b"\n")
        return response

    def _create(self, target: Target, obj: Object, agent: str) -> web.Response:
        if target.resource == "events":
            return _json(obj)
        key = (target.namespace, obj["metadata"]["name"])
        if key in self.resources[target.resource].objects:
            return _refused(409, "AlreadyExists")
        stored = self._store(target, key, obj, agent)
        if target.resource == "trainjobs":
            # Trainer's own writes come after the create is answered.
            asyncio.get_running_loop().call_soon(self._train, target, key)
        return web.Response(body=stored, content_type="application/json", status=201)

    def _store(self, target: Target, key: Key, obj: Object, agent: str) -> bytes:
        self.version += 1
        obj["metadata"] |= {
            "uid": self._uid(target.resource, obj),
            "namespace": target.namespace,
            "resourceVersion": str(self.version),
            "generation": 1,
            "creationTimestamp": NOW,
        }
        obj["metadata"]["managedFields"] = [managed(obj, agent)]
        if target.resource == "dispatchstarts":
            obj["status"] = {"observedGeneration": -1}
        return self.resources[target.resource].put(key, obj, "ADDED")

    def _uid(self, resource: str, obj: Object) -> str:
        """Return a UID, which for objects of a Start tells whose they are."""
        name = obj["metadata"]["name"]
        self._uids += 1
        if resource == "dispatchstarts":
            number = int(name.rpartition("-")[2])
        elif name.startswith("dj-") and name[23:29].isdecimal():
            number = int(name[23:29])
        else:
            return f"99999999-9999-4999-8999-{self._uids:012}"
        return f"{uid_prefix(number)}{self._uids:012}"

    def _train(self, target: Target, key: Key) -> None:
        """Do what Trainer and JobSet do about a new TrainJob."""
        train_job = self.resources["trainjobs"].get(key)
        runtime = self.resources["trainingruntimes"].get(key)
        if train_job is None or runtime is None:
            return
        jobsets = Target("jobset.x-k8s.io/v1alpha2", "jobsets", target.namespace, "", "")
        self._store(jobsets, key, job_set(copy.deepcopy(train_job), runtime), "jobset")
        self._update("jobsets", key, {"status": suspended("JobSet")}, "jobset", "status")
        self._update("trainjobs", key, {"status": suspended("TrainJob")}, "trainer", "status")

    def _update(self, resource: str, key: Key, patch: Object, agent: str, subresource: str) -> bytes:
        obj = merged(self.resources[resource].get(key), patch)
        self.version += 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(self.version)
        others = [one for one in meta["managedFields"] if one.get("subresource", "") != subresource]
        meta["managedFields"] = [*others, managed(obj, agent, subresource)]
        return self.resources[resource].put(key, obj, "MODIFIED")

    def _patch(self, target: Target, patch: Object, agent: str) -> web.Response:
        key = (target.namespace, target.name)
        held = self.resources[target.resource].get(key)
        if held is None:
            return _refused(404, "NotFound")
        expected = {name: patch["metadata"].pop(name, None) for name in ("uid", "resourceVersion")}
        if any(value not in {None, held["metadata"][name]} for name, value in expected.items()):
            return _refused(409, "Conflict")
        stored = self._update(target.resource, key, patch, agent, target.subresource)
        self._settled += target.resource == "dispatchstarts" and patch.get("status", {}).get("phase") == "Gated"
        return web.Response(body=stored, content_type="application/json")

    def _delete(self, target: Target) -> web.Response:
        """Delete an object, and with a TrainJob what it owns."""
        key = (target.namespace, target.name)
        for resource in (target.resource, *(("trainingruntimes", "jobsets") if target.resource == "trainjobs" else ())):
            if held := self.resources[resource].get(key):
                self.version += 1
                held["metadata"]["resourceVersion"] = str(self.version)
                self.resources[resource].put(key, held, "DELETED")
        return _json({"kind": "Status", "status": "Success"})


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=json.encode(value), content_type="application/json", status=status)


def _refused(code: int, reason: str = "NotFound") -> web.Response:
    status: dict[str, Any] = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}
    return _json(status, code)


async def _serve() -> None:
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", Server().answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
