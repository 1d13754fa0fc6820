"""A DispatchStart's status as the operator can rely on it, whoever wrote it.

The CRD holds the types; an older CRD, or none of ours, may not have. What has another shape than ours is not there.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dispatch_operator.api.enums import Phase

Object = Mapping[str, Any]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flat(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(part) or _is_number(part) for part in value.values())


def _is_condition(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and _is_text(value.get("type"))
        and _is_text(value.get("status"))
        and all(_is_text(value.get(key, "")) for key in ("reason", "message", "lastTransitionTime"))
    )


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "phase": lambda value: _is_text(value) and value in {phase.value for phase in Phase},
    "observedGeneration": _is_number,
    "reference": _is_flat,
    "copy": _is_flat,
    "source": lambda value: _is_flat(value) and {"kind", "name"} <= dict(value).keys(),  # type: ignore[call-overload]
    "outcome": _is_flat,
    "restarts": _is_number,
    "evictions": _is_number,
    "conditions": lambda value: isinstance(value, list) and all(map(_is_condition, value)),
}


def sanitized(start: Object) -> dict[str, Any]:
    """Return a DispatchStart with no more of its status than has the shape that the operator writes."""
    status = start.get("status")
    held = status if isinstance(status, Mapping) else {}
    return {**start, "status": {key: held[key] for key, fits in _FIELDS.items() if key in held and fits(held[key])}}
