"""Rules in CEL by which the API server lets nobody change what was submitted, one for each field.

Each rule names its field to whoever is refused. What an absent field means may be written out, and left out again.

See docs/contract.md, What can't be changed.
"""

from collections.abc import Callable

from pydantic import JsonValue

MESSAGE = "the request of a DispatchStart can't be changed; create another DispatchStart"

_NO_LIMIT = "^(0|(0+(h|m|s|ms|us|ns))+)?$"
# What CEL's duration reads exactly: it keeps 64 bits of whole nanoseconds.
_EXACT = "^([0-9]{1,6}([.][0-9]{1,3})?h|[0-9]{1,8}([.][0-9]{1,3})?(m|s|ms)|[0-9]{1,8}(us|ns))+$"

Rules = tuple[tuple[str, str], ...]
"""Fields of one object, each with its rule."""


def unchanged(*rules: Rules) -> dict[str, JsonValue]:
    """Return the schema of an object with the rules of its fields."""
    return {
        "x-kubernetes-validations": [
            {"rule": rule, "message": MESSAGE, "fieldPath": f".{field}"} for some in rules for field, rule in some
        ]
    }


def always_there(*fields: str) -> Rules:
    """Return the rules of fields that are required or have a default."""
    return tuple((field, f"self.{field} == oldSelf.{field}") for field in fields)


def zero_when_absent(*fields: str) -> Rules:
    """Return the rules of numbers."""
    return tuple((field, _optional(field, _is_equal, lambda one: f"{one} == 0")) for field in fields)


def empty_when_absent(*fields: str) -> Rules:
    """Return the rules of texts, lists and maps."""
    return tuple((field, _optional(field, _is_equal, lambda one: f"size({one}) == 0")) for field in fields)


def object_when_absent(*fields: str) -> Rules:
    """Return the rules of objects of any content: CEL does not know all of their keys, but can count them."""
    return tuple((field, _optional(field, _is_the_same, lambda one: f"size(dyn({one})) == 0")) for field in fields)


def duration(*fields: str) -> Rules:
    """Return the rules of Go durations: 90m is 1h30m, and no limit is written in many ways."""
    return tuple((field, _optional(field, _is_as_long, _is_no_limit)) for field in fields)


def _optional(field: str, is_equal: Callable[[str, str], str], means_absent: Callable[[str], str]) -> str:
    new, old = f"self.{field}", f"oldSelf.{field}"
    added, removed = means_absent(new), f"!has({old}) || {means_absent(old)}"
    return f"has({new}) ? (has({old}) ? {is_equal(new, old)} : {added}) : ({removed})"


def _is_equal(new: str, old: str) -> str:
    return f"{new} == {old}"


def _is_the_same(new: str, old: str) -> str:
    # Kubernetes looks for the keys of the one in the other, and passes by an undeclared key that the other lacks.
    return f"({new} == {old} && {old} == {new})"


def _is_as_long(new: str, old: str) -> str:
    exact = f"{new}.matches('{_EXACT}') && {old}.matches('{_EXACT}') && duration({new}) == duration({old})"
    return f"({new} == {old} || ({_is_no_limit(new)} && {_is_no_limit(old)}) || ({exact}))"


def _is_no_limit(one: str) -> str:
    return f"{one}.matches('{_NO_LIMIT}')"
