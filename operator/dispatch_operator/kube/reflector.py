"""A reflector tells a handler of every object of a resource, as client-go's does: it lists, then watches, for ever."""

import asyncio
import logging
import random
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

from dispatch_operator.api.quoting import escaped, shortened
from dispatch_operator.kube.backoff import backoff
from dispatch_operator.kube.decoding import PAGE_LIMIT, Unreadable, WatchEvent, WatchEventType
from dispatch_operator.kube.errors import (
    HTTP_FORBIDDEN,
    HTTP_GONE,
    HTTP_NOT_FOUND,
    ApiError,
    MalformedAnswerError,
    PageTooLargeError,
    from_status,
)
from dispatch_operator.kube.known_objects import (
    Identity,
    KnownObjects,
    Object,
    key_of,
    read_metadata,
    read_resource_version,
)
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.log_subject import about
from dispatch_operator.kube.presence import Presence
from dispatch_operator.kube.stream_health import StreamHealth
from dispatch_operator.records.reading import RecordError

logger = logging.getLogger(__name__)

WATCH_SECONDS = 120, 240
"""A watch is renewed after a random time between these, so that not all are renewed at once."""
EARLY_SECONDS = 1.0
"""A watch that ends by more than this before its time was broken by somebody."""
FAILURES_UNTIL_RELIST = 3
"""In a row: then the resourceVersion itself is in doubt, for example after an etcd restore, and a list settles it."""
LONGEST_WAIT = 30.0
"""Seconds until a stream that failed is renewed, as of client-go's reflector."""
NAMESPACE_SECONDS = 10.0
"""After which a namespace that is not there is looked for again."""
LONGEST_FAULT = 500
"""Characters."""


class ResourceEventHandler(Protocol):
    """Is told of the objects; it may raise, which is logged and harms nothing else."""

    def added_or_modified(self, obj: Object, *, listed: bool) -> None:
        """Take an object as the API server sent it, in a version that was not told before.

        Args:
            obj: The object.
            listed: Whether a list tells of it: then it is so, also where that is older than what was told before.

        Raises:
            RecordError: It is not what its kind promises.
        """

    def deleted(self, identity: Identity) -> None:
        """Take note that an object that was told before is there no longer, or is no longer selected."""

    def synced(self) -> None:
        """Take note that the first list is complete; this is called once."""


class ReflectorState(NamedTuple):
    """How a reflector fares, for readiness and metrics; times are those of its clock, in seconds."""

    synced: bool
    """Whether the first list was complete."""
    served: bool
    """Whether the API server serves the kind, as far as it has said."""
    presence: Presence
    """Whether its namespace exists, as far as that was asked."""
    forbidden: bool
    """Whether it lacks the right to list or watch, as far as the API server has said."""
    since: float | None
    """When its stream went down; None while it is up."""
    last_fault: str
    """What failed last, in one line; empty while nothing did."""
    failures: int
    """How often it failed in a row."""
    restarts: int
    """How often its list or watch was renewed because of a fault."""
    last_event: float | None
    """When the last watch event came, bookmarks included."""
    objects: int
    """How many objects are known."""
    handler_errors: int
    """How often the handler raised."""
    unreadable: int
    """How often an object came that can't be read, and was left alone."""


