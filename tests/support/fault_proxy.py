"""A proxy before the real API server that answers, cuts, delays or swallows chosen requests."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from support.waiting import until

Object = dict[str, Any]
START_SECONDS = 10
HOP_BY_HOP = {"host", "content-length", "transfer-encoding", "connection"}


@dataclass(frozen=True)
class ProxiedRequest:
    """One request, as a rule sees it."""

    verb: str
    resource: str
    name: str
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'/' if self.subresource else ''}{self.subresource}"


@dataclass(frozen=True)
class ProxyFault:
    """What becomes of a request; a `status` of 0 means that no answer is sent at all."""

    name: str
    status: int = 0
    reason: str = ""
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    carried_out: bool = False
    """Whether the API server gets the request before the fault shows."""
    cut: bool = False
    """Whether the answer breaks off in its middle."""
    silent: bool = False
    """Whether the connection stays open, and nothing comes."""
    stream: bytes = b""
    """What a watch sends, instead of what happened, before it ends."""

    def body(self) -> Object:
        """Return the answer, as the API server words it."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.status,
            "reason": self.reason,
            "message": self.message,
        }


Rule = Callable[[ProxiedRequest], ProxyFault | None]


class FaultProxy:
    """Forwards to an API server what no rule speaks of. Rules are asked in the proxy's own thread."""

    def __init__(self, kubeconfig: Path, folder: Path, tls: ssl.SSLContext | None = None) -> None:
        self._config: Object = yaml.safe_load(kubeconfig.read_text())
        self._cluster = self._config["clusters"][0]["cluster"]
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._tls = tls
        self._watches: set[asyncio.Transport] = set()
        self.port = 0
        self.rule: Rule = lambda _asked: None
        self.asked: list[ProxiedRequest] = []
        self.kubeconfig = folder / "through-proxy.kubeconfig"

    @contextmanager
    def running(self) -> Iterator["FaultProxy"]:
        """Serve on a port of loopback for as long as the block."""
        thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        thread.start()
        try:
            until("the proxy listens", lambda: self.port, seconds=START_SECONDS)
            self._write()
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(START_SECONDS)
            self._loop.close()

    def _write(self) -> None:
        config = json.loads(json.dumps(self._config))
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        self.kubeconfig.write_text(yaml.safe_dump(config))

    async def _serve(self) -> None:
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._trust(), limit=0), auto_decompress=False, read_bufsize=2**21
        ) as self._upstream:
            self.port = runner.addresses[0][1]
            await self._stop.wait()
            await runner.cleanup()

    def _trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if path := self._cluster.get("certificate-authority"):
            context.load_verify_locations(cafile=path)
        else:
            import base64  # noqa: PLC0415 - only for a kubeconfig that holds its own authority.

            context.load_verify_locations(cadata=base64.b64decode(self._cluster["certificate-authority-data"]).decode())
        return context

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = _asked(request, body)
        self.asked.append(asked)
        fault = self.rule(asked)
        if fault is None:
            try:
                return await (self._watch(request) if asked.verb == "watch" else self._forward(request, body))
            except ConnectionError:
                # Who asked is gone, or was hung up on.
                return web.Response()
        if fault.carried_out:
            async with self._send(request, body) as answer:
                data = await answer.read()
            if fault.cut:
                await self._cut(request, data)
        if fault.stream:
            return web.Response(body=fault.stream, content_type="application/json")
        if fault.silent:
            await self._stop.wait()
        if not fault.status:
            _hang_up(request)
        return web.json_response(fault.body(), status=fault.status or 502, headers=fault.headers)

    def _send(self, request: web.Request, body: bytes) -> Any:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        return self._upstream.request(
            request.method,
            f"{self._cluster['server']}{request.raw_path}",
            headers=headers,
            data=body or None,
            timeout=aiohttp.ClientTimeout(),
        )

    def hang_up_watches(self) -> None:
        """Break the connection of every watch."""
        for watch in self._watches.copy():
            self._loop.call_soon_threadsafe(watch.abort)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        transport = request.transport
        self._watches.add(transport)
        try:
            return await self._forward(request, b"")
        finally:
            self._watches.discard(transport)

    async def _forward(self, request: web.Request, body: bytes) -> web.StreamResponse:
        async with self._send(request, body) as answer:
            headers = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=headers)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _cut(self, request: web.Request, data: bytes) -> None:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(data))})
        await response.prepare(request)
        await response.write(data[: len(data) // 2])
        _hang_up(request)


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _asked(request: web.Request, body: bytes) -> ProxiedRequest:
    """Read verb, resource and name from a request's path, and a create's name from its body."""
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    resource, name, subresource = (*parts, "", "", "")[:3]
    verbs = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}
    verb = "watch" if request.query.get("watch") == "true" else verbs.get(request.method, request.method.lower())
    if verb == "create" and body:
        name = str(json.loads(body).get("metadata", {}).get("name", ""))
    return ProxiedRequest(verb, resource, name, subresource)
