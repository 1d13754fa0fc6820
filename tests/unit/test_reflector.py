"""What a reflector asks for, tells, and says of itself, against a server over real HTTP, in virtual time."""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import test_utils, web

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import client, list_watch, reflector
from dispatch_operator.kube.backoff import FIRST_SECONDS
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.known_objects import Identity
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import LONGEST_WAIT, Reflector
from dispatch_operator.records.reading import RecordError
from support.broken_streams import answers, ends, hangs, refuses, sends
from support.list_watch_server import (
    TRAIN_JOBS,
    Break,
    Fault,
    ListWatchServer,
    Moment,
    connected_to,
    event,
    status_of,
)
from support.recorder import Recorder

pytestmark = pytest.mark.looptime


@pytest.fixture(autouse=True)
def _without_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake server sends no bookmark each minute."""
    monkeypatch.setattr(list_watch, "SILENT_SECONDS", 3600.0)


@asynccontextmanager
async def reflecting(cluster: Client, handler: Any, **which: Any) -> AsyncIterator[Reflector]:
    """Run a reflector of TrainJobs for as long as the block."""
    made = Reflector(ListWatch(cluster, "TrainJob", **which), handler, asyncio.get_running_loop().time)
    task = asyncio.create_task(made.run())
    try:
        yield made
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def server_of(*names: str) -> ListWatchServer:
    server = ListWatchServer()
    for name in names:
        server.put(name)
    return server


async def test_ten_thousand_objects_come_in_pages_and_are_told_once() -> None:
    server, told = server_of(*(f"job-{number}" for number in range(10_000))), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        assert len(told.objects) == made.state.objects == 10_000
    assert [asked.query["limit"] for asked in server.requests if not asked.watch] == ["500"] * 20
    assert told.wrongs == []


async def test_the_requests_name_what_is_wanted_and_go_on_from_the_list() -> None:
    server = server_of("a")
    async with server.serving() as cluster, reflecting(cluster, Recorder(), namespace="team-a", label_selector="x=y"):
        await asyncio.sleep(1)
    listed, watched = server.requests
    assert listed.query == {"limit": "500", "labelSelector": "x=y"}
    assert 120 <= int(watched.query.pop("timeoutSeconds")) <= 240
    assert watched.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "101",
        "labelSelector": "x=y",
    }
    assert {listed.accept, watched.accept} == {"application/json"}


async def test_only_metadata_is_asked_for_where_it_is_enough() -> None:
    server = server_of("a")
    async with server.serving() as cluster, reflecting(cluster, Recorder(), metadata_only=True):
        await asyncio.sleep(1)
    assert [asked.accept for asked in server.requests] == [
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    ]


async def test_a_watch_that_ends_in_time_goes_on_at_once_from_its_last_bookmark_without_a_list() -> None:
    server, told = server_of("a"), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        server.bookmark()
        await asyncio.sleep(500)
        server.put("b")
        await asyncio.sleep(0.1)
        assert told.objects == server.objects[TRAIN_JOBS]
        assert made.state.restarts == 0
        assert made.state.since is None
    _, first, *later = server.requests
    assert [asked.query["resourceVersion"] for asked in later] == ["102"] * len(later)
    ends_at = first.time
    for before, after in zip([first, *later], later, strict=False):
        ends_at += int(before.query["timeoutSeconds"])
        assert after.time == pytest.approx(ends_at, abs=0.01)


async def test_a_re_list_tells_only_what_is_different_and_what_was_deleted() -> None:
    server, told = server_of("same", "changed", "deleted", "anew"), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told):
        await asyncio.sleep(1)
        before = len(told.log)
        old = server.objects[TRAIN_JOBS]["team-a", "anew"]["metadata"]["uid"]
        server.faults.append(Fault(Moment.BOOKMARK, sends(event("ERROR", status_of(410, "Expired", "too old")))))
        server.faults.append(Fault(Moment.FIRST_PAGE, answers(503), meanwhile=lambda: change(server)))
        server.bookmark()
        await asyncio.sleep(10)
    assert told.objects == server.objects[TRAIN_JOBS]
    assert told.wrongs == []
    versions = {name: obj["metadata"]["resourceVersion"] for (_, name), obj in told.objects.items()}
    assert sorted(told.log[before:]) == sorted(
        [
            ("put", "changed", versions["changed"]),
            ("deleted", "anew", old),
            ("put", "anew", versions["anew"]),
            ("put", "added", versions["added"]),
            ("deleted", "deleted", "uid-3"),
        ]
    )


def change(server: ListWatchServer) -> None:
    server.put("changed", so=True)
    server.delete("deleted")
    server.delete("anew")
    server.put("anew")
    server.put("added")


@pytest.mark.parametrize("restored", [["a", "c"], []])
async def test_after_an_etcd_restore_the_list_is_the_truth_although_its_versions_are_lower(restored: list[str]) -> None:
    server, told = server_of("a", "b"), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told):
        await asyncio.sleep(1)
        # The server is down for a while. After it is back, a watch from the old version tells of nothing for ever.
        server.faults.append(Fault(Moment.BOOKMARK, ends))
        server.faults += [Fault(Moment.WATCH, answers(503)) for _ in range(2)]
        server.bookmark()
        await asyncio.sleep(0.1)
        server.restore(10, *restored)
        await asyncio.sleep(60)
        server.put("later")
        await asyncio.sleep(1)
        assert told.objects == server.objects[TRAIN_JOBS]
        assert told.wrongs == []


async def test_what_fails_for_long_is_asked_less_and_less_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    server, told = server_of("a"), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(100)
        server.faults.append(Fault(Moment.BOOKMARK, ends))
        server.faults += [Fault(Moment.WATCH, answers(503, "down\n\x1b[31m")) for _ in range(2)]
        server.faults += [Fault(Moment.FIRST_PAGE, answers(503, "down\n\x1b[31m")) for _ in range(8)]
        began, asked_before = asyncio.get_running_loop().time(), len(server.requests)
        server.bookmark()
        await asyncio.sleep(50)
        state = made.state
        assert state.since == pytest.approx(began, abs=0.1)
        assert state.failures > 3
        assert state.last_fault.endswith(r"failed (503): down\n\x1b[31m")
        assert state.synced
        await asyncio.sleep(200)
        assert made.state.since is None
        server.put("b")
        await asyncio.sleep(1)
        assert told.objects == server.objects[TRAIN_JOBS]
    moments = [began, *(asked.time for asked in server.requests[asked_before:])]
    waits = [after - before for before, after in itertools.pairwise(moments)][:10]
    for failures, wait in enumerate(waits):
        whole = min(2 * FIRST_SECONDS * 2**failures, LONGEST_WAIT)
        assert whole / 2 <= wait <= whole + 0.1
    assert len(set(waits)) == len(waits), "what failed together is not repeated together"
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 3, "the end of the watch, then that it can't be watched, then that it can't be listed"
    assert all(warning.isprintable() for warning in warnings)


@pytest.mark.parametrize(
    "line",
    [b"#&!\n", event("MOVED", {"metadata": {"resourceVersion": "9"}}), event("ERROR", status_of(500, "", "no"))],
)
async def test_what_breaks_at_the_same_place_again_and_again_runs_not_hot_and_is_passed_by_a_list(line: bytes) -> None:
    server, told = server_of("a"), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        server.faults += [Fault(Moment.FIRST_EVENT, sends(line)) for _ in range(20)]
        await asyncio.sleep(20)
        state = made.state
        assert state.since == 0, "a stream that is answered, and broken at once, is not up"
        assert 4 <= state.failures <= 7
        assert state.last_fault
        server.put("b")
        await asyncio.sleep(31)
        assert told.objects == server.objects[TRAIN_JOBS], "told by a list, while the watch can't be used"
        server.faults.clear()
        await asyncio.sleep(45)
        assert made.state.since is None
        await asyncio.sleep(300)
        assert made.state.failures == 0
        assert len(server.requests) < 30


async def test_a_stream_that_brings_something_before_it_breaks_is_up_and_renewed_soon_each_time() -> None:
    server, told = server_of("a"), Recorder()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        for number in range(6):
            server.faults.append(Fault(Moment.NEXT_EVENT, ends))
            server.put(f"job-{number}")
            await asyncio.sleep(0.1)
            assert made.state.since is not None
            await asyncio.sleep(2 * FIRST_SECONDS)
            assert (made.state.failures, made.state.restarts) == (1, number + 1)
        server.put("last")
        await asyncio.sleep(0.1)
        assert made.state.since is None
        # What an earlier stream has brought says nothing for those that bring nothing.
        server.hang_up()
        server.faults += [Fault(Moment.FIRST_EVENT, ends) for _ in range(20)]
        await asyncio.sleep(30)
        assert made.state.failures > 3
        assert made.state.since is not None
    assert told.log == server.log[TRAIN_JOBS]


async def test_a_deletion_of_what_was_never_told_is_not_told() -> None:
    server, told = server_of("a"), Recorder()
    metadata = {"name": "a", "namespace": "team-a", "resourceVersion": "105"}
    lines = event("DELETED", {"metadata": {**metadata, "uid": "of another"}})
    lines += event("DELETED", {"metadata": {**metadata, "name": "unknown", "uid": "of it"}})
    server.faults.append(Fault(Moment.FIRST_EVENT, sends(lines)))
    async with server.serving() as cluster, reflecting(cluster, told):
        await asyncio.sleep(5)
    assert told.log == server.log[TRAIN_JOBS]
    assert server.requests[-1].query["resourceVersion"] == "105"


async def test_a_kind_that_is_served_late_is_picked_up_and_its_absence_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "aiohttp.access")
    caplog.set_level(logging.INFO, reflector.__name__)
    server, told = server_of("a"), Recorder()
    server.faults += [Fault(Moment.FIRST_PAGE, answers(404, "404 page not found\n")) for _ in range(1000)]
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(600)
        assert not made.state.synced
        assert made.state.since == 0
        assert "does not serve this kind" in made.state.last_fault
        assert 20 <= len(server.requests) <= 50
        server.faults.clear()
        await asyncio.sleep(LONGEST_WAIT)
        assert told.objects == server.objects[TRAIN_JOBS]
        assert told.syncs == 1
    assert [(record.levelno, "does not serve" in record.getMessage()) for record in caplog.records] == [
        (logging.INFO, True)
    ]


@pytest.mark.filterwarnings("ignore:unclosed")
async def test_a_server_that_does_not_listen_yet_is_found_later() -> None:
    server, told = server_of("a"), Recorder()
    port = test_utils.unused_port()
    async with connected_to(f"http://127.0.0.1:{port}") as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(20)
        assert made.state.last_fault
        assert made.state.failures > 2
        app = web.Application()
        app.router.add_get("/{path:.*}", server.answer)
        async with test_utils.TestServer(app, port=port):
            await asyncio.sleep(LONGEST_WAIT)
            assert told.objects == server.objects[TRAIN_JOBS]


async def test_credentials_that_are_not_accepted_are_told_until_they_are() -> None:
    server = server_of("a")
    server.faults += [Fault(Moment.FIRST_PAGE, refuses(401, "Unauthorized")) for _ in range(3)]
    async with server.serving() as cluster, reflecting(cluster, Recorder()):
        await asyncio.sleep(1)
        assert not cluster.authorized
        await asyncio.sleep(20)
        assert cluster.authorized


async def test_each_request_has_the_credentials_of_its_time() -> None:
    server = server_of("a")
    async with server.serving() as cluster:
        keys = cluster.api.configuration.api_key
        keys["BearerToken"] = "Bearer old"
        async with reflecting(cluster, Recorder()):
            await asyncio.sleep(1)
            keys["BearerToken"] = "Bearer rotated"
            await asyncio.sleep(300)
    assert [asked.authorization for asked in server.requests][:3] == ["Bearer old", "Bearer old", "Bearer rotated"]


class Fails(Recorder):
    """Can't handle some objects."""

    def added_or_modified(self, obj: dict[str, Any], *, listed: bool) -> None:
        super().added_or_modified(obj, listed=listed)
        if "bad" in obj["metadata"]["name"]:
            raise RecursionError("too deep")

    def deleted(self, identity: Identity) -> None:
        super().deleted(identity)
        if "bad" in identity.name:
            raise KeyError(identity.name)

    def synced(self) -> None:
        super().synced()
        raise RuntimeError("ours")