class Reflector:
    """Lists and watches one resource, and renews what breaks."""

    def __init__(self, list_watch: ListWatch, handler: ResourceEventHandler, clock: Callable[[], float]) -> None:
        self._list_watch = list_watch
        self._handler = handler
        self._clock = clock
        self._known = KnownObjects()
        self._health = StreamHealth(clock)
        self._resource_version = ""
        """Up to where everything was told; empty when a list is needed."""
        self._latest = ""
        """The latest resourceVersion that was told, also when a list is needed."""
        self._limit = PAGE_LIMIT
        self._synced = False
        self._served = True
        self._presence = Presence.EXISTS
        self._forbidden = False
        self._last_event: float | None = None
        self._handler_errors = 0
        self._unreadable = 0
        self.answered = asyncio.Event()
        """Set when the first list is told, or has failed once."""

    def __str__(self) -> str:
        return str(self._list_watch)

    @property
    def kind(self) -> str:
        """The kind of what it lists."""
        return self._list_watch.kind

    @property
    def namespace(self) -> str | None:
        """The namespace of what it lists; None for all."""
        return self._list_watch.namespace

    @property
    def state(self) -> ReflectorState:
        """How it fares now."""
        return ReflectorState(
            synced=self._synced,
            served=self._served,
            presence=self._presence,
            forbidden=self._forbidden,
            since=self._health.since,
            last_fault=self._health.last_fault,
            failures=self._health.failures,
            restarts=self._health.restarts,
            last_event=self._last_event,
            objects=len(self._known),
            handler_errors=self._handler_errors,
            unreadable=self._unreadable,
        )

    async def run(self) -> NoReturn:
        """List and watch until cancelled; whatever fails is made again."""
        while True:
            try:
                if not self._resource_version:
                    await self._list()
                await self._watch()
                self._health.ended()
            except (ApiError, MalformedAnswerError) as error:
                await self._recover(error)
            except Exception as error:
                # A fault of ours in one place must not end the watch for all that this process does.
                logger.exception("the reflector of %s failed", self)
                await self._recover(error)

    async def _list(self) -> None:
        """Tell of every object that is new or changed, and then of those that are there no longer."""
        missing = self._known.keys()
        continue_token = ""
        while True:
            try:
                page = await self._list_watch.page(self._limit, continue_token)
            except PageTooLargeError:
                if self._limit == 1:
                    raise
                self._limit = max(self._limit // 8, 1)
                continue
            for obj in page:
                if isinstance(obj, Unreadable):
                    # It is there, whatever it is.
                    missing.discard(self._leave_alone(obj))
                    continue
                identity, resource_version = read_metadata(obj)
                missing.discard(key_of(identity))
                self._put(identity, resource_version, obj, listed=True)
                # A whole page takes longer to decode and to handle than the event loop may be blocked.
                await asyncio.sleep(0)
            self._limit = min(self._limit * 2, PAGE_LIMIT)
            if not (continue_token := page.continue_token):
                break
        await self._tell_as_deleted(missing)
        if _is_before(page.resource_version, self._latest):
            # Etcd was restored from a backup: what is known may bear a version of the time that was lost.
            logger.warning("%s: the API server has gone back to an earlier time; all is told anew", self)
            self._known.forget_versions()
            self._latest = ""
            await self._list()
            return
        self._latest = self._resource_version = page.resource_version
        self._note_listed()

    async def _watch(self) -> None:
        seconds = random.randint(*WATCH_SECONDS)  # noqa: S311 - it spreads requests and protects nothing.
        begun = self._clock()
        async with self._list_watch.watch(self._resource_version, seconds) as events:
            self._health.opened()
            self._forbidden = False
            async for event in events:
                self._last_event = self._clock()
                self._receive(event)
                # A burst comes in one piece, and takes longer than the event loop may be blocked.
                await asyncio.sleep(0)
        if self._clock() - begun < seconds - EARLY_SECONDS:
            raise MalformedAnswerError(f"the watch of {self} ended before its time")

    def _receive(self, event: WatchEvent) -> None:
        """Tell of an event, unless it is known; the watch goes on from it even when the handler raises."""
        if isinstance(event.object, Unreadable):
            key = self._leave_alone(event.object)
            if event.type is WatchEventType.DELETED and (gone := self._known.get(key)):
                self._delete(gone)
            return
        match event.type:
            case WatchEventType.ERROR:
                raise from_status("watch", str(self), event.object)
            case WatchEventType.BOOKMARK:
                resource_version = read_resource_version(event.object)
            case WatchEventType.DELETED:
                identity, resource_version = read_metadata(event.object)
                if self._known.get(key_of(identity)) == identity:
                    self._delete(identity)
            case WatchEventType.ADDED | WatchEventType.MODIFIED:
                identity, resource_version = read_metadata(event.object)
                self._put(identity, resource_version, event.object, listed=False)
        if resource_version != self._resource_version:
            self._latest = self._resource_version = resource_version
            self._health.progressed()

    def _put(self, identity: Identity, resource_version: str, obj: Object, *, listed: bool) -> None:
        if self._known.holds(identity, resource_version):
            return
        before = self._known.get(key_of(identity))
        if before is not None and before != identity:
            # It was deleted and made anew while nothing was watched.
            self._delete(before)
        self._known.put(identity, resource_version)
        self._call(partial(self._handler.added_or_modified, obj, listed=listed), key_of(identity))

    def _delete(self, identity: Identity) -> None:
        self._known.remove(identity)
        self._call(partial(self._handler.deleted, identity), key_of(identity))

    def _note_listed(self) -> None:
        if not self._synced:
            self._synced = True
            self._call(self._handler.synced, "the first list")
            self.answered.set()

    async def _tell_as_deleted(self, keys: set[str]) -> None:
        for key in keys:
            if gone := self._known.get(key):
                self._delete(gone)
                await asyncio.sleep(0)

    def _leave_alone(self, obj: Unreadable) -> str:
        """Tell of an object that can't be decoded; return its key."""
        key = key_of(Identity(obj.namespace, obj.name, ""))
        self._note_unreadable(key, obj.fault)
        return key

    def _note_unreadable(self, key: str, fault: str) -> None:
        self._unreadable += 1
        told = escaped(shortened(fault, LONGEST_FAULT))
        logger.warning(
            "%s %s can't be read, and is left alone: %s", self, escaped(key), told, extra=about(*_parts(key))
        )

    def _call(self, handle: Callable[[], None], what: str) -> None:
        try:
            handle()
        except RecordError as error:
            self._note_unreadable(what, str(error))
        except Exception:
            self._handler_errors += 1
            logger.exception("%s: %s can't be handled", self, escaped(what), extra=about(*_parts(what)))

    async def _recover(self, error: Exception) -> None:
        """Note a fault, and wait before the stream is renewed."""
        fault = escaped(shortened(str(error) or type(error).__name__, LONGEST_FAULT))
        last_fault = self._health.last_fault
        self._health.failed(fault)
        self.answered.set()
        failures = self._health.failures
        status, retry_after = (error.status, error.retry_after) if isinstance(error, ApiError) else (None, None)
        self._served = status != HTTP_NOT_FOUND
        self._forbidden = status == HTTP_FORBIDDEN
        if self._forbidden and await self._waited_for_namespace():
            return
        if status == HTTP_GONE or failures >= FAILURES_UNTIL_RELIST:
            self._resource_version = ""
        wait = backoff(failures, retry_after, longest=LONGEST_WAIT)
        # A kind that a cluster lacks, and a version that is too old, are in the course of things.
        level = logging.INFO if status in {HTTP_GONE, HTTP_NOT_FOUND} else logging.WARNING
        if failures > 1 and fault == last_fault:
            level = logging.DEBUG
        logger.log(level, "%s is not watched: %s; trying again in %.1f s", self, fault, wait, extra=self._about())
        await asyncio.sleep(wait)

    def _about(self) -> dict[str, Any]:
        return about(self.namespace or "")

    async def _waited_for_namespace(self) -> bool:
        """Wait while the namespace is not there: whose rights are given in it has none then.

        Returns:
            Whether it was not there. What was in it is told as deleted then, and is listed anew when it is there again.
        """
        waited = False
        while (presence := await self._list_watch.presence()) is not Presence.EXISTS:
            if presence is not self._presence:
                logger.info("%s is not watched: the namespace %s", self, presence.value, extra=self._about())
                self._presence = presence
            if presence is Presence.ABSENT:
                await self._tell_as_deleted(self._known.keys())
                self._resource_version = self._latest = ""
                # As a list would be where the rights are the cluster's: it is complete, and empty.
                self._note_listed()
            waited = True
            await asyncio.sleep(NAMESPACE_SECONDS)
        self._presence = presence
        if waited:
            self._health.begin_anew()
        return waited


def _parts(key: str) -> list[str]:
    """Return the namespace and the name in a key; nothing of what is no key."""
    return key.split("/") if key.count("/") == 1 else ["", ""]


def _is_before(resource_version: str, other: str) -> bool:
    """Tell whether a list's version is an earlier one; Kubernetes 1.35 promises that they are numbers."""
    return resource_version.isdecimal() and other.isdecimal() and int(resource_version) < int(other)
