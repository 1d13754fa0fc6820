"""What a JSON schema says of one value, in words."""

import json
from collections.abc import Mapping
from typing import Any

from reference.markdown import code

Schema = Mapping[str, Any]
LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} entries",
    "maxProperties": "at most {} entries",
}


def type_of(schema: Schema) -> str:
    """Return the type, of a list or a map with that of its entries."""
    if "enum" in schema:
        return ", ".join(code(word or '""') for word in schema["enum"])
    if "items" in schema:
        return f"list of {schema['items'].get('type', 'any')}s"
    if isinstance(inner := schema.get("additionalProperties"), Mapping):
        return f"map of {inner.get('type', 'any')}s"
    return str(schema.get("type", "any"))


def limits_of(schema: Schema) -> str:
    """Return the limits that the API server or helm itself holds a value to."""
    told = ["not empty"] if 1 in (schema.get("minLength"), schema.get("minItems")) else []
    told += [words.format(f"{schema[key]:,}") for key, words in LIMITS.items() if key in schema]
    if "pattern" in schema:
        told.append(f"matches {code(schema['pattern'])}")
    return "; ".join(told)


def default_of(value: object) -> str:
    """Return a default as it would be written."""
    return code(json.dumps(value, ensure_ascii=False) if value == "" or not isinstance(value, str) else value)
