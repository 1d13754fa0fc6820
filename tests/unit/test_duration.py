"""Go durations, against an independent oracle of fractions."""

import re
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api import duration

SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "\u00b5s": Fraction(1, 10**6),
    "\u03bcs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}

numbers = st.one_of(
    st.integers(0, 10**12).map(str),
    st.tuples(st.integers(0, 10**6), st.text("0123456789", max_size=25)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
    st.text("0123456789", min_size=1, max_size=25).map(lambda digits: f".{digits}"),
)
parts = st.lists(st.tuples(numbers, st.sampled_from(sorted(SECONDS))), min_size=1, max_size=6)


def value(number: str) -> Fraction:
    whole, _, places = number.partition(".")
    return Fraction(int(whole or 0)) + Fraction(int(places or 0), 10 ** len(places))


@given(parts, st.sampled_from(["", "+", "-"]))
def test_is_exact_in_every_unit_and_sum_of_units(amounts: list[tuple[str, str]], sign: str) -> None:
    text = sign + "".join(number + unit for number, unit in amounts)
    exact = sum((value(number) * SECONDS[unit] for number, unit in amounts), Fraction(0)) * (-1 if sign == "-" else 1)
    assert Fraction(duration.parse(text)) == exact * 10**9
    assert duration.whole_seconds(text) == ceil(exact)
    assert duration.seconds(text) == pytest.approx(float(exact))
    assert (re.fullmatch(duration.POSITIVE, text) is not None) == (exact > 0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("0h", 0),
        ("1ns", 1),
        ("1s", 1),
        ("1.s", 1),
        (".5s", 1),
        ("59m59.000000001s", 3600),
        ("1h30m", 5400),
        ("1.000000000s", 1),
        ("1.0000000001s", 2),
        (".1ns", 1),
        ("-1.5s", -1),
        ("9223372036s", 9_223_372_036),
        ("9223372036.0000000001s", 9_223_372_037),
        ("0." + "0" * 5000 + "1s", 1),
        ("2562047h47m16s", 9_223_372_036),
    ],
)
def test_rounds_up_to_whole_seconds(text: str, seconds: int) -> None:
    assert duration.whole_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "-",
        "1",
        "00",
        ".s",
        "1e3s",
        "1h1",
        "1 s",
        " 1s",
        "1s ",
        "1s\n",
        "1d",
        "1S",
        "\u0661s",
        "1_0s",
        "--1s",
        "1h-1m",
    ],
)
def test_refuses_what_go_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as"):
        duration.parse(text)
    with pytest.raises(ValueError, match="is not a duration such as"):
        duration.whole_seconds(text)
    assert re.fullmatch(duration.POSITIVE, text) is None


def test_takes_a_number_of_any_length() -> None:
    assert duration.parse("9" * 10_000 + "s") > 10**9_999
