"""Read a JSON value into a model: all faults are reported at once, and the model is usable in spite of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from dispatch_operator.api.models.base import Model
from dispatch_operator.api.quoting import escaped, quote, shortened

M = TypeVar("M", bound=Model)
Path = tuple[str | int, ...]
Tree = dict[str | int, "Tree"]
"""By each step of a path what follows it; nothing follows the last."""

_LONGEST_KEY = 60
_DEEPEST = 100
"""Levels of nesting that are read: no model has as many, so that what lies deeper is wrong, or read by nobody."""

_WANTED = {
    "int_type": "an integer",
    "string_type": "a string",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A value of a wrong type, a missing one that is required, or a key that may not be there."""

    path: Path
    text: str
    """What is wrong and what is allowed, without the path."""

    def __str__(self) -> str:
        return f"{dotted(self.path)} {self.text}"


@dataclass(frozen=True, slots=True)
class Reading(Generic[M]):
    """A model and what was wrong with the JSON value that it was read from.

    Whatever could not be read is replaced in ``value`` by the field's default or its first documented example. These
    pass every check, so that a check of ``value`` finds only what is wrong elsewhere, and no fault is reported twice.
    """

    value: M
    faults: tuple[Fault, ...]


class InvalidObject(Exception):  # noqa: N818 - the object is invalid, not the operator
    """An object that the API server would not have stored: what it means can't be known."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults


def parse(model: type[M], raw: object) -> M:
    """Read a JSON value; a null counts as absent.

    Raises:
        InvalidObject: with every fault at once.
    """
    try:
        return model.model_validate(without_nulls(raw, _DEEPEST))
    except ValidationError as error:
        faults = tuple(_fault(detail) for detail in error.errors(include_url=False))
    raise InvalidObject(faults)


def read(model: type[M], raw: Mapping[str, Any]) -> Reading[M]:
    """Read a JSON object that may have any number of faults; each field needs a default or an example."""
    try:
        return Reading(parse(model, raw), ())
    except InvalidObject as error:
        faults = error.faults
    mended = _mended(model, without_nulls(raw, _DEEPEST), _tree(faults))
    return Reading(model.model_validate(mended), faults)


def without_nulls(value: Any, levels: int = sys.maxsize) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value without the nulls of its mappings; one in a list stays, and is reported as a wrong type.

    An unpaired surrogate in a key, which pydantic can't carry, is replaced by its escape. This hides nothing: no valid
    key has one.

    Args:
        value: Any JSON value.
        levels: How many levels of nesting are kept; an object or a list below them is returned empty.

    Raises:
        RecursionError: More levels are to be kept than Python can follow.
    """
    if not levels and isinstance(value, Mapping | list | tuple):
        return {} if isinstance(value, Mapping) else []
    if isinstance(value, Mapping):
        return {
            str(key).encode("utf-8", "backslashreplace").decode(): without_nulls(item, levels - 1)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list | tuple):
        return [without_nulls(item, levels - 1) for item in value]
    return value


def dotted(path: Path) -> str:
    """Return a path as ``spec.command[1]``; a key that is no plain word is written in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and step.isascii() and len(step) <= _LONGEST_KEY:
            text += f".{step}" if text else step
        else:
            text += f"[{escaped(shortened(step, _LONGEST_KEY))}]"
    return text


def _fault(detail: ErrorDetails) -> Fault:
    return Fault(tuple(detail["loc"]), _text(detail))


def _text(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return "is not a known key"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {quote(detail['input'])}"
    if kind == "value_error":
        return f"{detail['ctx']['error']}, not {quote(detail['input'])}"
    wanted = detail["msg"].removeprefix("Input should ").removeprefix("String should ").removeprefix("Tuple should ")
    return f"must {wanted}, not {quote(detail['input'])}"


def _tree(faults: Sequence[Fault]) -> Tree:
    """Return the paths of all faults in one tree, so that a thousand faults of one object are mended at once."""
    tree: Tree = {}
    for fault in faults:
        node = tree
        for step in fault.path:
            node = node.setdefault(step, {})
    return tree


def _mended(model: type[Model], raw: Mapping[str, Any], faulty: Tree) -> Mapping[str, Any]:
    """Return ``raw`` with a valid stand-in for each value that is faulty; what has none is left out."""
    fields = _fields(model)
    mended = {key: value for key, value in raw.items() if key not in faulty}
    for step, inside in faulty.items():
        key = str(step)
        field = fields.get(key)
        if field is None:
            if model.model_config.get("extra") == "allow":
                mended[key] = {}
            continue
        inner = _model_in(field.annotation)
        if inside and inner is not None:
            mended[key] = _mended(inner, raw[key], inside)
        elif inside and field.examples:
            mended[key] = _with_elements(raw[key], inside, field.examples[0])
        elif field.examples:
            mended[key] = without_nulls(field.examples[0])
    return mended


def _with_elements(container: Any, faulty: Tree, example: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(container, Mapping):
        return {**container, **dict.fromkeys(faulty, next(iter(example.values())))}
    return [example[0] if index in faulty else item for index, item in enumerate(container)]


def _fields(model: type[Model]) -> Mapping[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: object) -> type[Model] | None:
    candidates: Sequence[object] = get_args(annotation) if get_origin(annotation) is UnionType else (annotation,)
    models = [one for one in candidates if isinstance(one, type) and issubclass(one, Model)]
    return models[0] if models else None
