"""What a pod's probes ask: is the operator alive, and is it ready (a dead watcher must not go unnoticed)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

WATCHER = "watcher for "
"""How kopf names the tasks that keep its watches."""


class Health:
    """Knows what should go on in this process, and sees whether it does."""

    def __init__(self, authorized: Callable[[], bool], required: Iterable[str] = ()) -> None:
        self._authorized = authorized
        self._required = frozenset(required)
        """The paths of the watches without which the operator does not work."""
        self._seen: set[str] = set()
        self._watches: set[str] = set()
        self.active = False
        """Whether this operator leads; one that waits for its Lease is alive but not ready."""

    def watching(self, path: str) -> None:
        """Note that a watch has begun: all that it is about was listed before."""
        self._watches.add(path)
        self._seen |= self._watchers()

    def faults(self) -> list[str]:
        """Say what keeps the operator from going on: kopf does not end when a watcher of its does (nolar/kopf#1313)."""
        running = self._watchers()
        self._seen |= running
        return [f"the {name} has ended" for name in sorted(self._seen - running)] if self.active else []

    def lacks(self) -> list[str]:
        """Say what keeps the operator from being ready."""
        faults = self.faults()
        if not self.active:
            faults.append("waiting for the Lease")
        else:
            faults += [f"{path} is not watched" for path in sorted(self._required - self._watches)]
        if not self._authorized():
            faults.append("the API server does not accept the credentials")
        return faults

    @staticmethod
    def _watchers() -> set[str]:
        return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(WATCHER)}


@asynccontextmanager
async def answering(health: Health, host: str, port: int) -> AsyncIterator[None]:
    """Answer GET /healthz and /readyz: 200, or 503 with what is wrong, a line each.

    Args:
        health: Whom to ask.
        host: The address to listen on.
        port: The port to listen on.
    """

    def answer(problems: Callable[[], list[str]]) -> Callable[[web.Request], object]:
        async def handler(_request: web.Request) -> web.Response:
            found = problems()
            return web.Response(text="\n".join(found or ["ok"]) + "\n", status=503 if found else 200)

        return handler

    app = web.Application()
    app.router.add_get("/healthz", answer(health.faults))  # type: ignore[arg-type]
    app.router.add_get("/readyz", answer(health.lacks))  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()
