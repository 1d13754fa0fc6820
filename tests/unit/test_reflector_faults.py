"""Every kind of broken list and watch at every moment: each is renewed alone, and nothing is lost or told twice."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from dispatch_operator.kube import decoding, list_watch, reflector
from dispatch_operator.kube.backoff import FIRST_SECONDS, LONGEST_RETRY_AFTER_SECONDS
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from support.broken_streams import FOR_LONG, answers, cuts, ends, hangs, refuses, resets, sends
from support.list_watch_server import (
    TRAIN_JOBS,
    WORKLOADS,
    Break,
    Fault,
    ListWatchServer,
    Moment,
    Request,
    event,
    status_of,
)
from support.recorder import Recorder

pytestmark = pytest.mark.looptime

BACKOFF = FIRST_SECONDS, 2 * FIRST_SECONDS


class Row(NamedTuple):
    name: str
    breaks: Break
    lists_anew: bool = False
    """Whether the resourceVersion is of no use any more."""
    wait: tuple[float, float] = BACKOFF
    """Between which seconds the next request comes."""
    times: int = 1
    """How often in a row."""


ANSWERS = [
    Row("401", refuses(401, "Unauthorized")),
    Row("403", refuses(403, "Forbidden")),
    Row("404 of a kind that is not served", answers(404, "404 page not found")),
    Row("410", refuses(410, "Expired"), lists_anew=True),
    Row("429", refuses(429, "TooManyRequests", **{"Retry-After": "7"}), wait=(7, 7)),
    Row(
        "429 with a Retry-After of four hundred digits",
        refuses(429, "TooManyRequests", **{"Retry-After": "9" * 400}),
        wait=(LONGEST_RETRY_AFTER_SECONDS, LONGEST_RETRY_AFTER_SECONDS),
    ),
    Row("429 with a date", answers(429, "slow down", **{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})),
    Row("500", refuses(500, "InternalError")),
    Row("502 of a proxy", answers(502, "<html>\x00\x1b[31m")),
    Row("503 that says nothing", answers(503)),
    Row("a page of a proxy", answers(200, "<html>log in</html>")),
    # aiohttp itself asks once again when a connection breaks before the answer has begun.
    Row("two resets", resets, times=2),
    Row("an answer that is cut", cuts),
]
OF_A_LIST = [
    Row("silence", hangs, wait=(31, 32)),
    Row("no JSON", answers(200, '{"items": [')),
    Row("a list", answers(200, "[]")),
    Row("no resourceVersion", answers(200, '{"items": [], "metadata": {}}')),
    Row("an item that is no object", answers(200, '{"items": [7], "metadata": {"resourceVersion": "9"}}')),
]
OF_A_WATCH = [
    Row("silence", hangs, wait=(31, 32)),
]
OF_A_STREAM = [
    Row("ERROR 410", sends(event("ERROR", status_of(410, "Expired", "too old"))), lists_anew=True),
    Row("ERROR 429", sends(event("ERROR", status_of(429, "TooManyRequests", "later")))),
    Row("ERROR 500", sends(event("ERROR", status_of(500, "InternalError", "etcd")))),
    Row("ERROR without a code", sends(event("ERROR", {"message": "\x1b[31m"}))),
    Row("ERROR with a code that is none", sends(event("ERROR", {"code": "410"}))),
    Row("ERROR without a Status", sends(event("ERROR", None))),
    Row("a garbled line", sends(b"#&!\n")),
    Row("no UTF-8", sends(b'{"type":"\xff"}\n')),
    Row("an array", sends(b"[]\n")),
    Row("an empty line", sends(b"\n")),
    Row("half a line", sends(b'{"type":"ADDED","obj')),
    Row("a line without end", sends(b" " * 5000)),
    Row("an event without object", sends(b'{"type":"ADDED"}\n')),
    Row("an event without type", sends(b'{"object":{}}\n')),
    Row("an event without metadata", sends(event("MODIFIED", {"spec": {}}))),
    Row("an event without name", sends(event("DELETED", {"metadata": {"uid": "u", "resourceVersion": "999"}}))),
    Row(
        "an event with an empty name",
        sends(event("ADDED", {"metadata": {"name": "", "namespace": "n", "uid": "u", "resourceVersion": "9"}})),
    ),
    Row("an event without version", sends(event("ADDED", {"metadata": {"name": "n", "uid": "u"}}))),
    Row("a version that is none", sends(event("ADDED", {"metadata": {"name": "n", "uid": "u", "resourceVersion": 9}}))),
    Row("a bookmark without version", sends(event("BOOKMARK", {"metadata": {}}))),
    Row("an unknown type", sends(event("MOVED", {"metadata": {"resourceVersion": "999"}}))),
    Row("an early end", ends),
    Row("a reset", resets),
    Row("silence", hangs, wait=(100, 260)),
]
MOMENTS = {
    Moment.FIRST_PAGE: ANSWERS + OF_A_LIST,
    Moment.NEXT_PAGE: ANSWERS + OF_A_LIST,
    Moment.WATCH: ANSWERS + OF_A_WATCH,
    Moment.FIRST_EVENT: OF_A_STREAM,
    Moment.NEXT_EVENT: OF_A_STREAM,
    # Whatever follows half a line makes a line of no use with it.
    Moment.MID_LINE: [row for row in OF_A_STREAM if row.name != "ERROR 410"],
    Moment.BOOKMARK: OF_A_STREAM,
}


def rows() -> Iterator[object]:
    for moment, broken in MOMENTS.items():
        for row in broken:
            yield pytest.param(moment, row, id=f"{row.name} {moment.value}")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "PAGE_LIMIT", 2)
    monkeypatch.setattr(decoding, "LONGEST_LINE_BYTES", 4000)
    # The fake server sends no bookmark each minute.
    monkeypatch.setattr(list_watch, "SILENT_SECONDS", 3600.0)


@pytest.mark.parametrize(("moment", "row"), list(rows()))
async def test_a_broken_stream_is_renewed_alone_and_nothing_is_lost(
    moment: Moment, row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    server, told, neighbour = ListWatchServer(), Recorder(), Recorder()
    for name in "abcde":
        server.put(name)
        server.put(name, WORKLOADS)
    broken_at: list[float] = []

    def meanwhile() -> None:
        broken_at.append(loop.time())
        server.put("a", changed=True)
        server.delete("b")
        server.delete("c")
        server.put("c", anew=True)
        server.put("f")
        server.put("f", WORKLOADS)

    server.faults += [Fault(moment, row.breaks, meanwhile=meanwhile) for _ in range(row.times)]
    async with server.serving() as cluster:
        broken = Reflector(ListWatch(cluster, "TrainJob"), told, loop.time)
        whole = Reflector(ListWatch(cluster, "Workload"), neighbour, loop.time)
        tasks = [asyncio.create_task(broken.run()), asyncio.create_task(whole.run())]
        await asyncio.sleep(5)
        server.put("g")
        server.put("a", changed="again")
        await asyncio.sleep(1)
        server.bookmark()
        await asyncio.sleep(FOR_LONG)
        server.put("h")
        server.put("h", WORKLOADS)
        await asyncio.sleep(1)

        assert not any(task.done() for task in tasks)
        assert cluster.authorized
        assert not any(record.exc_info for record in caplog.records), "it is known what each fault is"
        was_renewed(server, told, broken, moment, row, broken_at)
        was_left_alone(server, neighbour, whole)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def was_renewed(
    server: ListWatchServer, told: Recorder, broken: Reflector, moment: Moment, row: Row, broken_at: list[float]
) -> None:
    assert len(broken_at) == row.times, "the fault came"
    assert told.objects == server.objects[TRAIN_JOBS]
    assert told.wrongs == []
    assert told.syncs == 1
    if row.lists_anew or moment in {Moment.FIRST_PAGE, Moment.NEXT_PAGE}:
        assert len(lists_of(server, TRAIN_JOBS)) == (1 + row.times if moment is Moment.FIRST_PAGE else 2)
    else:
        assert len(lists_of(server, TRAIN_JOBS)) == 1
        assert told.log[5:] == server.log[TRAIN_JOBS][5:], "every single event was told"
    renewed_at = next(
        asked.time for asked in server.requests if asked.resource == TRAIN_JOBS and asked.time > broken_at[-1]
    )
    least, most = row.wait
    assert least <= renewed_at - broken_at[-1] <= most + 0.1
    state = broken.state
    assert (state.restarts, state.failures, state.since, state.synced) == (1, 0, None, True)
    assert state.last_fault
    assert state.last_fault.isprintable()
    assert state.objects == len(told.objects)


def was_left_alone(server: ListWatchServer, told: Recorder, whole: Reflector) -> None:
    assert told.objects == server.objects[WORKLOADS]
    assert told.wrongs == []
    assert len(lists_of(server, WORKLOADS)) == 1
    assert whole.state.restarts == 0


def lists_of(server: ListWatchServer, resource: str) -> list[Request]:
    return [
        asked
        for asked in server.requests
        if asked.resource == resource and not asked.watch and "continue" not in asked.query
    ]
