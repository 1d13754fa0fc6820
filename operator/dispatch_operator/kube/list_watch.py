"""What a reflector lists and watches: one resource of one namespace or of all, and which of its objects."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.decoding import ListPage, WatchEvent
from dispatch_operator.kube.presence import Presence, presence_of

CALL_SECONDS = 30.0
"""For a page of a list, and until a watch is answered."""
GRACE_SECONDS = 15.0
"""A watch that goes on for longer than the server was asked to keep it has lost its server: it is half open."""

SILENT_SECONDS = 75.0
"""The API server sends a bookmark each minute, also where nothing changes: a watch silent for longer is lost."""


@dataclass(frozen=True, slots=True)
class ListWatch:
    """Makes the two requests of a reflector."""

    client: Client
    kind: Kind
    namespace: str | None = None
    """None for every namespace, and for a resource of the cluster."""
    label_selector: str = ""
    metadata_only: bool = False
    """Whether only the metadata of the objects is asked for."""
    field_selector: str = ""

    def __str__(self) -> str:
        return f"{self.kind} in {self.namespace}" if self.namespace else self.kind

    async def presence(self) -> Presence:
        """Read live whether what it lists from exists; the cluster does."""
        if self.namespace is None:
            return Presence.EXISTS
        return await presence_of(self.client, self.namespace, timeout=CALL_SECONDS)

    async def page(self, limit: int, continue_token: str) -> ListPage:
        """Ask for a page of the list; the token is the one of the page before, or empty for the first page."""
        return await self.client.list_page(
            self.kind,
            self.namespace,
            timeout=CALL_SECONDS,
            limit=limit,
            continue_token=continue_token,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            metadata_only=self.metadata_only,
        )

    def watch(self, resource_version: str, seconds: int) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch from a version on; the server ends the watch after so many seconds."""
        return self.client.watch(
            self.kind,
            self.namespace,
            timeout=CALL_SECONDS,
            resource_version=resource_version,
            seconds=seconds,
            grace=GRACE_SECONDS,
            silent_for=SILENT_SECONDS,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            metadata_only=self.metadata_only,
        )
