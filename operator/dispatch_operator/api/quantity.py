"""Kubernetes resource quantities by value: ``1000m`` is ``1``, ``1k`` is ``1000``."""

import re
from fractions import Fraction

_QUANTITY = re.compile(r"(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?P<suffix>[a-zA-Z]{0,2}|[eE][-+]?[0-9]+)")
_SUFFIXES = {
    "": Fraction(1),
    **{suffix: Fraction(1000) ** (place - 3) for place, suffix in enumerate(("n", "u", "m", "", "k", "M"))},
    **{suffix: Fraction(1000) ** place for place, suffix in enumerate("GTPE", start=3)},
    **{f"{suffix}i": Fraction(1024) ** place for place, suffix in enumerate("KMGTPE", start=1)},
}
# A number beyond these bounds is no quantity that a cluster counts; they keep a hostile one from costing time.
_LONGEST = 64
_LARGEST_EXPONENT = 99


def parse(value: object) -> Fraction | None:
    """Return the exact value of a quantity as JSON carries it, a number or a string; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
    if match is None:
        return None
    multiplier = _multiplier(match["suffix"])
    return None if multiplier is None else Fraction(match["number"].rstrip(".")) * multiplier


def _multiplier(suffix: str) -> Fraction | None:
    if suffix[1:].lstrip("+-").isdecimal():
        exponent = int(suffix[1:])
        return Fraction(10) ** exponent if abs(exponent) <= _LARGEST_EXPONENT else None
    return _SUFFIXES.get(suffix)
