"""The Lease under an API server that answers with no JSON, or not at all."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import test_utils, web
from kubernetes_asyncio import client

from dispatch_operator.kube import leader_election
from dispatch_operator.kube.leader_election import Lease, LeaseLostError, lead
from support.waiting import until_true

pytestmark = pytest.mark.looptime
LEASE = Lease("n", "l", "me")


class Server:
    """Keeps one Lease, and answers the first requests after the leader has begun with what a test wants."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {}
        self.instead: list[tuple[int, str]] = []
        self.hangs = False
        self.renewed = asyncio.Event()
        """Set at each write that is carried out."""

    async def answer(self, request: web.Request) -> web.Response:
        if self.hangs:
            await asyncio.sleep(3600)
        if self.instead:
            status, text = self.instead.pop()
            return web.Response(status=status, text=text)
        if request.method != "GET":
            self.lease = await request.json()
            self.renewed.set()
        return web.json_response(self.lease or {"code": 404}, status=200 if self.lease else 404)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_election, "LIFETIME", 4)
    monkeypatch.setattr(leader_election, "RENEW_WITHIN", 3)
    monkeypatch.setattr(leader_election, "RENEW_EVERY", 1)


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def api(server: Server) -> AsyncIterator[client.ApiClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with test_utils.TestServer(app) as served:
        configuration = client.Configuration()
        configuration.host = str(served.make_url("")).rstrip("/")
        async with client.ApiClient(configuration) as api:
            yield api


def test_each_selector_has_a_lease_of_its_own() -> None:
    selectors = ["shard=a", "shard=b", "shard in (a, b)", "!shard"]
    leases = {LEASE.of_shard(selector) for selector in selectors}
    assert len(leases) == len(selectors)
    assert LEASE not in leases
    assert all(re.fullmatch("l-[0-9a-f]{10}", lease.name) for lease in leases)
    assert {(lease.namespace, lease.holder) for lease in leases} == {("n", "me")}
    assert LEASE.of_shard("shard=a") in leases


@pytest.mark.parametrize("answer", [(429, "Too many requests, please try again later."), (502, "<html>"), (503, "")])
async def test_an_answer_that_is_no_json_is_a_failure_like_any_other(
    server: Server, api: client.ApiClient, answer: tuple[int, str]
) -> None:
    async def serve() -> None:
        server.instead = [answer]
        server.renewed.clear()
        await server.renewed.wait()

    await lead(api, LEASE, serve)
    assert server.instead == []


async def test_a_leader_that_can_not_renew_ends_before_its_lease_does(server: Server, api: client.ApiClient) -> None:
    loop, hanging = asyncio.get_running_loop(), []

    async def serve() -> None:
        # It has renewed for longer than it may go without.
        await asyncio.sleep(2 * leader_election.LIFETIME)
        server.hangs = True
        hanging.append(loop.time())
        await asyncio.sleep(3600)

    # A call may take five seconds, and the library looks at its own deadline only between two of them.
    with pytest.raises(LeaseLostError, match="not renewed for 3 s"):
        await lead(api, LEASE, serve)
    assert loop.time() - hanging[0] <= leader_election.RENEW_WITHIN


async def test_an_event_loop_that_is_blocked_for_longer_than_the_lease_loses_it_before_anything_else_is_done(
    server: Server, api: client.ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    clock, worked = loop.time, []

    async def serve() -> None:
        await asyncio.sleep(2 * leader_election.LIFETIME)
        # All that a loop sees of having been blocked is a clock that has jumped.
        monkeypatch.setattr(loop, "time", lambda: clock() + leader_election.LIFETIME)
        await asyncio.sleep(0.01)
        worked.append("after another may lead")

    with pytest.raises(LeaseLostError, match="not renewed for 3 s"):
        await lead(api, LEASE, serve)
    assert worked == []
    # It is not this one's to give back any more.
    assert server.lease["spec"]["holderIdentity"] == "me"


async def test_a_lease_that_another_has_taken_is_lost(server: Server, api: client.ApiClient) -> None:
    async def serve() -> None:
        server.lease["spec"] |= {"holderIdentity": "another", "renewTime": "2100-01-01T00:00:00.000000Z"}
        await asyncio.sleep(3600)

    with pytest.raises(LeaseLostError):
        await lead(api, LEASE, serve)
    assert server.lease["spec"]["holderIdentity"] == "another"


async def test_a_lease_that_another_has_taken_is_not_given_back_for_it(server: Server, api: client.ApiClient) -> None:
    async def serve() -> None:
        server.lease["spec"]["holderIdentity"] = "another"

    await lead(api, LEASE, serve)
    assert server.lease["spec"]["holderIdentity"] == "another"


async def test_what_ends_by_itself_gives_the_lease_back(server: Server, api: client.ApiClient) -> None:
    async def serve() -> None:
        assert server.lease["spec"]["holderIdentity"] == "me"

    await lead(api, LEASE, serve)
    assert not server.lease["spec"].get("holderIdentity")


async def test_who_can_not_do_its_work_gives_the_lease_back_serves_on_and_begins_anew_when_it_can(
    server: Server, api: client.ApiClient
) -> None:
    fit, served = asyncio.Event(), []
    fit.set()

    async def serve() -> None:
        for second in itertools.count():
            served.append(second)
            await asyncio.sleep(1)

    def holder() -> str | None:
        holder: str | None = server.lease.get("spec", {}).get("holderIdentity")
        return holder

    leading = asyncio.create_task(lead(api, LEASE, serve, fit.is_set))
    await until_true(lambda: holder() == "me")
    await asyncio.sleep(2 * leader_election.LIFETIME)
    assert holder() == "me"
    fit.clear()
    await until_true(lambda: holder() != "me")
    before = len(served)
    await asyncio.sleep(10 * leader_election.LIFETIME)
    assert holder() != "me"
    assert len(served) > before
    assert not leading.done()
    fit.set()
    with pytest.raises(LeaseLostError, match="it begins anew"):
        await leading
    before = len(served)
    await asyncio.sleep(10)
    assert len(served) == before


@pytest.mark.parametrize("ends", ["by itself", "is stopped"])
async def test_who_has_given_its_lease_back_ends_as_ever(server: Server, api: client.ApiClient, ends: str) -> None:
    fit, stop, ended = asyncio.Event(), asyncio.Event(), []
    fit.set()

    async def serve() -> None:
        try:
            await stop.wait()
        finally:
            ended.append("served")

    leading = asyncio.create_task(lead(api, LEASE, serve, fit.is_set))
    await until_true(lambda: server.lease.get("spec", {}).get("holderIdentity") == "me")
    fit.clear()
    await until_true(lambda: server.lease["spec"].get("holderIdentity") != "me")
    await asyncio.sleep(3)
    if ends == "by itself":
        stop.set()
        await leading
    else:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
    assert ended == ["served"]
