"""JSON text as values, refusing what JSON's own parser lets pass."""

import json
import math
from typing import Any, NoReturn

from dispatch_operator.api.quoting import quote
from dispatch_operator.documents.error import DocumentError, DuplicateKeyError
from dispatch_operator.documents.scalars import integer
from dispatch_operator.documents.yaml_text import yaml_documents


def json_document(source: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a JSON text; a surrogate pair is one character.

    Raises:
        DocumentError: it has a duplicate key, or a number that is none in JSON.
        json.JSONDecodeError: it is no JSON.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise _duplicate(source, text, pairs)
        return made

    def number(digits: str) -> float | int:
        whole = integer(digits)
        if whole is None and math.isinf(float(digits)):
            raise DocumentError(f"{source}: {quote(digits)} is not a number that JSON can hold")
        return float(digits) if whole is None else whole

    def refuse(word: str) -> NoReturn:
        raise DocumentError(f"{source}: {word} is not a number that JSON can hold")

    return json.loads(text, object_pairs_hook=unique, parse_int=number, parse_float=number, parse_constant=refuse)


def _duplicate(source: str, text: str, pairs: list[tuple[str, Any]]) -> DuplicateKeyError:
    """Return the error of an object with a key twice, with its place where YAML's parser, which knows it, can tell."""
    try:
        list(yaml_documents(source, text))
    except DuplicateKeyError as error:
        return error
    except DocumentError:
        pass  # JSON that is no YAML, such as one with a surrogate pair.
    keys = [key for key, _ in pairs]
    return DuplicateKeyError(f"{source}: duplicate key {quote(next(key for key in keys if keys.count(key) > 1))}")
