"""Looks that go on: how the operator's own coroutines are run to the point where their answers so far end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

from dispatch_operator.cache import Key
from dispatch_operator.collect import Collector
from dispatch_operator.look import Looker
from dispatch_operator.models import backend, reading
from dispatch_operator.seen import at
from support.builders import NAME, NAMESPACE
from support.model.objects import SLOTS, Objects
from support.model.wire import Answer, Asked, Told, Wire, advance
from support.operator import NOW

TICK = 40.0
"""Seconds; more than any bound that a look knows."""
COLLECT = "collect"
LABEL = "app.kubernetes.io/managed-by"


class Step(NamedTuple):
    """An answer, and when it came."""

    answer: Any
    """Its number, of `_ANSWERS`."""
    now: int


@dataclass(frozen=True, eq=False)
class Look:
    """A look that has made requests and waits for the answer to the next one; equal ones are identical."""

    subject: str
    """The name of a DispatchStart, or `collect`."""
    view: Objects
    """What the cache held when it began."""
    began: int
    steps: tuple[Step, ...]
    next: Asked

    def __str__(self) -> str:
        return f"look at {self.subject}, before {self.next}"


class Looks:
    """All looks of one exploration."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Objects, int, tuple[Step, ...]], Look | None] = {}
        self._answers: list[Answer] = []
        self._numbers: dict[Any, int] = {}

    def begin(self, subject: str, view: Objects, now: int) -> Look | None:
        """Return a look that begins, or None when it ends without a request."""
        return self._look(subject, view, now, ())

    def go_on(self, look: Look, answer: Answer, now: int) -> Look | None:
        """Return a look after its request was answered, or None when that ended it."""
        return self._look(look.subject, look.view, look.began, (*look.steps, Step(self._number(answer), now)))

    def _number(self, answer: Answer) -> int:
        # Answers are values of interned objects, or of a few errors, and stay the same object for the same answer.
        key = tuple(map(id, answer)) if isinstance(answer, tuple) else id(answer)
        if key not in self._numbers:
            self._numbers[key] = len(self._answers)
            self._answers.append(answer)
        return self._numbers[key]

    def _look(self, subject: str, view: Objects, began: int, steps: tuple[Step, ...]) -> Look | None:
        key = (subject, view, began, steps)
        if key not in self._known:
            following = self._replay(subject, view, began, steps)
            self._known[key] = Look(subject, view, began, steps, following) if following else None
        return self._known[key]

    def _replay(self, subject: str, view: Objects, began: int, steps: tuple[Step, ...]) -> Asked | None:
        now = began
        cache = Told()
        for (kind, _), obj in zip(SLOTS, view, strict=True):
            # The operator watches only the TrainJobs that carry its label.
            if obj and (kind != "TrainJob" or at(obj.value, "metadata", "labels", LABEL)):
                cache.put(kind, obj.value)
        wire: Any = Wire()
        look: Any = (
            Collector(wire, cache).look(Key(NAMESPACE, NAME))
            if subject == COLLECT
            else Looker(wire, cache, lambda *_: None, lambda: NOW + now * TICK).look(Key(NAMESPACE, subject))
        )
        following = advance(look, None)
        for step in steps:
            now = step.now
            following = advance(look, self._answers[step.answer])
        look.close()
        return following


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let pauses take no time, and read each spec only once."""
    read: dict[tuple[type, int], tuple[object, object]] = {}
    parse = reading.parse

    def once(model: Any, raw: Any) -> Any:
        held = raw.get("spec") if model is backend.Backend else raw
        key = (model, id(held))
        if key not in read or read[key][0] is not held:
            read[key] = (held, parse(model, raw))
        return read[key][1]

    async def at_once(_seconds: float) -> None:
        pass

    with (
        mock.patch.object(asyncio, "sleep", at_once),
        mock.patch.object(reading, "parse", once),
        mock.patch.object(backend, "parse", once),
    ):
        yield
