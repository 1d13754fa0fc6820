"""From the bytes of a list or a watch to objects, one at a time: a large page neither fills memory nor blocks long."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from dispatch_operator.kube.errors import MalformedAnswerError

Object = dict[str, Any]
PAGE_LIMIT = 500
"""Objects of a page, at most, as kubectl asks for."""
DEEPEST = 200
"""Levels of nesting that are kept of a value that is nested too deeply to be decoded whole."""
LONGEST_LINE_BYTES = 8 * 2**20
"""Of one event: etcd takes objects of 1.5 MiB, or a few more where it was told so."""
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_STRING_OR_BRACKET = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_STRING_OR_WORD = re.compile(rf'{_STRING}|[^\s,\[\]{{}}"]++', re.DOTALL)
_DECODER = json.JSONDecoder()


class WatchEventType(StrEnum):
    """The types of watch events, as the API names them."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Tells only the resourceVersion up to which everything was sent."""
    ERROR = "ERROR"
    """Holds a Status instead of an object, and is the last event of its watch."""


class Unreadable(NamedTuple):
    """Stands for an object that can't be decoded, in a list or an event that can: it must not hide the others."""

    namespace: str
    name: str
    fault: str


class WatchEvent(NamedTuple):
    """What happened to an object."""

    type: WatchEventType
    object: Object | Unreadable


class _Page(Struct):
    """A list whose items are not decoded yet."""

    metadata: Object
    items: list[Raw] | None


class _Event(Struct):
    """A line of a watch."""

    type: str
    object: Object


_FAST: Decoder[Any] = Decoder()
_FAST_PAGE, _FAST_EVENT = Decoder(_Page), Decoder(_Event)
_NOT_SO = (MsgspecError, UnicodeError, RecursionError)
"""What the fast decoder raises; the patient one then finds out what can be read all the same."""


class ListPage:
    """One page of a list: its items are decoded while they are iterated, once; its metadata is known after that."""

    def __init__(self, body: bytes) -> None:
        self._text = ""
        self._page: _Page | None = None
        self._metadata: Object = {}
        with suppress(*_NOT_SO):
            self._page = _FAST_PAGE.decode(body)
            return
        try:
            self._text = body.decode()
        except UnicodeDecodeError as error:
            raise MalformedAnswerError(f"the list is no UTF-8: {error}") from error

    @property
    def resource_version(self) -> str:
        """The version of the whole list, from which a watch can go on."""
        return str(self._metadata.get("resourceVersion") or "")

    @property
    def continue_token(self) -> str:
        """What to ask for the next page with; empty at the last one."""
        return str(self._metadata.get("continue") or "")

    def __iter__(self) -> Iterator[Any]:
        """Decode the items; in the place of one that can't be decoded comes an Unreadable.

        Raises:
            MalformedAnswerError: The page is no list, or was cut off.
        """
        if self._page is not None:
            page, self._page = self._page, None
            self._metadata = page.metadata
            yield from map(_item, page.items or ())
        else:
            yield from self._patiently()
        if not self.resource_version:
            raise MalformedAnswerError("the list has no resourceVersion")

    def _patiently(self) -> Iterator[Any]:
        """Decode what the fast decoder does not take, member by member."""
        try:
            # Custom resources come with their metadata behind the items, built-in ones with it before them.
            position = _after(self._text, 0, "{")
            while True:
                field, position = _value(self._text, position)
                position = _after(self._text, position, ":")
                if field == "items" and self._text.startswith("[", position):
                    position = yield from self._items(position + 1)
                else:
                    value, position = _value(self._text, position)
                    if field == "metadata" and isinstance(value, dict):
                        self._metadata = value
                if self._text[position : position + 1] != ",":
                    break
                position = _after(self._text, position, ",")
            _after(self._text, position, "}")
        except ValueError as error:
            raise MalformedAnswerError(f"the list can't be decoded: {error}") from error
        self._text = ""

    def _items(self, position: int) -> Generator[Any, None, int]:
        position = _skip_space(self._text, position)
        if self._text.startswith("]", position):
            return _skip_space(self._text, position + 1)
        while True:
            item, position = _value_or_unreadable(self._text, position)
            yield item
            if self._text[position : position + 1] != ",":
                return _after(self._text, position, "]")
            position = _after(self._text, position, ",")


async def watch_events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[WatchEvent, None]:
    """Decode the events of a watch, one a line, from chunks that know nothing of lines.

    Raises:
        MalformedAnswerError: A line is no event, is too long, or was cut off.
    """
    begun: list[bytes] = []
    length = 0
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield _event(b"".join((*begun, end)))
            begun, length = [], 0
        begun.append(rest)
        length += len(rest)
        if length > LONGEST_LINE_BYTES:
            raise MalformedAnswerError(f"a line of the watch is longer than {LONGEST_LINE_BYTES} bytes")
    if length:
        raise MalformedAnswerError("the watch ended in the middle of a line")


