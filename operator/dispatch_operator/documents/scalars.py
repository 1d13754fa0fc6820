"""What a plain YAML scalar stands for in sigs.k8s.io/yaml, which kubectl reads files with (its go-yaml v2)."""

import math
import re
from typing import Any

# YAML 1.1 words, octals of YAML 1.1 and 1.2, and neither base 60 nor dates.
TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
NULL = frozenset({"", "~", "null", "Null", "NULL"})
NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"[-+]?0(?P<base>[xX]|[bB]|[oO]?)(?P<digits>[0-9a-fA-F]+)")
_BASES = {"": 8, "o": 8, "b": 2, "x": 16}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_FLOAT_OR_BASED = re.compile(f"{_FLOAT.pattern}|[-+]?0[xXbBoO][0-9a-fA-F]+")
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
_MOST_DIGITS = 64
"""Binary digits of the largest integer; more are a float."""


def resolved(text: str) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return what a plain scalar stands for in sigs.k8s.io/yaml."""
    if text in TRUE or text in FALSE:
        return text in TRUE
    if text in NULL:
        return None
    # Underscores are dropped, but not from what begins with a dot.
    digits = text if text.startswith(".") else text.replace("_", "")
    if text[0] not in ".+-0123456789" or not _FLOAT_OR_BASED.fullmatch(digits):
        return text
    if (number := integer(digits)) is not None:
        return number
    if not _FLOAT.fullmatch(digits) or math.isinf(float(digits)):
        return text
    return float(digits)


def integer(digits: str) -> int | None:
    """Return an integer in Go's syntax when it fits 64 bits."""
    based = _BASED.fullmatch(digits)
    base = _BASES[based["base"].lower()] if based else 10
    bare = digits.lstrip("+-") if based is None else based["digits"]
    if len(bare) > _MOST_DIGITS or not (based or _DECIMAL.fullmatch(digits)):
        return None
    try:
        value = int(bare, base)
    except ValueError:  # Such as 08, which is no octal.
        return None
    value = -value if digits.startswith("-") else value
    return value if _LEAST_INT <= value <= _MOST_INT else None
