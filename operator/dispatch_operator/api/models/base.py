"""What every model has in common: strict types, camelCase keys, unknown keys ignored, no change after reading."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, Strict, WithJsonSchema
from pydantic.alias_generators import to_camel

Item = TypeVar("Item")

# Pydantic's strict mode would refuse JSON's list as a tuple; the items stay strict.
Items = Annotated[tuple[Item, ...], Strict(strict=False)]
# The same for a word of a StrEnum; only a string can equal one.
Word = Annotated[Item, Strict(strict=False)]

# An object of any content, which the API server keeps as it was sent. It compares objects only; nothing reads them.
FreeFormObject = Annotated[Any, WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]


def immutable(message: str) -> dict[str, JsonValue]:
    """Return the schema of a field that the API server lets nobody change, and says why."""
    return validations("self == oldSelf", message)


def validations(rule: str, message: str, *more: tuple[str, str]) -> dict[str, JsonValue]:
    """Return the schema of a field with rules in CEL, each with what is told when it is broken."""
    rules = ((rule, message), *more)
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


def must_match(pattern: str, message: str) -> AfterValidator:
    """Return a check of a string whose failure is told in words, not by a regular expression."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(message)
        return text

    return AfterValidator(checked)


class Model(BaseModel):
    """A part of an object as the API server stores it.

    A boolean, a string or a float is never an integer, and a number is never a string. Keys that are not declared are
    ignored, as the API server prunes them (docs/contract.md, Objects).
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, alias_generator=to_camel)


class ClosedModel(Model):
    """A part in which an unknown key is an error, because ignoring it would run something else than was asked."""

    model_config = ConfigDict(extra="forbid")
