"""What a pod's probes ask: does the event loop turn, and is the operator ready?"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from dispatch_operator.metrics.exposition import Collectors, exposition

PATIENCE = 60.0
"""Seconds for which a watch may be down before the operator is not ready any more."""


class Health:
    """Knows what should go on in this process, and says what does not."""

    def __init__(self, authorized: Callable[[], bool]) -> None:
        self._authorized = authorized
        self.unready: Callable[[float], list[str]] | None = None
        """Says of the watches what is wrong with them; None while another operator leads."""

        self.remarks: Callable[[], list[str]] = list
        """Says what is worth knowing, and keeps the operator from nothing."""

        self.collectors: Collectors = ()
        """What /metrics shows besides what is counted where it happens."""

    def lacks(self) -> list[str]:
        """Say what keeps the operator from being ready; one that could take over at once lacks nothing."""
        found = [] if self.unready is None else self.unready(PATIENCE)
        if not self._authorized():
            found.append("the API server does not accept the credentials")
        return found


@asynccontextmanager
async def answering(health: Health, host: str, port: int) -> AsyncIterator[None]:
    """Answer GET /healthz, GET /readyz with 200, or 503 and what is wrong, a line each, and GET /metrics.

    Last in what /readyz answers come the remarks, a line each.

    An operator that waits for its Lease is ready and says so: were it not, a disruption budget would never let go of
    the one that works.

    Args:
        health: Whom to ask.
        host: The address to listen on.
        port: The port to listen on.
    """

    async def alive(_request: web.Request) -> web.Response:
        # A process whose part has ended ends; one whose event loop is blocked does not answer.
        return web.Response(text="ok\n")

    async def ready(_request: web.Request) -> web.Response:
        found = health.lacks()
        well = "waiting for the Lease" if health.unready is None else "ok"
        lines = [*(found or [well]), *health.remarks()]
        return web.Response(text="\n".join(lines) + "\n", status=503 if found else 200)

    async def metrics(request: web.Request) -> web.Response:
        text, content_type = exposition(request.headers.get("Accept", ""), *health.collectors)
        return web.Response(body=text, headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", ready)
    # Connections that are kept would be waited for in the end; a probe makes a new one each time.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=0.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()
