"""Single changes of an object, which can be made in plain values and in a file's text alike."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

REMOVED: Final = object()
"""In the place of a value: the part is taken out."""

Path = tuple[str | int, ...]

# Mappings and lists that mean nothing when they are empty, so that the last entry takes them along.
_PRUNED = frozenset(
    {"labels", "annotations", "metadata", "limits", "requests", "resources", "network", "podFailurePolicy", "rules"}
)


class Edit(NamedTuple):
    """A value to put in a place, or REMOVED; mappings that are missing on the way there are made."""

    path: Path
    value: Any


def at(tree: Any, path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a path leads to."""
    for step in path:
        tree = tree[step]
    return tree


def make(tree: Any, edit: Edit) -> None:  # noqa: ANN401 - any JSON value
    """Make an edit in a tree of mappings and lists."""
    if edit.value is REMOVED:
        path = removal(tree, edit.path)
        del at(tree, path[:-1])[path[-1]]
        return
    for step in edit.path[:-1]:
        if (tree.get(step) if isinstance(tree, Mapping) else tree[step]) is None:
            _put(tree, step, {})
        tree = tree[step]
    _put(tree, edit.path[-1], edit.value)


def removal(tree: Any, path: Path) -> Path:  # noqa: ANN401 - any JSON value
    """Return what is taken out with a part: the part, or what would be left empty around it."""
    while len(path) > 1 and path[-2] in _PRUNED and len(at(tree, path[:-1])) == 1:
        path = path[:-1]
    return path


def _put(holder: Any, key: str | int, value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Put a value in its place; a new key comes first, where no comment of the keys before it is."""
    insert = getattr(holder, "insert", None)
    if insert is not None and isinstance(holder, Mapping) and key not in holder:
        insert(0, key, value)
    else:
        holder[key] = value
