"""A place in an object that nobody has validated: a file, or what a lenient API server stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.models.reading import Path, dotted
from dispatch_operator.api.quoting import quote

MOST_LEVELS = 100
"""Of nesting in an object that is copied or changed: those that the APIs define have some twenty."""


class WrongShapeError(Exception):
    """A part has another type than its place in the object calls for."""


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A JSON value and where it stands; below an absent value everything is absent."""

    path: Path
    value: Any

    def __str__(self) -> str:
        return dotted(self.path)

    @property
    def is_stated(self) -> bool:
        """Whether it is present and not null, ``""`` or ``[]``; ``false`` and 0 count as stated."""
        return self.value not in (None, "", [])

    def at(self, *keys: str) -> "JsonNode":
        """Return what the keys lead to.

        Raises:
            WrongShapeError: something on the way is neither absent nor an object.
        """
        value = self.value
        for depth, key in enumerate(keys):
            value = _mapping(value, self.path, keys[:depth]).get(key)
        return JsonNode((*self.path, *keys), value)

    def names(self) -> tuple[str, ...]:
        """Return the keys of an object, sorted, whatever their values; none when absent.

        Raises:
            WrongShapeError: it is neither absent nor an object.
        """
        return tuple(sorted(_mapping(self.value, self.path)))

    def items(self) -> Iterator["JsonNode"]:
        """Yield the items of a list; none when absent.

        Raises:
            WrongShapeError: it is neither absent nor a list.
        """
        if self.value is not None and not isinstance(self.value, list):
            raise WrongShapeError(f"{self} must be a list, not {quote(self.value)}")
        for index, item in enumerate(self.value or ()):
            yield JsonNode((*self.path, index), item)

    def text(self) -> str:
        """Return a string.

        Raises:
            WrongShapeError: it is no string, or absent.
        """
        if not isinstance(self.value, str):
            raise WrongShapeError(f"{self} must be a string, not {quote(self.value)}")
        return self.value

    def integer(self, default: int) -> int:
        """Return an integer, or the default when absent.

        Raises:
            WrongShapeError: it is neither absent nor an integer.
        """
        if self.value is None:
            return default
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise WrongShapeError(f"{self} must be an integer, not {quote(self.value)}")
        return self.value


def _mapping(value: Any, path: Path, below: tuple[str, ...] = ()) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WrongShapeError(f"{dotted((*path, *below))} must be an object, not {quote(value)}")
    return value


def is_nested_deeper(value: object, levels: int) -> bool:
    """Tell whether a JSON value has more levels of nesting, without recursion, which Python bounds."""
    layer = [value]
    for _ in range(levels + 1):
        containers = [part for part in layer if isinstance(part, Mapping | list)]
        layer = [inner for part in containers for inner in (part.values() if isinstance(part, Mapping) else part)]
        if not containers:
            return False
    return True
