"""Certificates that are rotated under a running operator are picked up, whatever connects."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
import trustme
from aiohttp import web
from kubernetes_asyncio import client

from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.leader_election import Lease, lead

SECONDS = 10.0


class Server:
    """An API server with a certificate of its own authority; it knows one Lease, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.authority = folder / "ca.crt"
        self.port = 0
        self.lease: dict[str, object] = {}
        self.renewed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def answer(self, request: web.Request) -> web.Response:
        if request.method != "GET":
            self.lease = await request.json()
            self.renewed.set()
        return web.json_response(self.lease or {"code": 404}, status=200 if self.lease else 404)

    async def begin(self, *, written: bool = True) -> None:
        """Begin with a new authority, on the port of before; the connections of before end."""
        await self.end()
        authority, tls = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(tls)
        if written:
            self.write(authority)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=tls, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def write(self, authority: trustme.CA) -> None:
        self.authority.write_bytes(authority.cert_pem.bytes())

    async def end(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def configuration(self) -> client.Configuration:
        made = client.Configuration()
        made.host, made.ssl_ca_cert = f"https://127.0.0.1:{self.port}", str(self.authority)
        return made


@pytest.fixture
async def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


async def is_answered(cluster: Client) -> bool:
    try:
        await cluster.list_page("TrainJob", "team-a", timeout=SECONDS, limit=1)
    except ApiError as error:
        return error.status == 404
    return True


async def is_found(cluster: Client) -> bool:
    try:
        await cluster.get("TrainJob", "team-a", "a", timeout=SECONDS)
    except ApiError as error:
        return error.status == 404
    return True


@pytest.mark.parametrize("asks", [is_answered, is_found])
async def test_a_rotated_authority_is_picked_up_by_requests_and_watches(
    server: Server, asks: Callable[[Client], Awaitable[bool]]
) -> None:
    await server.begin()
    async with client.ApiClient(server.configuration()) as api, aclosing(Client(api)) as cluster:
        assert await asks(cluster)
        await server.begin()
        # The first one finds out; a rotation that was not told in the file is none.
        assert not await asks(cluster)
        assert await asks(cluster)
        await server.begin(written=False)
        assert not await asks(cluster)
        assert not await asks(cluster)
    await server.end()


async def test_a_rotated_authority_does_not_cost_the_lease(server: Server) -> None:
    await server.begin()

    async def serve() -> None:
        await server.begin()
        server.renewed.clear()
        async with asyncio.timeout(SECONDS):
            await server.renewed.wait()

    async with client.ApiClient(server.configuration()) as api:
        await lead(api, Lease("n", "l", "me"), serve)
    await server.end()
