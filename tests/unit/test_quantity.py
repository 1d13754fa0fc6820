"""Quantities by value."""

from fractions import Fraction

import pytest

from dispatch_operator.api import quantity


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (1, Fraction(1)),
        ("1", Fraction(1)),
        ("1000m", Fraction(1)),
        ("1k", Fraction(1000)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1e-3", Fraction(1, 1000)),
        ("1E+2", Fraction(100)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("+1u", Fraction(1, 10**6)),
        ("-1n", Fraction(-1, 10**9)),
        ("1M", Fraction(10**6)),
        ("1G", Fraction(10**9)),
        ("1T", Fraction(10**12)),
        ("1P", Fraction(10**15)),
        ("1Ki", Fraction(1024)),
        ("1.5Mi", Fraction(3 * 2**19)),
        ("1Gi", Fraction(2**30)),
        ("1Ti", Fraction(2**40)),
        ("1Pi", Fraction(2**50)),
        ("1Ei", Fraction(2**60)),
    ],
)
def test_a_quantity_is_its_exact_value(written: object, value: Fraction) -> None:
    assert quantity.parse(written) == value


@pytest.mark.parametrize(
    "written",
    ["", "x", "1x", "1ki", "1KI", "1e", "1e999999999", "9" * 65, "1 ", " 1", "1\n", ".", True, None, 1.5, [], {}],
)
def test_anything_else_is_no_quantity(written: object) -> None:
    assert quantity.parse(written) is None
