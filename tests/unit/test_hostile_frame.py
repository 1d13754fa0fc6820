"""Hostile objects among others, and many of them, in a whole operator over real HTTP: nobody waits for them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from dispatch_operator.controllers import frame
from dispatch_operator.controllers.frame import Frame
from dispatch_operator.kube import list_watch
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.leader_election import Lease, lead
from support.builders import JOB, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi
from support.list_watch_server import refusal
from support.operator import FakeOperator
from support.stored_server import StoredServer

pytestmark = pytest.mark.looptime
Object = dict[str, Any]
STARTS = 3_000
PODS = 10_000


def job_id(number: int) -> str:
    """Return a different ULID for every number."""
    return f"{JOB[:-4]}{number:04d}"


@pytest.fixture(autouse=True)
def _survives(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    # kopf would kill the process of the tests, when virtual time goes on after the end.
    monkeypatch.setattr(frame, "EXITING_TIMEOUT", None)
    # The fake server sends no bookmark each minute.
    monkeypatch.setattr(list_watch, "SILENT_SECONDS", 3600.0)
    caplog.set_level(logging.INFO)


@pytest.fixture
def server() -> StoredServer:
    server = StoredServer()
    server.api.put(make_runtime())
    backend = make_backend(state="Closed")
    server.api.put(backend, **backend.pop("status"))
    return server


async def settled() -> Object:
    """Return the status of a Start that is refused for good."""
    operator, backend = FakeOperator(FakeApi()), make_backend()
    operator.api.put(make_runtime())
    operator.api.put(backend, **backend.pop("status"))
    operator.api.put(make_start(nodes=0), observedGeneration=-1)
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    status: Object = start["status"]
    return status


@asynccontextmanager
async def leading(client: Client) -> AsyncIterator[Frame]:
    """Run an operator that holds a Lease for as long as the block."""
    made = Frame(client, [])
    task = asyncio.create_task(lead(client.api, Lease("team-a", "one", "test"), lambda: made.serve("test")))
    try:
        yield made
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_three_thousand_starts_are_listed_in_pages_and_none_is_written_or_read_again(
    server: StoredServer, caplog: pytest.LogCaptureFixture
) -> None:
    status = await settled()
    for number in range(STARTS):
        server.api.put(make_start(f"start-{number}", job=job_id(number), nodes=0), **status)
    server.api.requests.clear()
    async with server.serving() as client, leading(client) as made:
        await asyncio.sleep(120)
        assert made.reflectors.unready(60) == []
        assert "reconciles begin; everything is listed" in caplog.text
    pages = [asked for asked in server.requests if asked.resource == "dispatchstarts" and not asked.watch]
    assert len(pages) == STARTS / 500
    # Only the backend, which nobody has probed, is asked for and told of.
    assert {request.kind for request in server.api.requests} <= {"DispatchBackend", "Event"}
    assert len(server.api.requests) < 10
    # The Lease was renewed meanwhile.
    assert sum("/leases" in asked for asked in server.asked) > 120 / 2


def pod(number: int) -> Object:
    """Return a pod that ended by itself, and the last one of which ran out of memory."""
    ended = {"exitCode": 1, "finishedAt": "2026-01-01T00:01:00Z"}
    if number == PODS - 1:
        ended |= {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:30Z"}
    return {
        "metadata": {"name": f"pod-{number}", "namespace": NAMESPACE, "uid": f"pod-{number}", "resourceVersion": "1"},
        "status": {"phase": "Failed", "containerStatuses": [{"name": "node", "state": {"terminated": ended}}]},
    }


async def ended(server: StoredServer, name: str) -> Object:
    """Wait until a Start's verdict stands, and return its status."""
    async with asyncio.timeout(600):
        while True:
            await asyncio.sleep(1)
            found = next(one for one in server.api.all("DispatchStart") if one["metadata"]["name"] == name)
            if "phase" in found["status"] and found["status"]["phase"] not in {"Queued", "Running"}:
                status: Object = found["status"]
                return status


async def test_ten_thousand_pods_of_a_failed_job_come_in_pages_and_hold_nobody_up(server: StoredServer) -> None:
    server.api.edit("DispatchBackend", lambda held: held["spec"].update(state="Open"))
    server.api.put(make_start(gate="Open"), observedGeneration=-1)
    queued = await FakeOperator(server.api).settle()
    assert queued["status"]["phase"] == "Queued"
    server.api.edit("DispatchBackend", lambda held: held["spec"].update(state="Closed"))
    failed = {"type": "Failed", "status": "True", "reason": "JobsFailed", "message": "it failed"}
    server.api.edit("TrainJob", lambda job: job.update(status={"conditions": [failed]}))
    server.objects["pods"] = {(NAMESPACE, f"pod-{number}"): pod(number) for number in range(PODS)}
    server.api.put(make_start("other", job=job_id(1)), observedGeneration=-1)
    async with server.serving() as client, leading(client):
        assert (await ended(server, "other"))["phase"] == "Pending"
        told = await ended(server, "llama-s1")
    assert (told["phase"], told["outcome"]["state"]) == ("Failed", "Failed")
    pages = [asked for asked in server.requests if asked.resource == "pods"]
    assert 1 <= len(pages) <= PODS / 500
    assert {int(asked.query["limit"]) for asked in pages} == {500}


async def test_a_retry_after_of_four_hundred_digits_is_waited_for_minutes_and_by_one_start_alone(
    server: StoredServer,
) -> None:
    answer, refused = server.others, []

    async def throttles(request: web.Request) -> web.StreamResponse:
        if request.method == "PATCH" and "/dispatchstarts/llama-s1/" in request.path and not refused:
            refused.append(asyncio.get_running_loop().time())
            return refusal(429, "TooManyRequests", "slow down", **{"Retry-After": "9" * 400})
        return await answer(request)

    server.others = throttles
    server.api.put(make_start(), observedGeneration=-1)
    server.api.put(make_start("other", job=job_id(1)), observedGeneration=-1)
    async with server.serving() as client, leading(client):
        await ended(server, "other")
        assert asyncio.get_running_loop().time() < 60
        await ended(server, "llama-s1")
        assert refused[0] + 60 < asyncio.get_running_loop().time() < refused[0] + 400
