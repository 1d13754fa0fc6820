"""Liveness and readiness, over real HTTP."""

import asyncio
import socket

import aiohttp
import pytest

from dispatch_operator.kube.health import Health, answering


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def ask(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, (await answer.text()).strip()


async def test_an_operator_that_waits_is_alive_and_not_ready(port: int) -> None:
    async with answering(Health(lambda: True), "127.0.0.1", port):
        assert await ask(port, "/healthz") == (200, "ok")
        assert await ask(port, "/readyz") == (503, "waiting for the Lease")


async def test_an_operator_that_watches_is_ready_until_a_watcher_ends(port: int) -> None:
    path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs"
    health = Health(lambda: True, [path])
    health.active = True
    async with answering(health, "127.0.0.1", port):
        watcher = asyncio.create_task(asyncio.Event().wait(), name="watcher for trainjobs@team-a")
        assert await ask(port, "/readyz") == (503, f"{path} is not watched")
        health.watching(path)
        assert await ask(port, "/readyz") == (200, "ok")
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        assert await ask(port, "/healthz") == (503, "the watcher for trainjobs@team-a has ended")
        assert (await ask(port, "/readyz"))[0] == 503


async def test_credentials_that_are_not_accepted_are_told(port: int) -> None:
    async with answering(Health(lambda: False), "127.0.0.1", port):
        status, text = await ask(port, "/readyz")
        assert status == 503
        assert "credentials" in text
