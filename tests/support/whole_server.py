"""A fake API server for a whole operator over real HTTP: every kind is listed and watched, and other requests are noted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from support.list_watch_server import ListWatchServer, refusal

Object = dict[str, Any]


async def absent(_request: web.Request) -> web.StreamResponse:
    """Answer that there is no such object."""
    return refusal(404, "NotFound", "it does not exist")


@dataclass
class WholeServer(ListWatchServer):
    """Answers kopf's discovery, lists and watches; `others` answers what else is asked."""

    others: Callable[[web.Request], Awaitable[web.StreamResponse]] = absent
    asked: list[str] = field(default_factory=list)
    """What else was asked, as "GET /path"."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        if request.path in {"/api", "/apis"}:
            return web.json_response({"versions": [], "groups": []})
        if request.method == "GET" and request.query.keys() & {"watch", "limit"}:
            return await super().answer(request)
        self.asked.append(f"{request.method} {request.path}")
        return await self.others(request)
