"""How many objects of one kind have some value; kept at each put and drop, so that nobody has to count."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from dispatch_operator.kube.index import Key

R = TypeVar("R")
V = TypeVar("V", bound=Hashable)


class Tally(Generic[R, V]):
    """Counts the objects of one kind by a value of theirs."""

    def __init__(self, kind: type[R], value: Callable[[R], V]) -> None:
        self.kind = kind
        self._value = value
        self._counts: Counter[V] = Counter()

    @property
    def counts(self) -> Mapping[V, int]:
        """How many have which value."""
        return self._counts

    def replace(self, key: Key, before: R | None, after: R | None) -> None:  # noqa: ARG002 - as an index has it.
        """Note that an object has come (from None), changed, or gone (to None)."""
        if before is not None:
            self._counts[self._value(before)] -= 1
        if after is not None:
            self._counts[self._value(after)] += 1
