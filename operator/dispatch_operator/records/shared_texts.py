"""Most texts of most objects are the same: of ten thousand Starts, each says in the same words how far it has come."""

import sys
from typing import Any

LONGEST = 300
"""Characters of a text that is shared."""
DEEPEST = 5
"""Levels of nesting; conditions and annotations lie above."""
OWN = frozenset({"uid", "name", "namespace", "resourceVersion"})
"""Keys of texts that every object has its own of."""


def with_shared_texts(value: Any, levels: int = DEEPEST) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value whose short texts are the very ones that other objects hold, too."""
    kind = type(value)
    if kind is str:
        return sys.intern(value) if len(value) <= LONGEST else value
    if not levels:
        return value
    if kind is dict:
        return {key: one if key in OWN else with_shared_texts(one, levels - 1) for key, one in value.items()}
    if kind is list:
        return [with_shared_texts(one, levels - 1) for one in value]
    return value
