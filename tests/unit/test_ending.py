"""SIGTERM, as a pod gets it, in every state: the process of its own ends in time, and says 0; real time, real signals."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from dispatch_operator.kube.leader_election import Lease
from support.broken_streams import hangs
from support.list_watch_server import Fault, Moment
from support.service import PROGRAM, shown
from support.whole_server import WholeServer, absent

WITHIN = 10.0
"""Seconds after the signal."""
STARTS = 2_000


class Process:
    """A running `dispatch-operator run`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self.log = log

    async def until(self, what: Callable[[], bool]) -> None:
        """Wait for something, unless the process ends before."""
        async with asyncio.timeout(60):
            while not what():
                assert self._process.returncode is None, shown(self.log)
                await asyncio.sleep(0.05)

    def says(self, text: str) -> Callable[[], bool]:
        """Return whether the log has a text."""
        return lambda: text in self.log.read_text()

    async def terminated(self) -> int:
        """Return the exit code after SIGTERM."""
        self._process.terminate()
        return await self.ended(WITHIN)

    async def ended(self, seconds: float) -> int:
        """Return the exit code when it ends."""
        async with asyncio.timeout(seconds):
            return await self._process.wait()


@asynccontextmanager
async def running(url: str, folder: Path, *arguments: str, program: Sequence[str] = PROGRAM) -> AsyncIterator[Process]:
    """Run an operator against a server."""
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    named: dict[str, Any] = {"cluster": {"server": url}, "user": {}, "context": {"cluster": "c", "user": "u"}}
    lists = {f"{key}s": [{"name": key[0], key: value}] for key, value in named.items()}
    lists["contexts"][0]["name"] = "x"
    kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", **lists}))
    command = [sys.executable, *program, "run", "--all-namespaces", f"--kubeconfig={kubeconfig}", *arguments]
    with log.open("w") as out:
        process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
    try:
        yield Process(process, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def never(request: web.Request) -> web.StreamResponse:
    """Leave a request unanswered."""
    return await hangs(request, None)


class Leases:
    """Answers what is asked of Leases, and nothing else."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        name = request.path.rpartition("/leases/")[2]
        if "/leases" not in request.path or (request.method == "GET" and name not in self.held):
            return await absent(request)
        if request.method != "GET":
            lease = await request.json()
            name = lease["metadata"]["name"]
            self.held[name] = lease
        return web.json_response(self.held[name])

    def holders(self) -> dict[str, str | None]:
        """Return who holds each Lease by its name."""
        return {name: lease["spec"].get("holderIdentity") for name, lease in self.held.items()}


def clean(log: Path) -> bool:
    """Tell whether nothing ended by an error of ours."""
    return "Traceback" not in log.read_text()


async def test_while_it_lists(tmp_path: Path) -> None:
    server = WholeServer(faults=[Fault(Moment.FIRST_PAGE, hangs, "dispatchstarts")])
    async with server.serving() as client, running(client.server, tmp_path) as process:
        await process.until(lambda: any(asked.resource == "dispatchstarts" for asked in server.requests))
        assert await process.terminated() == 0
        assert "reconciles begin" not in process.log.read_text()
        assert clean(process.log)


async def test_while_the_api_server_is_away_from_the_beginning(tmp_path: Path) -> None:
    # Port 1 is never listened on here.
    async with running("http://127.0.0.1:1", tmp_path) as process:
        await process.until(process.says("is not watched"))
        await process.until(process.says("Request attempt #2"))
        # It comes back, or it does not: nobody is called for what is tried again.
        assert "ERROR" not in process.log.read_text()
        assert await process.terminated() == 0
        assert clean(process.log)


async def test_while_it_waits_for_the_lease(tmp_path: Path) -> None:
    server = WholeServer(others=never)
    async with server.serving() as client, running(client.server, tmp_path, "--lease=team-a/one") as process:
        await process.until(lambda: any("leases" in asked for asked in server.asked))
        assert await process.terminated() == 0
        assert clean(process.log)


async def test_with_thousands_of_keys_queued_and_requests_that_are_not_answered(tmp_path: Path) -> None:
    server = WholeServer(others=never)
    for number in range(STARTS):
        server.put(f"start-{number}", "dispatchstarts")
    async with server.serving() as client, running(client.server, tmp_path) as process:
        await process.until(lambda: len(server.asked) >= 1)
        await asyncio.sleep(1)
        asked = len(server.asked)
        assert await process.terminated() == 0
        # Nothing new was begun.
        assert len(server.asked) == asked
        assert clean(process.log)


async def test_with_the_lease_held_and_an_api_server_that_answers_no_more(tmp_path: Path) -> None:
    server = WholeServer(others=Leases())
    for number in range(STARTS):
        server.put(f"start-{number}", "dispatchstarts")
    async with server.serving() as client, running(client.server, tmp_path, "--lease=team-a/one") as process:
        await process.until(process.says("reconciles begin"))
        server.others = never
        server.hang_up()
        server.faults += [Fault(moment, hangs, "dispatchstarts") for moment in (Moment.FIRST_PAGE, Moment.WATCH)]
        assert await process.terminated() == 0
        assert clean(process.log)


async def test_as_a_shard_that_gives_both_its_leases_back(tmp_path: Path) -> None:
    leases = Leases()
    server = WholeServer(others=leases)
    arguments = ("--lease=team-a/one", "--selector=shard=a")
    async with server.serving() as client, running(client.server, tmp_path, *arguments) as process:
        await process.until(process.says("caring for what belongs to no DispatchStart"))
        assert sorted(leases.held) == ["one", Lease("team-a", "one", "").of_shard("shard=a").name]
        assert all(leases.holders().values())
        assert await process.terminated() == 0
        assert not any(leases.holders().values())
        assert clean(process.log)


async def test_as_a_shard_with_an_api_server_that_answers_no_more(tmp_path: Path) -> None:
    server = WholeServer(others=Leases())
    for number in range(STARTS):
        server.put(f"start-{number}", "dispatchstarts")["metadata"]["labels"] = {"shard": "a"}
    arguments = ("--lease=team-a/one", "--selector=shard=a")
    async with server.serving() as client, running(client.server, tmp_path, *arguments) as process:
        await process.until(process.says("caring for what belongs to no DispatchStart"))
        await process.until(process.says("reconciles begin"))
        server.others = never
        server.hang_up()
        assert await process.terminated() == 0
        assert clean(process.log)


async def test_a_lease_that_is_lost_ends_it_with_an_error(tmp_path: Path) -> None:
    server = WholeServer(others=Leases())
    async with server.serving() as client, running(client.server, tmp_path, "--lease=team-a/one") as process:
        await process.until(process.says("reconciles begin"))
        server.others = never
        assert await process.ended(20) == 1
        assert "the Lease was lost" in process.log.read_text()
        assert clean(process.log)


ENDS = """
import asyncio
from dispatch_operator.kube.reflector import Reflector

watches = Reflector.run

async def run(self):
    if str(self) == "JobSet":
        await asyncio.sleep(1)
        raise MemoryError("ours")
    await watches(self)

Reflector.run = run
from dispatch_operator.cli.main import main
main()
"""


async def test_a_part_of_it_that_ends_ends_it_with_an_error_and_gives_its_lease_to_another(tmp_path: Path) -> None:
    leases = Leases()
    server = WholeServer(others=leases)
    lease = "--lease=team-a/one"
    async with server.serving() as client, running(client.server, tmp_path, lease, program=("-c", ENDS)) as process:
        assert await process.ended(30) == 1
        assert "the reflector of JobSet has ended" in process.log.read_text()
        assert leases.holders() == {"one": None}
        assert clean(process.log)
