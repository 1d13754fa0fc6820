"""Liveness and readiness, over real HTTP."""

import aiohttp
import pytest

from dispatch_operator.kube.health import PATIENCE, Health, answering
from support.ports import free_port


@pytest.fixture
def port() -> int:
    return free_port()


async def ask(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, (await answer.text()).strip()


async def test_an_operator_that_waits_for_its_lease_is_ready_to_take_over_and_says_so(port: int) -> None:
    async with answering(Health(lambda: True), "127.0.0.1", port):
        assert await ask(port, "/healthz") == (200, "ok")
        assert await ask(port, "/readyz") == (200, "waiting for the Lease")


async def test_an_operator_is_ready_as_long_as_its_watches_are(port: int) -> None:
    health, wrong = Health(lambda: True), ["TrainJob has not been listed yet"]
    health.unready = lambda patience: list(wrong) if patience == PATIENCE else []
    async with answering(health, "127.0.0.1", port):
        assert await ask(port, "/readyz") == (503, "TrainJob has not been listed yet")
        assert await ask(port, "/healthz") == (200, "ok")
        wrong.clear()
        assert await ask(port, "/readyz") == (200, "ok")
        health.unready = None
        assert await ask(port, "/readyz") == (200, "waiting for the Lease")


async def test_what_is_worth_knowing_stands_last_and_keeps_nobody_from_being_ready(port: int) -> None:
    health = Health(lambda: True)
    health.unready = lambda _patience: []
    health.remarks = lambda: ["namespace team-b does not exist"]
    async with answering(health, "127.0.0.1", port):
        assert await ask(port, "/readyz") == (200, "ok\nnamespace team-b does not exist")


async def test_credentials_that_are_not_accepted_are_told(port: int) -> None:
    async with answering(Health(lambda: False), "127.0.0.1", port):
        status, text = await ask(port, "/readyz")
        assert status == 503
        assert "credentials" in text
