"""Records Events about DispatchStarts and DispatchBackends, as client-go's EventRecorder does: nobody waits for them.

What is recorded is queued; one task posts it. An Event that can't be posted is given up, and harms nothing else.
"""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from dispatch_operator.api import times
from dispatch_operator.api.group import API_VERSION, MANAGED_BY
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.quoting import escaped
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.log_subject import SUBJECT
from dispatch_operator.metrics.instruments import start_changed
from dispatch_operator.reconcile.events import Event, Owned, events
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT, DispatchStart

logger = logging.getLogger(__name__)

LONGEST_QUEUE = 5_000
"""Events that wait to be posted; of more than that the oldest are dropped."""
REMEMBERED = 1_000
"""Posted Events that are remembered, so that they are counted when they come again; the least recent are forgotten."""
LONGEST_MESSAGE = 1024
"""Characters, as in the Events of Kubernetes' own controllers."""
ATTEMPTS = 3
"""Times that an Event is sent to an API server that does not answer, or can't take it now."""
LONGEST_PAUSE = 10.0
"""Seconds before the next attempt, whatever the API server asks for: the other Events wait, too."""


class Subject(NamedTuple):
    """The object that an Event is about."""

    kind: Kind
    namespace: str
    name: str
    uid: str


class Told(NamedTuple):
    """What makes two Events the same one, told again."""

    subject: Subject
    type: str
    """Normal or Warning."""
    reason: str
    message: str


class Posted(NamedTuple):
    """An Event as it stands in the cluster."""

    name: str
    times_told: int


class EventRecorder:
    """Takes Events at any time and without waiting, and posts them one after the other."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._queue: deque[tuple[Told, float]] = deque()
        """What to post, and when it happened."""
        self._queued = asyncio.Event()
        self._dropped = 0
        self._posted: OrderedDict[Told, Posted] = OrderedDict()
        self._failures: set[object] = set()
        """The kinds of failure that were logged."""
        self._worker: asyncio.Task[NoReturn] | None = None
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def record_events(self, before: Owned, after: Owned) -> None:
        """Log, and record as Events, what a write of an object's status has changed."""
        if isinstance(before, DispatchStart) and isinstance(after, DispatchStart):
            created = times.read(after.metadata.creation_timestamp)
            start_changed(before.status, after.status, None if created is None else self._clock() - created)
        for event in events(before, after):
            self.tell(after, event)

    def tell(self, about: Owned, event: Event) -> None:
        """Log one Event about an object, and record it."""
        told, whose = _about(about)
        logger.info("%s: %s", whose, escaped(event.message), extra={"about": told})
        self.event(about, event)

    def event(self, about: Owned, event: Event) -> None:
        """Record one Event about an object."""
        meta = about.metadata
        subject = Subject(about.KIND, meta.namespace, meta.name, meta.uid)
        if len(self._queue) == LONGEST_QUEUE:
            self._queue.popleft()
            if not self._dropped:
                logger.warning("%d Events wait to be posted; the oldest are dropped", LONGEST_QUEUE)
            self._dropped += 1
        self._queue.append((Told(subject, event.type, event.reason, event.message[:LONGEST_MESSAGE]), self._clock()))
        self._is_idle.clear()
        self._queued.set()

    def start(self) -> None:
        """Begin to post what is recorded."""
        self._worker = asyncio.create_task(self._post_all(), name="event recorder")

    async def shutdown(self, *, grace_period: float) -> None:
        """Post what is queued, for some seconds at most, and end.

        Args:
            grace_period: Seconds.
        """
        if self._worker is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_period):
                await self._is_idle.wait()
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        self._worker = None
        if self._queue:
            logger.warning("%d Events were not posted before the end", len(self._queue))
            self._queue.clear()

    async def _post_all(self) -> NoReturn:
        while True:
            while self._queue:
                told, at = self._queue.popleft()
                whole = SUBJECT.set(Key(told.subject.namespace, told.subject.name))
                try:
                    await self._post_patiently(told, at)
                except Exception:
                    # A fault of ours in one Event must not end the others.
                    logger.exception("an Event can't be posted")
                finally:
                    SUBJECT.reset(whole)
            if self._dropped:
                logger.warning("%d Events were dropped", self._dropped)
                self._dropped = 0
            self._queued.clear()
            self._is_idle.set()
            await self._queued.wait()

    async def _post_patiently(self, told: Told, at: float) -> None:
        # A create that was carried out unanswered is found again by its name.
        name = f"dispatch-{secrets.token_hex(8)}"
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._post(name, told, at)
            except ApiError as error:
                if error.already_exists and attempt > 1:
                    self._remember(told, Posted(name, 1))
                    return
                self._log(error)
                passes = error.effect is Effect.UNANSWERED or error.status in {None, 401, 429}
                if not passes or attempt == ATTEMPTS:
                    return
                await asyncio.sleep(min(error.retry_after or float(attempt), LONGEST_PAUSE))
            else:
                return

    async def _post(self, name: str, told: Told, at: float) -> None:
        """Create an Event, or count the one that says the same."""
        namespace = told.subject.namespace
        if before := self._posted.get(told):
            again = Posted(before.name, before.times_told + 1)
            body = {"metadata": {}, "count": again.times_told, "lastTimestamp": times.written(at)}
            try:
                await self._client.patch(Kind.EVENT, namespace, again.name, body, timeout=DEFAULT_CALL_TIMEOUT)
            except ApiError as error:
                if not error.not_found:
                    raise
                # The API server keeps Events for an hour, unless it is told otherwise.
                del self._posted[told]
            else:
                self._remember(told, again)
                return
        body = event_body(name, told, at)
        await self._client.create(Kind.EVENT, namespace, body, timeout=DEFAULT_CALL_TIMEOUT)
        self._remember(told, Posted(name, 1))

    def _remember(self, told: Told, posted: Posted) -> None:
        self._posted[told] = posted
        self._posted.move_to_end(told)
        if len(self._posted) > REMEMBERED:
            self._posted.popitem(last=False)

    def _log(self, error: ApiError) -> None:
        kind = error.verb, error.status, error.effect
        level = logging.DEBUG if kind in self._failures else logging.WARNING
        self._failures.add(kind)
        logger.log(level, "an Event can't be posted: %s", escaped(str(error)))


def _about(obj: Owned) -> tuple[dict[str, object], str]:
    """Return what a log line bears about an object, and how a person is told of it; what is no job is left out."""
    meta = obj.metadata
    about: dict[str, object] = {"namespace": meta.namespace, "name": meta.name}
    if not isinstance(obj, DispatchStart) or not obj.target:
        return about, f"{meta.namespace}/{meta.name}"
    job, submission = obj.request.job, obj.request.submission
    whose = f"{meta.namespace}/{meta.name} (job {job}, submission {submission})"
    return {**about, "job": job, "submission": submission}, whose


def event_body(name: str, told: Told, at: float) -> dict[str, Any]:
    """Return an Event that is told for the first time.

    Args:
        name: Its name.
        told: What it says.
        at: When it happened, in seconds since the epoch.
    """
    subject = told.subject
    return {
        "apiVersion": "v1",
        "kind": Kind.EVENT.value,
        "metadata": {"name": name, "namespace": subject.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": subject.kind.value,
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": subject.uid,
        },
        "type": told.type,
        "reason": told.reason,
        "message": told.message,
        "source": {"component": MANAGED_BY},
        "reportingComponent": MANAGED_BY,
        "firstTimestamp": times.written(at),
        "lastTimestamp": times.written(at),
        "count": 1,
    }
