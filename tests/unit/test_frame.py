"""The frame over real HTTP, in virtual time: when reconciles begin, what ends the process, and that nothing is left."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Self

import pytest
from aiohttp import web

from dispatch_operator.api.kinds import RESOURCES as RESOURCES_OF
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.label_selector import LabelSelector
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.controllers import frame
from dispatch_operator.controllers.frame import Elect, Frame
from dispatch_operator.controllers.watches import WATCHES
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.leader_election import LeaseLostError
from dispatch_operator.kube.reflector import Reflector
from dispatch_operator.kube.reflectors import ReflectorEndedError
from support.broken_streams import answers, ends, hangs, sends
from support.builders import JOB, NAME
from support.list_watch_server import Fault, Moment, event, status_of
from support.whole_server import WholeServer, absent

pytestmark = pytest.mark.looptime


class Serving:
    """A frame that serves in a task of its own."""

    def __init__(self, client: Any, *namespaces: str, selector: str = "", elect: Elect | None = None) -> None:
        self.frame = Frame(client, namespaces, LabelSelector.parse(selector) if selector else None)
        self.task = asyncio.create_task(self.frame.serve("test", elect))

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


class Election:
    """An election that is won, and lost, when a test says so."""

    def __init__(self) -> None:
        self.won, self.lost = asyncio.Event(), asyncio.Event()

    async def __call__(self, work: Callable[[], Awaitable[None]]) -> None:
        await self.won.wait()
        working = asyncio.ensure_future(work())
        await self.lost.wait()
        working.cancel()
        raise LeaseLostError("the Lease was lost")


def put_rest(server: WholeServer) -> None:
    """Put what belongs to no DispatchStart, so that each controller has something to do; and a job of start-b."""
    prefix = "dispatch.phpboyscout.uk"
    ours = {
        f"{prefix}/job-id": JOB,
        f"{prefix}/submission": "1",
        "app.kubernetes.io/managed-by": "dispatch-operator",
    }
    server.put("default", "dispatchbackends")
    orphan = server.put(NAME, "trainingruntimes")["metadata"]
    orphan |= {"labels": ours, "annotations": {f"{prefix}/start": "gone", f"{prefix}/start-uid": "gone-uid"}}
    check = server.put("check", "admissionchecks", namespace="", controllerName=f"{prefix}/start")
    check["status"] = {"conditions": [{"type": "Active", "status": "True", "observedGeneration": 0}]}
    for name, kind, owner in (("of-others", "Job", "x"), ("of-b", "TrainJob", NAME)):
        workload = server.put(name, "workloads")
        workload["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner, "uid": f"{kind}-uid"}]
        workload["status"] = {"admissionChecks": [{"name": "check", "state": "Retry"}]}
    start = server.put("start-b", "dispatchstarts")["metadata"]
    start["labels"] = {"shard": "b"}
    of_start = {f"{prefix}/start": "start-b", f"{prefix}/start-uid": start["uid"]}
    job = {"name": NAME, "namespace": "team-a", "uid": "TrainJob-uid", "labels": ours, "annotations": of_start}

    async def answer(request: web.Request) -> web.StreamResponse:
        # No watch has told of it yet.
        if request.path.endswith(f"/trainjobs/{NAME}"):
            return web.json_response({"metadata": job, "spec": {}})
        return await absent(request)

    server.others = answer


async def test_a_shard_serves_what_it_selects_and_the_rest_once_it_is_elected(caplog: pytest.LogCaptureFixture) -> None:
    server, election = WholeServer(), Election()
    server.put("start-a", "dispatchstarts")["metadata"]["labels"] = {"shard": "a"}
    put_rest(server)
    async with server.serving() as client, Serving(client, selector="shard=a", elect=election):
        await asyncio.sleep(5)
        assert any(asked.endswith("/start-a/status") for asked in server.asked)
        assert not any(path in asked for asked in server.asked for path in (NAME, "/workloads/", "/start-b"))
        assert "team-a/default can't be used" not in caplog.text
        # Nobody tells anew of what was there already.
        election.won.set()
        await asyncio.sleep(5)
        assert "team-a/default can't be used" in caplog.text
        assert any(asked.startswith("GET") and asked.endswith(f"/trainingruntimes/{NAME}") for asked in server.asked)
        assert any(asked.startswith("PATCH") and "/workloads/of-others/" in asked for asked in server.asked)
        assert any(asked.startswith("GET") and asked.endswith(f"/trainjobs/{NAME}") for asked in server.asked)
        assert not any("/workloads/of-b/" in asked or "/start-b" in asked for asked in server.asked)
        # It moves, and its new shard learns of it by its watch.
        server.put("start-b", "dispatchstarts")["metadata"]["labels"] = {"shard": "a"}
        await asyncio.sleep(5)
        assert any(asked.endswith("/start-b/status") for asked in server.asked)


async def test_a_shard_that_loses_its_election_ends_with_its_error() -> None:
    server, election = WholeServer(), Election()
    async with server.serving() as client, Serving(client, selector="shard=a", elect=election) as serving:
        election.won.set()
        await asyncio.sleep(5)
        assert not serving.task.done()
        election.lost.set()
        async with asyncio.timeout(5):
            with pytest.raises(LeaseLostError):
                await serving.task


RESOURCES = tuple(resource.plural for resource in (RESOURCES_OF[watch.kind] for watch in WATCHES))
BROKEN = {
    "a garbled line": (Moment.FIRST_EVENT, sends(b"#&!\n")),
    "an error": (Moment.FIRST_EVENT, sends(event("ERROR", status_of(500, "InternalError", "etcd")))),
    "404": (Moment.WATCH, answers(404)),
    "an early end": (Moment.FIRST_EVENT, ends),
}


@pytest.mark.parametrize("resources", [*((resource,) for resource in RESOURCES), RESOURCES], ids=" ".join)
@pytest.mark.parametrize("broken", BROKEN)
async def test_whichever_watch_breaks_it_goes_on_alone_and_all_that_came_meanwhile_is_told(
    resources: tuple[str, ...], broken: str
) -> None:
    server = WholeServer()
    moment, breaks = BROKEN[broken]
    came = asyncio.Event()
    server.faults += [Fault(moment, breaks, resource, came.set) for resource in resources]
    async with server.serving() as client, Serving(client) as serving:
        await came.wait()
        for resource in RESOURCES:
            server.put("came-meanwhile", resource)
        await asyncio.sleep(10)
        assert server.faults == []
        restarted = {Kind(str(each)) for each in serving.frame.reflectors if each.state.restarts}
        assert {RESOURCES_OF[kind].plural for kind in restarted} == {*resources}
        assert all(each.state.objects == 1 for each in serving.frame.reflectors)
        assert serving.frame.reflectors.unready(60) == []
        assert any(asked.endswith("/came-meanwhile/status") for asked in server.asked)


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


async def test_a_served_crd_that_drops_what_is_recorded_makes_the_operator_unready() -> None:
    async with WholeServer().serving() as client, Serving(client) as serving:
        await asyncio.sleep(4)
        assert serving.frame.unready(60.0) == []
        sent = StartStatus(epoch="2026-01-01T00:00:00Z")
        serving.frame.outdated.compare(Kind.DISPATCH_START, Key("team-a", "llama-s1"), sent, StartStatus())
        (problem,) = serving.frame.unready(60.0)
        assert problem.endswith("does not keep status.epoch: upgrade the CRDs (team-a/llama-s1)")
