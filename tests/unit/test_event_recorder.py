"""Events: posted apart from the reconciles, counted when they come again, and given up when they can't be posted."""

import asyncio
import logging
from typing import Any

import pytest

from dispatch_operator.controllers import event_recorder
from dispatch_operator.controllers.event_recorder import ATTEMPTS, LONGEST_MESSAGE, EventRecorder
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.reconcile.events import Event
from dispatch_operator.records.dispatch import DispatchStart
from support.builders import NAMESPACE, make_condition, make_start
from support.fake_api import FakeApi, Request, always, nth, refusal, unanswered
from support.operator import NOW
from support.records import watched

pytestmark = pytest.mark.looptime

QUEUED = Event("Normal", "Queued", "Queued: it waits for quota")


def identified(start: dict[str, Any], uid: str = "uid") -> dict[str, Any]:
    return start | {"metadata": {**start["metadata"], "uid": uid}}


class Recording:
    """A recorder over a fake API; its clock is the event loop's."""

    def __init__(self) -> None:
        self.api = FakeApi()
        cluster: Any = self.api
        self.recorder = EventRecorder(cluster, lambda: NOW + asyncio.get_running_loop().time())
        self.recorder.start()

    def tell(self, event: Event = QUEUED, name: str = "llama-s1") -> None:
        start = watched(identified(make_start(name)))
        assert isinstance(start, DispatchStart)
        self.recorder.event(start, event)

    @property
    def told(self) -> list[tuple[str, int]]:
        """The messages of the Events that stand, and how often each was told."""
        return [(event["message"], event["count"]) for event in self.api.all("Event")]


@pytest.fixture
async def recording() -> Any:
    made = Recording()
    yield made
    await made.recorder.shutdown(grace_period=0)


async def test_an_event_names_its_object_its_source_and_when_it_happened(recording: Recording) -> None:
    recording.tell()
    await asyncio.sleep(1)
    event = recording.api.one("Event")
    assert event.pop("metadata")["name"].startswith("dispatch-")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "dispatch.phpboyscout.uk/v1alpha1",
            "kind": "DispatchStart",
            "name": "llama-s1",
            "namespace": NAMESPACE,
            "uid": "uid",
        },
        "type": "Normal",
        "reason": "Queued",
        "message": "Queued: it waits for quota",
        "source": {"component": "dispatch-operator"},
        "reportingComponent": "dispatch-operator",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }


async def test_an_event_that_comes_again_is_counted_and_another_is_not(recording: Recording) -> None:
    for _ in range(3):
        recording.tell()
        await asyncio.sleep(60)
    recording.tell(Event("Normal", "Running", "Running"))
    await asyncio.sleep(1)
    assert recording.told == [(QUEUED.message, 3), ("Running", 1)]
    first = recording.api.all("Event")[0]
    assert (first["firstTimestamp"], first["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z")
    assert recording.api.writes() == ["create Event", "patch Event", "patch Event", "create Event"]


async def test_the_same_words_about_another_object_are_another_event(recording: Recording) -> None:
    recording.tell()
    other = watched(identified(make_start(), uid="another"))
    assert isinstance(other, DispatchStart)
    recording.recorder.event(other, QUEUED)
    await asyncio.sleep(1)
    assert [count for _, count in recording.told] == [1, 1]


async def test_an_event_that_the_api_server_has_forgotten_is_told_anew(recording: Recording) -> None:
    recording.tell()
    await asyncio.sleep(1)
    recording.api.objects.clear()
    recording.tell()
    await asyncio.sleep(1)
    assert recording.told == [(QUEUED.message, 1)]


async def test_what_is_remembered_is_bounded(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "REMEMBERED", 2)
    for message in ("a", "b", "a", "c", "a", "b"):
        recording.tell(Event("Normal", "Queued", message))
    await asyncio.sleep(1)
    # Of a, b and c the least recent was b when c came.
    assert recording.told == [("a", 3), ("b", 1), ("c", 1), ("b", 1)]


async def test_a_long_message_is_cut(recording: Recording) -> None:
    recording.tell(Event("Warning", "Refused", "é" * 5000))
    await asyncio.sleep(1)
    assert recording.told == [("é" * LONGEST_MESSAGE, 1)]


async def test_a_missing_permission_is_logged_once_and_not_tried_again(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    denied = refusal("create", "Event", 403, "Forbidden", 'User "u" cannot create resource "events" in API group ""')
    recording.api.before = always("create", "Event", denied)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            recording.tell()
        await asyncio.sleep(100)
    assert recording.api.writes() == ["create Event"] * 5
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the operator may not create events" in caplog.text


async def test_an_unanswered_create_is_found_again_by_its_name(recording: Recording) -> None:
    recording.api.after = nth(1, "create", "Event", unanswered("create", "Event"))
    recording.tell()
    await asyncio.sleep(10)
    recording.tell()
    await asyncio.sleep(10)
    assert recording.told == [(QUEUED.message, 2)]


async def test_an_api_server_that_is_away_is_not_asked_for_ever(recording: Recording) -> None:
    away = ApiError("create", "Event", Effect.NOTHING_HAPPENED, "connection refused")
    recording.api.before = always("create", "Event", away)
    recording.tell()
    await asyncio.sleep(1000)
    assert recording.api.writes() == ["create Event"] * ATTEMPTS
    recording.api.before = lambda _request: None
    recording.tell()
    await asyncio.sleep(1)
    assert recording.told == [(QUEUED.message, 1)]


async def test_a_fault_of_ours_in_one_event_ends_no_other(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(_request: Request) -> None:
        recording.api.before = lambda _: None
        raise ValueError("ours")

    recording.api.before = fault
    recording.tell()
    recording.tell(Event("Normal", "Running", "Running"))
    await asyncio.sleep(1)
    assert recording.told == [("Running", 1)]
    assert "an Event can't be posted" in caplog.text


async def test_of_too_many_the_oldest_are_dropped_and_it_is_said(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_recorder, "LONGEST_QUEUE", 3)
    for number in range(10):
        recording.tell(Event("Normal", "Queued", str(number)))
    await asyncio.sleep(1)
    assert [message for message, _ in recording.told] == ["7", "8", "9"]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["3 Events wait to be posted; the oldest are dropped", "7 Events were dropped"]


async def test_the_end_posts_what_waits(recording: Recording) -> None:
    for number in range(50):
        recording.tell(Event("Normal", "Queued", str(number)))
    await recording.recorder.shutdown(grace_period=1)
    assert len(recording.told) == 50
    await recording.recorder.shutdown(grace_period=1)


async def test_the_end_waits_no_longer_than_it_may(recording: Recording, caplog: pytest.LogCaptureFixture) -> None:
    recording.api.before = always("create", "Event", unanswered("create", "Event"))
    for number in range(50):
        recording.tell(Event("Normal", "Queued", str(number)))
    begun = asyncio.get_running_loop().time()
    await recording.recorder.shutdown(grace_period=2.5)
    assert asyncio.get_running_loop().time() - begun == pytest.approx(2.5)
    assert "49 Events were not posted before the end" in caplog.text


async def test_what_a_write_changed_is_logged_and_recorded(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    before, after = make_start(), make_start()
    ready = make_condition("Ready", "False", "Waiting", "the gate is\nclosed")
    after["status"] = {"phase": "Gated", "conditions": [ready]}
    pair = watched(before), watched(after)
    assert isinstance(pair[0], DispatchStart)
    assert isinstance(pair[1], DispatchStart)
    with caplog.at_level(logging.INFO):
        recording.recorder.record_events(*pair)
    await asyncio.sleep(1)
    assert recording.told == [("Gated: the gate is\nclosed", 1)]
    assert r"submission 1): Gated: the gate is\nclosed" in caplog.text