class Refuses(Recorder):
    def added_or_modified(self, obj: Any, *, listed: bool) -> None:
        if "odd" in obj["metadata"]["name"]:
            raise RecordError("it is no TrainJob")
        super().added_or_modified(obj, listed=listed)


async def test_an_object_that_is_not_what_its_kind_promises_is_named_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, told = server_of("a", "odd", "b"), Refuses()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        server.put("odd", changed=True)
        server.put("c")
        await asyncio.sleep(1)
        assert {name for _, name in told.objects} == {"a", "b", "c"}
        assert (made.state.unreadable, made.state.handler_errors, made.state.restarts) == (2, 0, 0)
    warned = "TrainJob team-a/odd can't be read, and is left alone: it is no TrainJob"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", warned)] * 2


def undecodable(obj: Any) -> str:
    """Return an object as JSON with a number that is too long for Python."""
    return json.dumps(obj | {"n": "N"}).replace('"N"', "9" * 5_000)


async def test_an_object_that_can_not_be_decoded_hides_no_other_and_is_not_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, told = server_of("a", "odd", "b"), Recorder()

    async def lists(_request: web.Request, _response: web.StreamResponse | None) -> web.StreamResponse:
        items = ",".join(
            undecodable(obj) if name == "odd" else json.dumps(obj)
            for (_, name), obj in server.objects[TRAIN_JOBS].items()
        )
        metadata = json.dumps({"resourceVersion": str(server.version)})
        return web.Response(text=f'{{"items":[{items}],"metadata":{metadata}}}')

    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        server.delete("b")
        server.put("c")
        server.compact()
        server.faults.append(Fault(Moment.FIRST_PAGE, lists))
        await asyncio.sleep(20)
        assert {name for _, name in told.objects} == {"a", "odd", "c"}
        assert (made.state.unreadable, made.state.synced, made.state.since) == (1, True, None)
    assert "TrainJob team-a/odd can't be read, and is left alone: Exceeds the limit" in caplog.text


