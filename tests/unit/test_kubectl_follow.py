"""`kubectl dispatch wait`, `watch` and `logs`, over real HTTP."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import click
import pytest
from aiohttp import web
from rich.console import Console

from dispatch_operator.api.enums import Phase
from dispatch_operator.cli.files import UNREADABLE
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.plugin.log_reading import Wanted, print_logs
from dispatch_operator.plugin.session import Kubectl, Session, in_words
from dispatch_operator.plugin.table import Row, age, drawn, watch
from dispatch_operator.plugin.telling import CLEARED_AWAY
from dispatch_operator.plugin.waiting import DELETED, EXIT_CODES, TIMED_OUT, wait
from support.builders import NAMESPACE, make_condition, make_start
from support.list_watch_server import Fault, Moment, refusal
from support.plugin import LABELS
from support.stored_server import StoredServer

Object = dict[str, Any]


@asynccontextmanager
async def asking(server: StoredServer) -> AsyncIterator[Session]:
    async with server.serving() as client:
        yield Session(client, NAMESPACE, Kubectl(NAMESPACE))


def denies(said: str) -> Callable[[web.Request, web.StreamResponse | None], Awaitable[web.StreamResponse]]:
    async def breaks(_: web.Request, __: web.StreamResponse | None) -> web.StreamResponse:
        return refusal(403, "Forbidden", said)

    return breaks


def put(server: StoredServer, phase: str | None, name: str = "llama-s1", **status: Any) -> None:
    ready = make_condition("Ready", "Unknown", phase or "New", f"it is {phase}")
    server.api.put(make_start(name), **({"phase": phase, "conditions": [ready], **status} if phase else {}))


def change(server: StoredServer, phase: str, **status: Any) -> None:
    ready = make_condition("Ready", "Unknown", phase, f"it is {phase}")
    server.api.edit(
        "DispatchStart", lambda start: start.update(status={"phase": phase, "conditions": [ready], **status})
    )


async def becomes(what: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110 - nothing tells when a request has come.
            await asyncio.sleep(0.01)


# Waiting.


@pytest.mark.parametrize(("phase", "code"), [(end, EXIT_CODES[end]) for end in Phase if end.is_end])
async def test_each_end_has_its_exit_code(phase: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    server = StoredServer()
    put(server, phase, outcome={"state": phase, "cause": "OOMKilled", "message": "pod x"})
    async with asking(server) as session:
        assert await wait(session, "llama-s1", None, as_json=False) == code
    assert capsys.readouterr().out == f"llama-s1 is {phase} (OOMKilled): pod x\n"


def test_no_two_ends_have_the_same_exit_code() -> None:
    codes = [*EXIT_CODES.values(), DELETED, TIMED_OUT, UNREADABLE]
    assert len(set(codes)) == len(codes)


async def test_an_end_that_comes_later_is_waited_for_and_progress_told(capsys: pytest.CaptureFixture[str]) -> None:
    server = StoredServer()
    put(server, None)
    async with asking(server) as session:
        waiting = asyncio.create_task(wait(session, "llama-s1", None, as_json=True))
        await becomes(lambda: any(request.watch for request in server.requests))
        assert server.requests[-1].query["fieldSelector"] == "metadata.name=llama-s1"
        change(server, "Running")
        change(server, "Failed", outcome={"state": "Failed", "cause": "OOMKilled"})
        assert await waiting == EXIT_CODES["Failed"]
    told = capsys.readouterr()
    assert json.loads(told.out) == {
        "name": "llama-s1",
        "phase": "Failed",
        "ended": True,
        "exitCode": 3,
        "outcome": {"state": "Failed", "cause": "OOMKilled"},
    }
    assert told.err.splitlines() == ["llama-s1: not looked at yet", "llama-s1: Running: it is Running"]


async def test_a_watch_that_breaks_while_it_waits_is_made_again() -> None:
    server = StoredServer()
    put(server, "Running")
    async with asking(server) as session:
        waiting = asyncio.create_task(wait(session, "llama-s1", None, as_json=False))
        await becomes(lambda: any(request.watch for request in server.requests))
        server.hang_up()
        change(server, "Succeeded")
        assert await waiting == 0


async def test_a_start_that_is_deleted_while_it_is_waited_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    server = StoredServer()
    put(server, "Running")
    async with asking(server) as session:
        waiting = asyncio.create_task(wait(session, "llama-s1", None, as_json=False))
        await becomes(lambda: any(request.watch for request in server.requests))
        server.api.remove("DispatchStart", NAMESPACE, "llama-s1")
        assert await waiting == DELETED
    assert capsys.readouterr().out == "llama-s1 was deleted\n"


async def test_what_has_not_ended_in_time_is_told_with_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    server = StoredServer()
    put(server, "Queued")
    async with asking(server) as session:
        assert await wait(session, "llama-s1", 0.2, as_json=False) == TIMED_OUT
        assert await wait(session, "llama-s1", 0.2, as_json=True) == TIMED_OUT
    text, _, told = capsys.readouterr().out.partition("\n")
    assert text == "llama-s1 has not ended in time: Queued: it is Queued"
    assert json.loads(told) == {
        "name": "llama-s1",
        "phase": "Queued",
        "ended": False,
        "exitCode": TIMED_OUT,
        "outcome": None,
    }


# The table.


async def test_each_change_is_a_line_where_it_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    server, shown = StoredServer(), ""

    def lines() -> list[str]:
        nonlocal shown
        shown += capsys.readouterr().out
        return shown.splitlines()

    put(server, "Gated")
    async with asking(server) as session:
        watching = asyncio.create_task(watch(session, everywhere=True, selector="a=b"))
        await becomes(lambda: len(lines()) == 1)
        await becomes(lambda: server.requests[-1].watch)
        assert server.requests[-1].query["labelSelector"] == "a=b"
        change(server, "Running")
        # What changes nothing that is shown is no line.
        server.api.edit("DispatchStart", lambda start: start["metadata"].update(labels={"x": "y"}))
        server.api.remove("DispatchStart", NAMESPACE, "llama-s1")
        await becomes(lambda: len(lines()) == 3)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    job = "01J9ZQ4V8Y3N5T7R2C6W1X0ABK/1"
    assert lines() == [
        f"team-a/llama-s1 Gated Gated {job} it is Gated",
        f"team-a/llama-s1 Running Running {job} it is Running",
        f"team-a/llama-s1 Deleted Running {job} it is Running",
    ]


def test_a_terminal_gets_a_table_in_which_only_messages_are_cut() -> None:
    made = Row("team-a", "llama-s1", "Queued", "CreateContainerConfigError", "x/1", 0.0, "it waits " * 50)
    console = Console(width=100, file=io.StringIO(), color_system=None)
    console.print(drawn([made], 7_200.0, everywhere=True))
    header, row = str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert header.split() == ["NAMESPACE", "NAME", "PHASE", "REASON", "AGE", "MESSAGE"]
    assert row.split()[:6] == ["team-a", "llama-s1", "Queued", "CreateContainerConfigError", "2h", "it"]
    assert row.rstrip().endswith("…")


async def test_who_may_not_list_is_told_at_once() -> None:
    server = StoredServer()
    async with server.serving() as client:
        said = 'User "eve" cannot list resource "dispatchstarts" in API group "x" at the cluster scope'
        server.faults.append(Fault(Moment.FIRST_PAGE, denies(said), "dispatchstarts"))
        with pytest.raises(ApiError) as failed:
            await watch(Session(client, NAMESPACE, Kubectl(NAMESPACE)), everywhere=True, selector="")
    assert in_words(failed.value) == "you may not list dispatchstarts in all namespaces"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s"), (1, "1s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (200_000, "2d")],
)
def test_ages_are_shown_as_kubectl_does(seconds: float, shown: str) -> None:
    assert age(seconds) == shown


# Logs.


def pods_of(server: StoredServer, **written: bytes | None) -> None:
    """Place pods of a trainer with what they have written; None for one that has not begun."""
    for pod in written:
        meta = {"name": pod, "namespace": NAMESPACE, "labels": LABELS}
        server.api.put({"kind": "Pod", "metadata": meta}, phase="Running")
    others = server.others

    async def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return await others(request)
        server.asked.append(request.query_string)
        found = written[request.path.split("/")[-2]]
        if found is None:
            return refusal(400, "BadRequest", 'container "node" in pod is waiting to start: ContainerCreating')
        return web.Response(body=found)

    server.others = answer


async def test_the_logs_of_one_pod_are_printed_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    server = StoredServer()
    put(server, "Running")
    pods_of(server, p0=b"one\n\xff\x1b[1mtwo")
    async with asking(server) as session:
        await print_logs(session, "llama-s1", Wanted("node", follow=False, tail=20, prefix=None))
    assert capfdbinary.readouterr().out == b"one\n\xff\x1b[1mtwo\n"
    assert server.asked[-1] == "container=node&tailLines=20"
    (listed,) = [request.query["labelSelector"] for request in server.requests if request.resource == "pods"]
    assert listed.split(",") == [f"{key}={value}" for key, value in LABELS.items()]


@pytest.mark.parametrize("follow", [False, True])
async def test_lines_of_several_pods_bear_their_names(follow: bool, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    server = StoredServer()
    put(server, "Running")
    pods_of(server, p10=b"ten\n", p9=b"nine\n", p1=None)
    async with asking(server) as session:
        await print_logs(session, "llama-s1", Wanted("node", follow=follow, tail=None, prefix=None))
        told = capfdbinary.readouterr()
        assert sorted(told.out.splitlines()) == [b"[p10] ten", b"[p9] nine"]
        if not follow:
            assert told.out == b"[p9] nine\n[p10] ten\n"
        assert told.err == b'p1: container "node" in pod is waiting to start: ContainerCreating\n'
        await print_logs(session, "llama-s1", Wanted("node", follow=follow, tail=None, prefix=False))
    assert sorted(capfdbinary.readouterr().out.splitlines()) == [b"nine", b"ten"]


async def test_a_log_that_breaks_off_keeps_its_whole_lines_and_is_told(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    server = StoredServer()
    put(server, "Running")
    pods_of(server, p0=b"")

    async def break_off(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return web.json_response(make_start())
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        for part in (b"one\nt", b"wo\nth"):
            await response.write(part)
        assert request.transport
        request.transport.close()
        return response

    server.others = break_off
    async with asking(server) as session:
        await print_logs(session, "llama-s1", Wanted("node", follow=True, tail=None, prefix=None))
    told = capfdbinary.readouterr()
    assert told.out == b"one\ntwo\n"
    assert told.err.startswith(b"p0: ")


async def test_where_there_are_no_logs_it_says_why() -> None:
    server = StoredServer()
    put(server, "Queued")
    wanted = Wanted("node", follow=False, tail=None, prefix=None)
    async with asking(server) as session:
        with pytest.raises(click.ClickException) as none:
            await print_logs(session, "llama-s1", wanted)
        why = "kubectl dispatch explain llama-s1 -n team-a says why"
        assert none.value.message == f"llama-s1 is Queued, and no pod of its trainer exists; {why}"
        pods_of(server, p0=None)
        with pytest.raises(click.ClickException) as unbegun:
            await print_logs(session, "llama-s1", wanted)
    assert (
        unbegun.value.message
        == "no log of a pod of llama-s1 can be had; kubectl dispatch explain llama-s1 -n team-a says whether they run"
    )


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_the_logs_of_an_ended_job_go_with_its_train_job(phase: str) -> None:
    server = StoredServer()
    put(server, phase)
    async with asking(server) as session:
        with pytest.raises(click.ClickException) as none:
            await print_logs(session, "llama-s1", Wanted("node", follow=False, tail=None, prefix=None))
    assert none.value.message == f"llama-s1 is {phase}, and no pod of its trainer exists any more: {CLEARED_AWAY}"


async def test_more_pods_than_can_be_followed_are_not_followed() -> None:
    server = StoredServer()
    put(server, "Running")
    pods_of(server, **{f"p{number}": b"" for number in range(51)})
    async with asking(server) as session:
        with pytest.raises(click.ClickException, match="51 pods are more than can be followed at once"):
            await print_logs(session, "llama-s1", Wanted("node", follow=True, tail=None, prefix=None))
