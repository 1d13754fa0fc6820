"""An index over stored objects, as client-go's: from each thing that can change to the objects that it concerns."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar


class Key(NamedTuple):
    """An object of some kind by its namespace, empty for what belongs to the cluster, and its name."""

    namespace: str
    name: str


R = TypeVar("R")


class Index(Generic[R]):
    """Keys of the objects of one kind, by the values of an index function; kept at each put and drop."""

    def __init__(self, kind: type[R], values: Callable[[R], Iterable[Hashable]]) -> None:
        self.kind = kind
        self._values = values
        self._keys: dict[Hashable, set[Key]] = {}

    def of(self, value: Hashable) -> frozenset[Key]:
        """Return the keys of the objects with a value."""
        return frozenset(self._keys.get(value, ()))

    def replace(self, key: Key, before: R | None, after: R | None) -> None:
        """Note that an object has come (from None), changed, or gone (to None)."""
        old = set(self._values(before)) if before is not None else set()
        new = set(self._values(after)) if after is not None else set()
        for value in new - old:
            self._keys.setdefault(value, set()).add(key)
        for value in old - new:
            held = self._keys[value]
            held.discard(key)
            if not held:
                del self._keys[value]