async def test_events_of_an_object_that_can_not_be_decoded_break_no_watch() -> None:
    server, told = server_of("a", "odd"), Recorder()
    odd = undecodable(server.objects[TRAIN_JOBS]["team-a", "odd"])
    sent: list[str] = []

    async def watches(_request: web.Request, response: web.StreamResponse | None) -> web.StreamResponse:
        assert response
        for line in sent:
            await response.write(line.encode())
        await asyncio.sleep(100)
        return response

    sent += [f'{{"type":"MODIFIED","object":{odd}}}\n']
    server.faults.append(Fault(Moment.FIRST_EVENT, watches))
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        assert (len(told.objects), made.state.unreadable, made.state.restarts) == (2, 1, 0)
    sent += [f'{{"type":"DELETED","object":{odd}}}\n'] * 2
    server.faults.append(Fault(Moment.FIRST_EVENT, watches))
    told = Recorder()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        assert {name for _, name in told.objects} == {"a"}
        assert (made.state.unreadable, made.state.restarts, told.wrongs) == (3, 0, [])


async def test_an_object_that_can_not_be_handled_is_named_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    server, told = server_of("a", "bad-1", "b"), Fails()
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        assert made.state.handler_errors == 2
        server.put("bad-1", changed=True)
        server.put("bad-2")
        server.delete("bad-1")
        server.put("c")
        await asyncio.sleep(1)
        assert told.objects == server.objects[TRAIN_JOBS]
        assert told.wrongs == []
        assert (made.state.handler_errors, made.state.restarts, made.state.objects) == (5, 0, 4)
    assert [record.getMessage() for record in caplog.records] == [
        "TrainJob: team-a/bad-1 can't be handled",
        "TrainJob: the first list can't be handled",
        "TrainJob: team-a/bad-1 can't be handled",
        "TrainJob: team-a/bad-2 can't be handled",
        "TrainJob: team-a/bad-1 can't be handled",
    ]


