"""From bytes to the items of a list and the events of a watch."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.kube import decoding
from dispatch_operator.kube.decoding import (
    DEEPEST,
    ListPage,
    Unreadable,
    WatchEvent,
    WatchEventType,
    decoded,
    watch_events,
)
from dispatch_operator.kube.errors import MalformedAnswerError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
METADATA = {"resourceVersion": "7", "continue": "more"}


@given(st.lists(JSON), st.booleans(), st.sampled_from([None, 2]))
def test_a_page_is_what_was_sent_whatever_its_order_and_space(
    items: list[Any], first: bool, indent: int | None
) -> None:
    page: dict[str, Any] = {"metadata": METADATA} if first else {}
    page |= {"items": items, "kind": "XList", "other": [1]}
    body = json.dumps(page | {"metadata": METADATA}, indent=indent)
    read = ListPage(body.encode())
    assert list(read) == items
    assert (read.resource_version, read.continue_token) == ("7", "more")


@pytest.mark.parametrize("items", ["null", "[ ]"])
def test_a_page_may_have_no_items_and_be_the_last(items: str) -> None:
    read = ListPage(f'{{"items": {items}, "metadata": {{"resourceVersion": "7"}}}}\n'.encode())
    assert list(read) == []
    assert (read.resource_version, read.continue_token) == ("7", "")


@pytest.mark.parametrize("missing", range(1, len(json.dumps({"items": [{"a": 1}, 2], "metadata": METADATA})) + 1))
def test_a_page_that_is_cut_off_is_none(missing: int) -> None:
    body = json.dumps({"items": [{"a": 1}, 2], "metadata": METADATA}).encode()
    with pytest.raises(MalformedAnswerError):
        list(ListPage(body[:-missing]))


def test_a_page_is_let_go_once_it_was_read() -> None:
    read = ListPage(b'{"items":[1],"metadata":{"resourceVersion":"7"}}')
    assert list(read) == [1]
    with pytest.raises(MalformedAnswerError):
        list(read)


@pytest.mark.parametrize("body", [b"\xff", b"[]", b"<html>", b"{}", b'{"items":[],"metadata":7}', b'{"items":[1 2]}'])
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        list(ListPage(body))


def test_what_is_nested_too_deeply_for_python_is_cut_off_and_the_rest_is_whole() -> None:
    text = ']}\\"[{'
    deep = "[" * 100_000 + json.dumps(text) + "]" * 100_000
    item = f'{{"before": {json.dumps(text)}, "deep": {deep}, "list": [{deep}, 1], "after": {{"a": [2]}}}}'
    first, second = ListPage(f'{{"items":[{item},{{"b": 3}}],"metadata":{{"resourceVersion":"7"}}}}'.encode())
    assert (first["before"], first["list"][1], first["after"], second) == (text, 1, {"a": [2]}, {"b": 3})
    levels, value = 1, first["deep"]
    while value is not None:
        (value,) = value
        levels += 1
    assert levels == DEEPEST


def test_what_is_nested_too_deeply_and_cut_off_is_refused() -> None:
    with pytest.raises(MalformedAnswerError, match="cut off"):
        list(ListPage(b'{"items":' + b"[" * 100_000))


DIGITS = "9" * 5_000
"""More than Python takes for a number."""
NAMED = (
    f'{{"a": [{{}}, "]"], "n": {DIGITS}, "metadata": {{"n": {DIGITS}, "name": "x", "namespace": "team-a"}}, "b": 1}}'
)


def test_an_object_that_can_not_be_decoded_is_named_and_hides_no_other() -> None:
    page = ListPage(f'{{"items":[{{"a": 1}}, {NAMED} , {{"b": 2}}],"metadata":{{"resourceVersion":"7"}}}}'.encode())
    first, odd, last = page
    assert (first, last, page.resource_version) == ({"a": 1}, {"b": 2}, "7")
    assert odd[:2] == ("team-a", "x")
    assert "digits" in odd.fault


@pytest.mark.parametrize(
    "item",
    [
        DIGITS,
        f'{{"n": {DIGITS}}}',
        f'{{"metadata": {{}}, "n": {DIGITS}}}',
        f'{{"metadata": {{"name": ""}}, "n": {DIGITS}}}',
        f'{{"metadata": {{"name": {DIGITS}}}, "n": 1}}',
        f'{{"metadata": 7, "n": {DIGITS}}}',
        f'{{"metadata" {{"name": "x"}}, "n": {DIGITS}}}',
        f'{{"n": {DIGITS}, "metadata": }}',
        f'{{"metadata": {{"name": "x"}}, "n": {DIGITS}',
    ],
)
def test_what_can_not_even_be_named_is_no_page(item: str) -> None:
    with pytest.raises(MalformedAnswerError):
        list(ListPage(f'{{"items":[{item}],"metadata":{{"resourceVersion":"7"}}}}'.encode()))


@pytest.mark.parametrize("event_type", ["ADDED", "MODIFIED", "DELETED"])
async def test_an_event_of_an_object_that_can_not_be_decoded_names_it(event_type: str) -> None:
    line = f'{{"type":"{event_type}","object":{NAMED}}}\n'
    (told,) = [event async for event in watch_events(chunks_of(line.encode(), 100))]
    assert told.type == event_type
    assert isinstance(told.object, Unreadable)
    assert told.object[:2] == ("team-a", "x")


@pytest.mark.parametrize("line", [f'{{"type":"ADDED","object":{NAMED}', NAMED, f'{{"type":{DIGITS},"object":{NAMED}}}'])
async def test_a_line_that_is_cut_off_around_such_an_object_is_no_event(line: str) -> None:
    with pytest.raises(MalformedAnswerError):
        [event async for event in watch_events(chunks_of(line.encode() + b"\n", 100))]


def test_a_value_is_decoded_alone() -> None:
    assert decoded(b' {"a": [1]} ') == {"a": [1]}
    for text in ("", "{} {}", "{"):
        with pytest.raises(ValueError, match="char"):
            decoded(text.encode())


async def chunks_of(data: bytes, size: int) -> AsyncIterator[bytes]:
    for position in range(0, len(data), size):
        yield data[position : position + size]


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
async def test_events_come_whole_however_their_bytes_do(size: int) -> None:
    lines = [{"type": kind, "object": {"text": "ä\n\r"}} for kind in WatchEventType]
    data = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    events = [event async for event in watch_events(chunks_of(data, size))]
    assert events == [WatchEvent(kind, {"text": "ä\n\r"}) for kind in WatchEventType]


async def test_a_long_line_is_bounded_and_many_short_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LONGEST_LINE_BYTES", 100)
    line = b'{"type":"ADDED","object":{}}\n'
    assert len([event async for event in watch_events(chunks_of(line * 100, 50))]) == 100
    with pytest.raises(MalformedAnswerError, match="longer than 100 bytes"):
        [event async for event in watch_events(chunks_of(b" " * 200, 10))]


async def test_a_watch_that_ends_in_the_middle_of_a_line_is_refused() -> None:
    with pytest.raises(MalformedAnswerError, match="in the middle of a line"):
        [event async for event in watch_events(chunks_of(b'{"type":"ADDED","object":{}}', 5))]
