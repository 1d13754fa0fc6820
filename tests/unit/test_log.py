"""The log: one line each, JSON with the same keys everywhere, no value of a job's variables, no error that needs nobody."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from dispatch_operator.api.kinds import Kind
from dispatch_operator.cli.log import ABOUT, JsonFormatter, NobodyIsNeeded, TextFormatter, configure
from dispatch_operator.controllers.event_recorder import EventRecorder
from dispatch_operator.controllers.frame import queue_of
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.records.reading import RecordError
from support.builders import JOB, make_backend, make_runtime, make_start
from support.fake_api import FakeApi
from support.list_watch_server import ListWatchServer
from support.operator import FakeOperator
from support.recorder import Recorder

KEYS = {"time", "level", "logger", "message", *ABOUT, "exception"}
SECRET = "s3cr3t"  # noqa: S105 - it only looks like one.


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """What is logged; the handler is taken away afterwards."""
    root, out = logging.getLogger(), io.StringIO()
    handlers, level = list(root.handlers), root.level
    yield out
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("kopf").setLevel(logging.NOTSET)


def logging_to(out: io.StringIO, *, as_json: bool) -> None:
    configure(as_json=as_json, verbose=False)
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(out)


async def transitions() -> None:
    """Let two Starts go their ways, one of them refused, and tell of it."""
    api = FakeApi()
    backend = make_backend()
    api.put(make_runtime())
    api.put(backend, **backend.pop("status"))
    api.put(make_start(env={"TOKEN": SECRET}), observedGeneration=-1)
    api.put(make_start("bad", job="x", env={"A B": SECRET, "C": SECRET + "\x7f"}), observedGeneration=-1)
    recorder = EventRecorder(None)  # type: ignore[arg-type]
    operator = FakeOperator(api)
    for name in ("llama-s1", "bad"):
        await operator.settle(name)
    for before, after in operator.announced:
        recorder.record_events(before, after)


async def test_a_transition_is_one_line_that_says_whose(out: io.StringIO) -> None:
    logging_to(out, as_json=True)
    await transitions()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [set(line) for line in lines] == [KEYS] * len(lines)
    assert [(line["namespace"], line["name"], line["job"], line["submission"]) for line in lines] == [
        ("team-a", "llama-s1", JOB, "1"),
        # What is no job names no line.
        ("team-a", "bad", "", ""),
    ]
    assert [line["message"].split(": ")[1] for line in lines] == ["Gated", "Refused"]
    assert SECRET not in out.getvalue()


async def test_the_text_says_the_same(out: io.StringIO) -> None:
    logging_to(out, as_json=False)
    await transitions()
    good, bad = out.getvalue().splitlines()
    assert f"team-a/llama-s1 (job {JOB}, submission 1): Gated: " in good
    assert "team-a/bad: Refused: " in bad
    assert SECRET not in out.getvalue()


def lines_of(out: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.looptime
async def test_whatever_is_logged_while_an_object_is_reconciled_says_which(out: io.StringIO) -> None:
    logging_to(out, as_json=True)
    done = asyncio.Event()

    async def tell() -> None:
        logging.getLogger("dispatch_operator.anywhere").warning("from a task")

    async def reconcile(key: Key) -> Result:
        logging.getLogger("dispatch_operator.anywhere").warning("here")
        await asyncio.create_task(tell())
        if key.name == "two":
            done.set()
            raise KeyError("ours")
        return Result()

    queue = queue_of(lambda _: True, reconcile, 2)
    for name in ("one", "two"):
        queue.add(Key("team-a", name))
    await done.wait()
    await queue.close(grace_period=1)
    logging.getLogger("dispatch_operator.anywhere").warning("afterwards")
    told = sorted((line["name"], line["message"]) for line in lines_of(out))
    assert told == [
        ("", "afterwards"),
        ("one", "from a task"),
        ("one", "here"),
        ("two", "from a task"),
        ("two", "here"),
        ("two", "reconciling Key(namespace='team-a', name='two') failed"),
    ]
    assert {line["namespace"] for line in lines_of(out)} == {"", "team-a"}


@pytest.mark.looptime
async def test_a_watch_names_the_object_or_the_namespace_that_it_tells_of(out: io.StringIO) -> None:
    logging_to(out, as_json=True)
    logging.getLogger("aiohttp").setLevel(logging.ERROR)
    server = ListWatchServer(forbidden={"team-b"})
    server.put("bad")

    class Refuses(Recorder):
        def added_or_modified(self, obj: dict[str, Any], *, listed: bool) -> None:  # noqa: ARG002 - a handler's.
            raise RecordError("it is not what its kind promises")

    async with server.serving() as cluster:
        clock = asyncio.get_running_loop().time
        watches = [Reflector(ListWatch(cluster, Kind.TRAIN_JOB, one), Refuses(), clock) for one in ("team-a", "team-b")]
        tasks = [asyncio.create_task(one.run()) for one in watches]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    told = {(line["namespace"], line["name"]) for line in lines_of(out)}
    assert told == {("team-a", "bad"), ("team-b", "")}


def record(message: str, level: int = logging.INFO, name: str = "x.y", **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "f", 1, message, (), extra.pop("exc_info", None))
    made.__dict__.update(extra)
    return made


def test_what_others_wrote_begins_no_line_and_changes_no_terminal() -> None:
    text = "no\nERROR fake\x1b[31m\u2028"
    assert TextFormatter().format(record(text)).splitlines()[0].endswith(r"no\nERROR fake\x1b[31m\u2028")
    line = JsonFormatter().format(record(text))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["message"] == text


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    try:
        {}["ours"]
    except KeyError as error:
        failed = record("failed", logging.ERROR, exc_info=(KeyError, error, error.__traceback__))
    assert "Traceback" in TextFormatter().format(failed)
    line = json.loads(JsonFormatter().format(failed))
    assert (set(line), line["level"]) == (KEYS, "error")
    assert "KeyError: 'ours'" in line["exception"]


def test_no_line_of_a_traceback_looks_like_one_of_ours() -> None:
    error = ValueError("no\n[2026-12-01] ERROR fake\x1b[31m")
    first, *others = TextFormatter().format(record("failed", exc_info=(ValueError, error, None))).splitlines()
    assert first.endswith("failed")
    assert any("fake" in line for line in others)
    assert all(line.startswith("    ") and line.isprintable() for line in others)


@pytest.mark.parametrize(
    ("name", "message", "level"),
    [
        ("kopf._core.reactor.observation", "Request attempt #1/9 failed; will retry", "WARNING"),
        ("kopf.activities", "the activity failed", "ERROR"),
        ("dispatch_operator", "Request attempt", "ERROR"),
    ],
)
def test_what_kopf_repeats_by_itself_needs_nobody(name: str, message: str, level: str) -> None:
    told = record(message, logging.ERROR, name)
    assert NobodyIsNeeded().filter(told)
    assert told.levelname == level