async def test_an_object_that_is_nested_too_deeply_for_python_hides_no_other() -> None:
    deep = b'{"deep":' + b"[" * 5000 + b"]" * 5000 + b"}"
    told = Recorder()

    async def answer(request: web.Request) -> web.StreamResponse:
        metadata = {"namespace": "n", "uid": "u", "resourceVersion": "7"}
        items = [
            json.dumps({"metadata": {"name": name, **metadata}, "spec": 0}).encode().replace(b"0}", deep + b"}")
            for name in ("a", "b", "c")
        ]
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"type":"MODIFIED","object":' + items[2].replace(b'"c"', b'"d"') + b"}\n")
            await asyncio.sleep(100)
            return response
        return web.Response(body=b'{"items":[' + b",".join(items) + b'],"metadata":{"resourceVersion":"7"}}')

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with (
        test_utils.TestServer(app) as served,
        connected_to(str(served.make_url("")).rstrip("/")) as cluster,
        reflecting(cluster, told) as made,
    ):
        await asyncio.sleep(1)
        assert [name for _, name, _ in told.log] == ["a", "b", "c", "d"]
        assert made.state.restarts == 0


async def test_large_objects_are_asked_for_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_PAGE_BYTES", 20_000)
    server, told = server_of(), Recorder()
    for number in range(20):
        server.put(f"job-{number}", text="x" * (15_000 if number < 4 else 100))
    async with server.serving() as cluster, reflecting(cluster, told) as made:
        await asyncio.sleep(1)
        assert told.objects == server.objects[TRAIN_JOBS]
        assert made.state.restarts == 0
    limits = [int(asked.query["limit"]) for asked in server.requests if not asked.watch]
    assert limits[:4] == [500, 62, 7, 1]
    assert max(limits[4:]) > 4, "pages grow again behind the large objects"


