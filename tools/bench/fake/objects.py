"""The objects of one resource, the crowd behind them, and the changes that a watch tells of."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from msgspec import json

from bench.fake.crowd import Crowd

Object = dict[str, Any]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """An event of a watch, as a line of it."""

    version: int
    whole: bytes
    metadata_only: bytes


@dataclass(eq=False)
class Objects:
    """Objects of one resource, as JSON; those of a crowd are made while they are listed."""

    objects: dict[Key, bytes] = field(default_factory=dict)
    crowds: list[Crowd] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def get(self, key: Key) -> Object | None:
        """Return an object that does not belong to a crowd."""
        stored = self.objects.get(key)
        return None if stored is None else json.decode(stored)

    def put(self, key: Key, obj: Object, event: str) -> bytes:
        """Store an object and tell of it; return it as it is stored."""
        stored = json.encode(obj)
        if event == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = stored
        version = int(obj["metadata"]["resourceVersion"])
        self.changes.append(Change(version, line(event, stored), line(event, metadata_only(obj))))
        self.changed.set()
        self.changed.clear()
        return stored

    def page(
        self, namespace: str, offset: int, limit: int, *, labelled: bool, only_metadata: bool
    ) -> tuple[list[bytes], bool]:
        """Return some objects in their order, and whether more follow; a crowd is listed with all namespaces only."""
        crowds = [crowd for crowd in self.crowds if not namespace and (crowd.labelled or not labelled)]
        members = chain(*(crowd.members(only_metadata=only_metadata) for crowd in crowds))
        found = list(islice(chain(members, self._stored(namespace, only_metadata)), offset, offset + limit + 1))
        return found[:limit], len(found) > limit

    def _stored(self, namespace: str, only_metadata: bool) -> Iterator[bytes]:  # noqa: FBT001 - as page has it.
        for key, stored in self.objects.items():
            if namespace in {"", key[0]}:
                yield metadata_only(json.decode(stored)) if only_metadata else stored


def metadata_only(obj: Object) -> bytes:
    """Return an object's PartialObjectMetadata."""
    return json.encode({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]})


def line(event: str, stored: bytes) -> bytes:
    """Return a line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (event.encode(), stored)
