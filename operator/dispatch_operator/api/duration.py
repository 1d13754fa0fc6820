"""Go's duration syntax in exact arithmetic (``timeLimit`` and ``timeouts``)."""

import re
from decimal import Decimal, Inexact, localcontext

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # MICRO SIGN
    "\u03bcs": 1_000,  # GREEK SMALL LETTER MU
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
SECOND = NANOSECONDS["s"]

# ASCII digits only. Longer units stand before those they begin with.
_NUMBER = r"(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)"
_UNIT = "(?:" + "|".join(sorted(NANOSECONDS, key=len, reverse=True)) + ")"
_PART = re.compile(f"({_NUMBER})({_UNIT})")
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_NUMBER}{_UNIT})+)")

# For a schema: at least one part of a positive duration has a digit that is not zero.
_ZERO = r"(?:0+(?:[.]0*)?|[.]0+)"
_NOT_ZERO = r"(?:0*[1-9][0-9]*(?:[.][0-9]*)?|[0-9]*[.]0*[1-9][0-9]*)"
POSITIVE = rf"[+]?(?:{_ZERO}{_UNIT})*{_NOT_ZERO}{_UNIT}(?:{_NUMBER}{_UNIT})*"
"""The syntax of those greater than zero, in the regular expressions that Python and RE2 share."""

EXCESSIVE = (
    "(^|[^0-9.])0*[1-9]([0-9]{13}|[0-9]{11}[0-9.]*ms|[0-9]{8}[0-9.]*s|[0-9]{6}[0-9.]*m([^s]|$)|[0-9]{4}[0-9.]*h)"
)
"""For a schema: a part of more than two hours, and all those that CEL, which overflows, could not add up."""

# The arithmetic below needs this many digits more than the text has: those of the largest unit, and of the carries.
_MORE_DIGITS = 40


def parse(text: str) -> Decimal:
    """Return the exact nanoseconds of a duration such as ``1h30m`` or ``-.5s``, fractions of one included.

    Unlike Go's ParseDuration it neither rounds nor overflows.

    Raises:
        ValueError: the text is not Go's duration syntax.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError("is not a duration such as 90s, 1h30m or 1.5h")
    with localcontext() as context:
        context.prec = len(text) + _MORE_DIGITS
        context.traps[Inexact] = True
        total = _total([Decimal(number) * NANOSECONDS[unit] for number, unit in _PART.findall(text)])
        return -total if text.startswith("-") else total


def _total(parts: list[Decimal]) -> Decimal:
    """Add up pair by pair: one after the other a part of many digits would be copied for each of the others."""
    while len(parts) > 1:
        parts = [sum(parts[place : place + 2], Decimal(0)) for place in range(0, len(parts), 2)]
    return parts[0] if parts else Decimal(0)


def whole_seconds(text: str) -> int:
    """Return a duration in seconds, rounded up to a whole one: ``1ns`` is 1, ``-1.5s`` is -1.

    Raises:
        ValueError: the text is not Go's duration syntax.
    """
    nanoseconds = parse(text)
    whole = int(nanoseconds)
    whole += nanoseconds > whole
    return -(-whole // SECOND)


def seconds(text: str) -> float:
    """Return a duration in seconds as clocks and time-outs take it, to the nearest float.

    Raises:
        ValueError: the text is not Go's duration syntax.
    """
    return float(parse(text) / SECOND)