async def test_one_object_that_is_larger_than_a_page_may_be_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_PAGE_BYTES", 1000)
    server = server_of()
    server.put("job", text="x" * 1000)
    async with server.serving() as cluster, reflecting(cluster, Recorder()) as made:
        await asyncio.sleep(10)
        assert "too many bytes" in made.state.last_fault
        assert len(server.requests) < 12


class Counts(Recorder):
    """Says when so much was told."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = {300: asyncio.Event(), 600: asyncio.Event()}

    def added_or_modified(self, obj: dict[str, Any], *, listed: bool) -> None:
        super().added_or_modified(obj, listed=listed)
        if reached := self.reached.get(len(self.log)):
            reached.set()


async def test_other_work_goes_on_between_any_two_objects_of_a_page_and_events_of_a_burst() -> None:
    server, told = server_of(*(f"job-{number}" for number in range(300))), Counts()
    most = 0

    async def other_work() -> None:
        nonlocal most
        before = 0
        while True:
            await asyncio.sleep(0)
            most, before = max(most, len(told.log) - before), len(told.log)

    async with server.serving() as cluster, reflecting(cluster, told):
        work = asyncio.create_task(other_work())
        await told.reached[300].wait()
        for number in range(300):
            server.put(f"job-{number}", changed=True)
        await told.reached[600].wait()
        work.cancel()
    assert most == 1


class BrokenListWatch:
    """Fails as nothing of the API does."""

    namespace = None

    def __init__(self) -> None:
        self.pages = 0

    def __str__(self) -> str:
        return "TrainJob"

    async def page(self, _limit: int, _continue_token: str) -> Any:
        self.pages += 1
        raise KeyError("ours")


async def test_a_fault_of_ours_does_not_end_it_either(caplog: pytest.LogCaptureFixture) -> None:
    broken: Any = BrokenListWatch()
    task = asyncio.create_task(Reflector(broken, Recorder(), asyncio.get_running_loop().time).run())
    await asyncio.sleep(60)
    assert not task.done()
    assert 5 <= broken.pages <= 8
    assert "the reflector of TrainJob failed" in caplog.text
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_watch_that_sends_nothing_is_given_up_though_its_time_has_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    server = server_of("a")
    server.faults.append(Fault(Moment.FIRST_EVENT, hangs))
    recorder, loop = Recorder(), asyncio.get_running_loop()
    async with server.serving() as client:
        task = asyncio.create_task(Reflector(ListWatch(client, Kind.TRAIN_JOB), recorder, loop.time).run())
        loop.call_later(5, server.put, "b")
        await asyncio.sleep(list_watch.SILENT_SECONDS)
        assert set(recorder.objects) == {("team-a", "a")}
        await asyncio.sleep(5)
        assert set(recorder.objects) == {("team-a", "a"), ("team-a", "b")}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("moment", "breaks", "after"),
    [
        pytest.param(Moment.FIRST_PAGE, hangs, 1, id="while it waits for the first page"),
        pytest.param(Moment.NEXT_PAGE, hangs, 1, id="between pages"),
        pytest.param(Moment.FIRST_PAGE, answers(503), 0.2, id="in its backoff"),
        pytest.param(Moment.WATCH, refuses(429, "", **{"Retry-After": "9" * 400}), 99, id="in a server's Retry-After"),
        pytest.param(Moment.WATCH, hangs, 1, id="while it waits for the watch"),
        pytest.param(Moment.FIRST_EVENT, hangs, 1, id="in a silent watch"),
        pytest.param(Moment.MID_LINE, hangs, 6, id="in the middle of a line"),
        pytest.param(Moment.BOOKMARK, hangs, 400, id="in a later watch"),
    ],
)
async def test_cancelling_ends_it_at_once(
    moment: Moment, breaks: Break, after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "PAGE_LIMIT", 1)
    server = server_of("a", "b")
    server.faults.append(Fault(moment, breaks))
    loop = asyncio.get_running_loop()
    async with server.serving() as cluster:
        task = asyncio.create_task(Reflector(ListWatch(cluster, "TrainJob"), Recorder(), loop.time).run())
        loop.call_later(5, server.put, "c")
        await asyncio.sleep(after)
        assert server.faults == [] or moment is Moment.BOOKMARK
        asked = len(server.requests)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()
        assert loop.time() == pytest.approx(after, abs=0.01)
        await asyncio.sleep(100)
        assert len(server.requests) == asked


async def test_cancelling_while_objects_are_told_ends_it_at_once() -> None:
    server = server_of(*(f"job-{number}" for number in range(400)))
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[Any]] = []

    class Cancels(Recorder):
        def added_or_modified(self, obj: dict[str, Any], *, listed: bool) -> None:
            super().added_or_modified(obj, listed=listed)
            if len(self.log) == 100:
                tasks[0].cancel()

    told = Cancels()
    async with server.serving() as cluster:
        tasks.append(asyncio.create_task(Reflector(ListWatch(cluster, "TrainJob"), told, loop.time).run()))
        await asyncio.wait(tasks, timeout=60)
        assert tasks[0].cancelled()
        assert len(told.log) == 100


async def test_its_state_follows_its_stream() -> None:
    server = server_of("a")
    async with server.serving() as cluster, reflecting(cluster, Recorder()) as made:
        state = made.state
        assert (state.synced, state.since, state.last_event, state.objects, state.last_fault) == (False, 0, None, 0, "")
        await asyncio.sleep(7)
        assert (made.state.synced, made.state.since, made.state.last_event, made.state.objects) == (True, None, None, 1)
        server.put("b")
        await asyncio.sleep(1)
        assert (made.state.last_event, made.state.objects) == (7, 2)
        server.delete("a")
        await asyncio.sleep(1)
        assert (made.state.last_event, made.state.objects) == (8, 1)
