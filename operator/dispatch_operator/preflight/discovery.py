"""What the API server serves of Trainer, JobSet and Kueue, asked for no more often than is needed."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dispatch_operator.checks.required_fields import lacking
from dispatch_operator.kube.client import Client

MOST_FOUND = 64
"""Hashes whose documents are remembered; a cluster has a handful."""


@dataclass
class Served:
    """The hashes of served APIs, and what each lacks; the documents, a megabyte each, are not kept."""

    client: Client
    clock: Callable[[], float] = time.monotonic
    _index: Mapping[str, str] = field(default_factory=dict)
    _asked: float | None = None
    _lacking: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    async def hashes(self, apis: Iterable[str], *, timeout: float, age: float = 0.0) -> dict[str, str | None]:
        """Return the hash of each API version; None of one that is not served.

        Args:
            apis: Group and version each.
            timeout: Of the request, in seconds.
            age: How old, in seconds, the answer may be.

        Raises:
            ApiError: It could not be asked for.
        """
        now = self.clock()
        if self._asked is None or now - self._asked >= age:
            self._index, self._asked = await self.client.served(timeout=timeout), now
        return {api: self._index.get(api) for api in apis}

    async def lacking(self, hashes: Mapping[str, str | None], *, timeout: float) -> tuple[str, ...]:
        """Return all that API versions lack of what a Start needs.

        Raises:
            ApiError: A document could not be read.
        """
        found: list[str] = []
        for api, served_hash in hashes.items():
            found += await self._lacking_of(api, served_hash, timeout)
        return tuple(found)

    async def _lacking_of(self, api: str, served_hash: str | None, timeout: float) -> tuple[str, ...]:
        if served_hash is None:
            return tuple(lacking(api, None))
        if (api, served_hash) not in self._lacking:
            document = await self.client.schemas(api, served_hash, timeout=timeout)
            if len(self._lacking) >= MOST_FOUND:
                self._lacking.clear()
            self._lacking[api, served_hash] = tuple(lacking(api, document))
        return self._lacking[api, served_hash]
