"""Values of users in messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api.quoting import escaped, name, quote, quote_both

any_text = st.text(st.characters(codec=None, exclude_categories=[]), max_size=200)


@given(any_text)
def test_no_text_can_break_a_line_or_a_terminal(text: str) -> None:
    for shown in (quote(text), escaped(text), name(text)):
        assert shown.isprintable()
        shown.encode()


@given(st.text('a\\n\n"\ud800', max_size=59), st.text('a\\n\n"\ud800', max_size=59))
def test_different_short_texts_are_shown_differently(one: str, other: str) -> None:
    assert (quote(one) == quote(other)) == (one == other)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", '"a\\nb"'),
        ('a"\\', '"a\\"\\\\"'),
        ("x" * 61, '"' + "x" * 60 + '…" (61 characters)'),
        ("\u202e", '"\\u202e"'),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (1.5, "1.5"),
        ([1], "a list"),
        ((), "a list"),
        ({}, "an object"),
    ],
)
def test_shows_a_value_as_json_would(value: object, shown: str) -> None:
    assert quote(value) == shown


def test_a_long_name_is_shortened() -> None:
    assert name("x" * 121) == "x" * 120 + "… (121 characters)"
    assert name("slurm/Partition") == "slurm/Partition"


def test_a_number_that_python_will_not_write_is_described() -> None:
    assert quote(10**5000) == "a number of thousands of digits"


DIGEST = "registry.example/team-a/a-rather-long-name-of-an-image@sha256:" + "0" * 60


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        ("a", "b", ('"a"', '"b"')),
        ("a" * 61, 5, (quote("a" * 61), "5")),
        ("a" * 70, "b" * 70, (quote("a" * 70), quote("b" * 70))),
        (
            DIGEST + "1",
            DIGEST + "2",
            (
                f'…"{"0" * 20}1" (from character 103 of 123)',
                f'…"{"0" * 20}2" (from character 103 of 123)',
            ),
        ),
        ("a" * 80, "a" * 81, (f'…"{"a" * 20}" (from character 61 of 80)', f'…"{"a" * 21}" (from character 61 of 81)')),
    ],
)
def test_two_long_texts_are_shown_where_they_differ(one: object, other: object, want: tuple[str, str]) -> None:
    assert quote_both(one, other) == want
