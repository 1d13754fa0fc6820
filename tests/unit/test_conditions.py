"""Conditions, and the invariants that every status keeps."""

from typing import Any

import pytest

from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass, Phase
from dispatch_operator.api.models.status import MESSAGE_LIMIT
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.checks.problems import Problem, class_of, summary
from dispatch_operator.reconcile.conditions import Wanted, conditions
from support.invariants import broken_invariants

Object = dict[str, Any]
NOW = 1_767_225_600.0


def whole(phase: str = "Gated", ready: str = "True", started: str = "True", *more: Wanted) -> Object:
    ended = Phase(phase).is_end
    wanted = [
        Wanted(Condition.FINISHED, ConditionStatus.TRUE if ended else ConditionStatus.FALSE, phase),
        Wanted(Condition.READY, ConditionStatus(ready), "R"),
        Wanted(Condition.STARTED, ConditionStatus(started), "S"),
        Wanted(Condition.SUCCEEDED, ConditionStatus.UNKNOWN, "U"),
        *more,
    ]
    return {
        "phase": phase,
        "observedGeneration": 3,
        "conditions": [entry.as_json() for entry in conditions(wanted, [], 3, NOW, Entry)],
        **({"outcome": {"state": phase}} if ended else {}),
    }


def test_conditions_stand_in_the_contracts_order() -> None:
    assert [entry["type"] for entry in whole()["conditions"]] == ["Started", "Succeeded", "Finished", "Ready"]


TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE


@pytest.mark.parametrize(
    ("status", "since", "want"),
    [
        (TRUE, "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        (FALSE, "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        (TRUE, "yesterday", "2026-01-01T00:00:00Z"),
        (TRUE, "", "2026-01-01T00:00:00Z"),
    ],
)
def test_a_transition_time_moves_only_with_the_status(status: ConditionStatus, since: str, want: str) -> None:
    held = Entry("Ready", status, 1, since, "R", "")
    (made,) = conditions([Wanted(Condition.READY, TRUE, "R")], [held], 1, NOW, Entry)
    assert made.last_transition_time == want


@pytest.mark.parametrize(
    ("message", "begins", "ends"),
    [
        ("x" * 40_000, "x" * 30_000, "… (40000 characters)"),
        ("; ".join(["x" * 10_000] * 5), "x" * 10_000 + "; ", "x; and 2 more"),
        ("x" * 40_000 + "; y; z", "x" * 30_000, "… (40000 characters); and 2 more"),
        ("x" * MESSAGE_LIMIT, "x" * MESSAGE_LIMIT, "x"),
        ("\x1b" * 20_000 + "; y", "\\x1b\\x1b", "… (80000 characters); and 1 more"),
    ],
)
def test_a_message_is_always_within_what_the_api_takes(message: str, begins: str, ends: str) -> None:
    (made,) = conditions([Wanted(Condition.READY, TRUE, "R", message)], [], 1, NOW, Entry)
    assert len(made.message) <= MESSAGE_LIMIT
    assert made.message.startswith(begins)
    assert made.message.endswith(ends)
    (again,) = conditions([Wanted(Condition.READY, TRUE, "R", made.message)], [made], 1, NOW, Entry)
    assert again == made


@pytest.mark.parametrize(
    ("foreign", "want"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\r\n  lines\tand more\n", "two lines and more"),
        ('wrote "a  b"', 'wrote "a  b"'),
        ("back\bspace\x00 and \u202e", "back\\x08space\\x00 and \\u202e"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_a_message_holds_nothing_that_a_terminal_obeys(foreign: str, want: str) -> None:
    (made,) = conditions([Wanted(Condition.READY, TRUE, "R", foreign)], [], 1, NOW, Entry)
    assert made.message == want


@pytest.mark.parametrize(
    ("want", "status"),
    [
        ([], whole()),
        (
            ["Reconciling and Stalled together"],
            whole(
                "Gated",
                "True",
                "True",
                Wanted(Condition.RECONCILING, ConditionStatus.TRUE, "R"),
                Wanted(Condition.STALLED, ConditionStatus.TRUE, "R"),
            ),
        ),
        (
            ["Reconciling or Stalled present but not True"],
            whole("Gated", "True", "True", Wanted(Condition.STALLED, ConditionStatus.FALSE, "R")),
        ),
        (["an end that is not Stalled"], whole("Failed", "False")),
        (["Ready without Started"], whole("Gated", "True", "Unknown")),
        (["an observedGeneration that differs"], {**whole(), "observedGeneration": 4}),
        (["Started, Succeeded, Finished or Ready missing"], {"phase": "Gated", "conditions": []}),
        (["Finished before the end, or an end that is not Finished"], {**whole(), "phase": "Succeeded", "outcome": {}}),
        (["an outcome before the end, or an end without one"], {**whole(), "outcome": {"state": "Succeeded"}}),
        (["a reference without an epoch"], {**whole(), "reference": {"name": "team-a/job", "uid": "u"}}),
        (["an empty reason"], whole("Gated", "True", "True", Wanted(Condition.READ_BACK, ConditionStatus.TRUE, ""))),
        (["a type twice"], whole("Gated", "True", "True", Wanted(Condition.READY, ConditionStatus.TRUE, "R"))),
    ],
)
def test_broken_invariants_are_named(want: list[str], status: Object) -> None:
    assert broken_invariants(status) == want


def test_a_message_that_is_too_long_is_named() -> None:
    status = whole()
    status["conditions"][0]["message"] = "x" * (MESSAGE_LIMIT + 1)
    assert broken_invariants(status) == ["a message that is too long"]


def problem(text: str, error_class: ErrorClass = ErrorClass.INVALID) -> Problem:
    return Problem(error_class, "field", text)


def test_a_refusal_has_the_class_of_its_gravest_problem() -> None:
    unsupported = problem("x", ErrorClass.UNSUPPORTED)
    assert class_of([unsupported]) is ErrorClass.UNSUPPORTED
    assert class_of([unsupported, problem("y")]) is ErrorClass.INVALID


@pytest.mark.parametrize(
    ("texts", "limit", "want"),
    [
        (["a"], 100, "field: a"),
        (["a", "b"], 100, "field: a; field: b"),
        (["a", "b"], 18, "field: a; field: b"),
        (["a", "b", "c"], 25, "field: a; and 2 more"),
        (["a" * 50], 40, "field: aaaa… (57 characters)"),
        (["a" * 50, "b"], 45, "field: aaaaaaaaa… (57 characters); and 1 more"),
    ],
)
def test_a_summary_holds_whole_problems_only(texts: list[str], limit: int, want: str) -> None:
    assert summary([problem(text) for text in texts], limit) == want
