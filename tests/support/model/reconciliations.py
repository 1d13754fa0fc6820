"""Reconciles that go on: how the operator's own coroutines are run to the point where their answers so far end."""

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

from dispatch_operator.api.models import backend, reading
from dispatch_operator.controllers import orphaned_copies
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.kube import refused_statuses
from dispatch_operator.kube.index import Key
from dispatch_operator.reconcile import reconciler
from dispatch_operator.reconcile.decide import decide
from dispatch_operator.reconcile.observation import Observation, Observed
from dispatch_operator.reconcile.reconciler import Reconciler
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.reading import read_record
from support import records
from support.builders import NAME, NAMESPACE
from support.model.objects import SLOTS, Objects
from support.model.suspending import Answer, SuspendedRequest, SuspendingClient, SuspendingStore, advance
from support.operator import NOW
from support.records import at

TICK = 40.0
"""Seconds; more than any bound that a reconcile knows."""
COLLECT = "collect"
LABEL = "app.kubernetes.io/managed-by"


class Step(NamedTuple):
    """An answer, and when it came."""

    answer: Any
    """Its number, of `_ANSWERS`."""
    now: int


@dataclass(frozen=True, eq=False)
class Reconciliation:
    """A reconcile that has made requests and waits for the answer to the next one; equal ones are identical."""

    subject: str
    """The name of a DispatchStart, or `collect`."""
    view: Objects
    """What the cache held when it began."""
    began: int
    steps: tuple[Step, ...]
    next: SuspendedRequest
    writer: str | None
    """The UID of the DispatchStart that it is at; None for the collector."""

    def __str__(self) -> str:
        return f"reconcile of {self.subject}, before {self.next}"


class Reconciliations:
    """All reconciles of one exploration."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Objects, int, tuple[Step, ...]], Reconciliation | None] = {}
        self._answers: list[Answer] = []
        self._numbers: dict[Any, int] = {}

    def begin(self, subject: str, view: Objects, now: int) -> Reconciliation | None:
        """Return a reconcile that begins, or None when it ends without a request."""
        return self._reconcile(subject, view, now, ())

    def go_on(self, waiting: Reconciliation, answer: Answer, now: int) -> Reconciliation | None:
        """Return a reconcile after its request was answered, or None when that ended it."""
        return self._reconcile(
            waiting.subject, waiting.view, waiting.began, (*waiting.steps, Step(self._number(answer), now))
        )

    def _number(self, answer: Answer) -> int:
        # Answers are values of interned objects, or of a few errors, and stay the same object for the same answer.
        key = tuple(map(id, answer)) if isinstance(answer, tuple) else id(answer)
        if key not in self._numbers:
            self._numbers[key] = len(self._answers)
            self._answers.append(answer)
        return self._numbers[key]

    def _reconcile(self, subject: str, view: Objects, began: int, steps: tuple[Step, ...]) -> Reconciliation | None:
        key = (subject, view, began, steps)
        if key not in self._known:
            following, writer = self._replay(subject, view, began, steps)
            self._known[key] = Reconciliation(subject, view, began, steps, following, writer) if following else None
        return self._known[key]

    def _replay(
        self, subject: str, view: Objects, began: int, steps: tuple[Step, ...]
    ) -> tuple[SuspendedRequest | None, str | None]:
        now = began
        told = SuspendingStore()
        for (kind, _), obj in zip(SLOTS, view, strict=True):
            # The operator watches only the TrainJobs that carry its label.
            if obj and (kind != "TrainJob" or at(obj.value, "metadata", "labels", LABEL)):
                told.put(records.watched(obj.value))
        wire: Any = SuspendingClient()
        running: Any = (
            OrphanedCopies(wire, told).reconcile(Key(NAMESPACE, NAME))
            if subject == COLLECT
            else Reconciler(wire, told, lambda *_: None, lambda *_: None, lambda: NOW + now * TICK).reconcile(
                Key(NAMESPACE, subject)
            )
        )
        following = advance(running, None)
        for step in steps:
            now = step.now
            following = advance(running, self._answers[step.answer])
        running.close()
        start = told.get(DispatchStart, NAMESPACE, subject)
        return following, start.metadata.uid if start else None


class _Once:
    """A pure function that is run once for the same values; what it was asked of is kept, so that no id comes again."""

    def __init__(self, function: Any, key: Any) -> None:
        self._function, self._key = function, key
        self._known: dict[object, tuple[object, object]] = {}

    def __call__(self, *arguments: Any) -> Any:
        key = self._key(*arguments)
        if key not in self._known:
            self._known[key] = (arguments, self._function(*arguments))
        return self._known[key][1]


def _of_reading(model: Any, raw: Any) -> object:
    return model, id(raw.get("spec") if model is backend.Backend else raw)


def _of_observed(observed: Observed, now: float) -> object:
    """Every field counts: a decision that is taken for one of fewer facts is made again and again."""
    return tuple(_of_fact(getattr(observed, name)) for name in _FACTS), now


def _of_fact(fact: Any) -> object:
    if isinstance(fact, Observation):
        return id(fact.obj), fact.origin
    if isinstance(fact, tuple):
        return tuple(id(value) for value in fact)
    if isinstance(fact, Mapping):
        return tuple(sorted((key[0].__name__, key[1], id(error)) for key, error in fact.items()))
    return fact if isinstance(fact, bool | float | frozenset) or fact is None else id(fact)


_FACTS = Observed.__struct_fields__


@contextmanager
def quickly() -> Iterator[None]:
    """Let pauses take no time, and decide and read only once on the same values: nothing else is changed."""

    async def at_once(_seconds: float) -> None:
        pass

    parse = _Once(reading.parse, _of_reading)
    read = _Once(read_record, lambda kind, raw: (kind, id(raw)))
    watch = _Once(records.watched, id)
    with (
        mock.patch.object(asyncio, "sleep", at_once),
        mock.patch.object(reconciler.logger, "disabled", new=True),
        mock.patch.object(refused_statuses.logger, "disabled", new=True),
        mock.patch.object(orphaned_copies.logger, "disabled", new=True),
        mock.patch.object(reading, "parse", parse),
        mock.patch.object(backend, "parse", parse),
        mock.patch("dispatch_operator.kube.typed.read_record", read),
        mock.patch.object(records, "watched", watch),
        mock.patch("dispatch_operator.reconcile.reconciler.decide", _Once(decide, _of_observed)),
        _uncollected(),
    ):
        yield


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from looking for cycles among some million states, which have none: a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
