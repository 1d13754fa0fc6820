"""A fake API server for a whole operator that stores what it is told: a `FakeApi` over real HTTP, with lists and watches."""

from dataclasses import dataclass, field

from aiohttp import web

from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.kube.errors import ApiError
from support.fake_api import FakeApi
from support.list_watch_server import Object, refusal
from support.whole_server import WholeServer

KINDS = {resource.plural: kind for kind, resource in RESOURCES.items()}
SECONDS = 30.0


@dataclass
class StoredServer(WholeServer):
    """Answers all that an operator asks for; what it stores is in `api`."""

    api: FakeApi = field(default_factory=lambda: FakeApi(count=100))
    leases: dict[str, Object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.others = self._carry_out
        self.api.watches.append(self._note)

    def _note(self, kind: str, obj: Object, gone: bool) -> None:
        """Let lists and watches tell of a change."""
        resource, meta = RESOURCES[Kind(kind)].plural, obj["metadata"]
        place = meta.get("namespace", ""), meta["name"]
        if gone:
            self.api.count += 1
            meta["resourceVersion"] = str(self.api.count)
            self.objects[resource].pop(place)
        self.version = self.api.count
        known = place in self.objects[resource]
        if not gone:
            self.objects[resource][place] = obj
        self._change(resource, "DELETED" if gone else "MODIFIED" if known else "ADDED", obj)

    async def _carry_out(self, request: web.Request) -> web.StreamResponse:
        if "/leases" in request.path:
            return await self._lease(request)
        parts = request.path.strip("/").split("/")[2 if request.path.startswith("/api/") else 3 :]
        namespace = parts[1] if parts[0] == "namespaces" else None
        resource, *rest = parts[2:] if namespace else parts
        name, subresource = (*rest, "", "")[:2]
        if resource not in KINDS:
            return refusal(404, "NotFound", "it does not exist")
        try:
            found = await self._answer(request, KINDS[resource], namespace or "", name, subresource)
        except ApiError as error:
            return refusal(error.status or 500, error.reason, error.message)
        return refusal(404, "NotFound", "it does not exist") if found is None else web.json_response(found)

    async def _answer(
        self, request: web.Request, kind: Kind, namespace: str, name: str, subresource: str
    ) -> Object | None:
        body = await request.json() if request.can_read_body else {}
        match request.method:
            case "POST":
                return await self.api.create(kind, namespace, body, timeout=SECONDS)
            case "PATCH":
                return await self.api.patch(kind, namespace, name, body, timeout=SECONDS, subresource=subresource)
            case "DELETE":
                await self.api.delete(kind, namespace, name, timeout=SECONDS, **_preconditions(body))
                return {"kind": "Status", "status": "Success"}
            case _:
                return await self.api.get(kind, namespace, name, timeout=SECONDS)

    async def _lease(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            body = await request.json()
            self.leases[body["metadata"]["name"]] = body
            return web.json_response(body)
        held = self.leases.get(request.path.rpartition("/")[2])
        return web.json_response(held) if held else refusal(404, "NotFound", "it does not exist")


def _preconditions(body: Object) -> dict[str, str]:
    stated = body["preconditions"]
    return {"uid": stated["uid"], "resource_version": stated.get("resourceVersion")}