def _item(raw: Raw) -> Any:  # noqa: ANN401 - any JSON value, or an Unreadable.
    with suppress(*_NOT_SO):
        return _FAST.decode(raw)
    try:
        return _value_or_unreadable(bytes(raw).decode(), 0)[0]
    except ValueError as error:
        raise MalformedAnswerError(f"an item of the list can't be decoded: {error}") from error


def decoded(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Decode one JSON value; what is nested too deeply for Python is cut off.

    Raises:
        ValueError: It is no JSON, or more than one value.
    """
    with suppress(*_NOT_SO):
        return _FAST.decode(body)
    return _patiently_decoded(body.decode())


def _patiently_decoded(text: str) -> Any:  # noqa: ANN401 - any JSON value
    value, end = _value(text, 0)
    if end != len(text):
        raise ValueError(f"something follows at character {end}")
    return value


def _event(line: bytes) -> WatchEvent:
    with suppress(*_NOT_SO):
        told = _FAST_EVENT.decode(line)
        if told.type in WatchEventType.__members__:
            return WatchEvent(WatchEventType(told.type), told.object)
    try:
        text = line.decode()
        try:
            event = _patiently_decoded(text)
        except ValueError:
            # Perhaps it is only the object.
            event = {key: _value_or_unreadable(text, begin)[0] for key, begin, _ in _members(text, 0)}
    except ValueError as error:
        raise MalformedAnswerError(f"a line of the watch can't be decoded: {error}") from error
    match event:
        case {"type": str(named), "object": dict() | Unreadable() as obj} if named in WatchEventType.__members__:
            return WatchEvent(WatchEventType(named), obj)
        case {"type": str(event_type), "object": dict()}:
            raise MalformedAnswerError(f"the watch sent an event of the unknown type {event_type}")
    raise MalformedAnswerError("the watch sent an event without type or object")


def _value(text: str, position: int) -> tuple[Any, int]:
    """Decode the JSON value that begins at a position; return it, and where what follows it begins."""
    position = _skip_space(text, position)
    try:
        value, end = _DECODER.raw_decode(text, position)
    except RecursionError:
        # Python's decoder gives up far before the API server's does. One such object must not hide all others.
        shallow, end = _shallow(text, position)
        value = _DECODER.decode(shallow)
    return value, _skip_space(text, end)


def _value_or_unreadable(text: str, position: int) -> tuple[Any, int]:
    """Decode the value at a position, or stand in for it when it is an object that is whole and has a name.

    Raises:
        ValueError: It can't be decoded, and nobody knows what it is.
    """
    try:
        return _value(text, position)
    except ValueError as error:
        try:
            namespace, name = _identity(text, position)
            end = _end(text, position)
        except ValueError:
            raise error from None
        return Unreadable(namespace, name, str(error)), _skip_space(text, end)


def _identity(text: str, position: int) -> tuple[str, str]:
    """Return the namespace and the name of an object, of which no more than these need be JSON."""
    for key, begin, _ in _members(text, position):
        if key == "metadata":
            members = _members(text, begin)
            known = {key: _value(text, begin)[0] for key, begin, _ in members if key in {"namespace", "name"}}
            if name := known.get("name"):
                return str(known.get("namespace") or ""), str(name)
    raise ValueError("it has no name")


def _members(text: str, position: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each member of an object, and where its value begins and ends, without decoding the value."""
    position = _after(text, position, "{")
    while not text.startswith("}", position):
        key, position = _value(text, position)
        begin = _after(text, position, ":")
        end = _end(text, begin)
        yield str(key), begin, end
        position = _skip_space(text, end)
        if not text.startswith("}", position):
            position = _after(text, position, ",")


def _end(text: str, start: int) -> int:
    """Return where the value at a position ends, whatever it is."""
    if text[start : start + 1] in {"{", "["}:
        return _shallow(text, start)[1]
    if (word := _STRING_OR_WORD.match(text, start)) is None:
        raise ValueError(f"a value is missing at character {start}")
    return word.end()


def _shallow(text: str, start: int) -> tuple[str, int]:
    """Return the object or array at a position with what is nested too deeply replaced by null, and its end."""
    kept: list[str] = []
    depth, keep_from = 0, start
    for token in _STRING_OR_BRACKET.finditer(text, start):
        bracket = text[token.start()]
        if bracket in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept += text[keep_from : token.start()], "null"
        elif bracket in "]}":
            if depth == DEEPEST + 1:
                keep_from = token.end()
            depth -= 1
            if not depth:
                return "".join((*kept, text[keep_from : token.end()])), token.end()
    raise ValueError("a value is cut off")


def _after(text: str, position: int, mark: str) -> int:
    """Return where what follows a mark begins."""
    position = _skip_space(text, position)
    if not text.startswith(mark, position):
        raise ValueError(f"{mark} is missing at character {position}")
    return _skip_space(text, position + len(mark))


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position
