"""The frame over real HTTP, in virtual time: when reconciles begin, what ends the process, and that nothing is left."""

import asyncio
import logging
from typing import Any, Self

import pytest
from aiohttp import web

from dispatch_operator.controllers import frame
from dispatch_operator.controllers.frame import Frame
from dispatch_operator.kube.reflector import Reflector
from dispatch_operator.kube.reflectors import ReflectorEndedError
from support.broken_streams import answers, hangs
from support.list_watch_server import Fault, Moment
from support.whole_server import WholeServer

pytestmark = pytest.mark.looptime


class Serving:
    """A frame that serves in a task of its own."""

    def __init__(self, client: Any, *namespaces: str) -> None:
        self.frame = Frame(client, namespaces)
        self.task = asyncio.create_task(self.frame.serve("test"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture(autouse=True)
def _survives(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    # kopf would kill the process of the tests, when virtual time goes on after the end.
    monkeypatch.setattr(frame, "EXITING_TIMEOUT", None)
    caplog.set_level(logging.INFO)


async def test_every_kind_is_listed_before_the_first_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    server = WholeServer()
    server.put("llama-s1", "dispatchstarts")

    async def stalls(request: web.Request, response: web.StreamResponse | None) -> web.StreamResponse:
        await asyncio.sleep(5)
        return await answers(503)(request, response)

    server.faults.append(Fault(Moment.FIRST_PAGE, stalls, "workloads"))
    async with server.serving() as client, Serving(client) as serving:
        await asyncio.sleep(4)
        assert "reconciles begin" not in caplog.text
        assert server.asked == []
        await asyncio.sleep(4)
        assert "reconciles begin" in caplog.text
        assert {request.resource for request in server.requests} == {
            "dispatchbackends",
            "clustertrainingruntimes",
            "trainingruntimes",
            "trainjobs",
            "jobsets",
            "workloads",
            "admissionchecks",
            "dispatchstarts",
        }
        # Its spec is no request: that is written to its status.
        assert any(asked.startswith("PATCH") and asked.endswith("/llama-s1/status") for asked in server.asked)
        assert serving.frame.reflectors.unready(60) == []


async def test_a_kind_that_is_not_served_keeps_no_other_waiting_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    server = WholeServer()
    server.faults += [Fault(Moment.FIRST_PAGE, answers(404), "jobsets") for _ in range(3)]
    async with server.serving() as client, Serving(client, "team-a") as serving:
        await asyncio.sleep(1)
        assert "reconciles begin; not listed yet: JobSet in team-a" in caplog.text
        (problem,) = serving.frame.reflectors.unready(60)
        assert problem.startswith("JobSet in team-a has not been listed yet")
        # It is served later: no restart is needed.
        await asyncio.sleep(120)
        assert serving.frame.reflectors.unready(60) == []
        assert not serving.task.done()


async def test_a_namespaced_operator_asks_for_its_namespaces_alone() -> None:
    server = WholeServer()
    async with server.serving() as client, Serving(client, "a", "b"):
        await asyncio.sleep(2)
    assert "admissionchecks" not in {request.resource for request in server.requests}


async def test_a_reflector_that_ends_ends_the_process_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Reflector.run

    async def run(self: Reflector) -> None:
        if str(self) == "Workload":
            await asyncio.sleep(10)
            raise MemoryError("ours")
        await ran(self)

    monkeypatch.setattr(Reflector, "run", run)
    server = WholeServer()
    async with server.serving() as client:
        task = asyncio.create_task(Frame(client, []).serve("test"))
        await asyncio.sleep(9)
        assert not task.done()
        async with asyncio.timeout(5):
            with pytest.raises(ReflectorEndedError, match="the reflector of Workload has ended"):
                await task


@pytest.mark.parametrize("moment", [Moment.FIRST_PAGE, Moment.WATCH, None])
async def test_nothing_goes_on_after_it_was_cancelled(moment: Moment | None) -> None:
    server = WholeServer()
    server.put("llama-s1", "dispatchstarts")
    if moment:
        server.faults.append(Fault(moment, hangs, "dispatchstarts"))
    async with server.serving() as client:
        before = names()
        task = asyncio.create_task(Frame(client, []).serve("test"))
        await asyncio.sleep(3)
        task.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert names() - before == set()


def names() -> set[str]:
    """Return the tasks of ours that go on; those of the server in this process are its own."""
    ours = ("reflector", "event recorder", "Frame", "WorkQueue")
    return {str(task) for task in asyncio.all_tasks() if any(word in str(task) for word in ours)}
