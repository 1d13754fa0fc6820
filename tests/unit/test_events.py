"""Which transitions become Events."""

from typing import Any

import pytest

from dispatch_operator.reconcile.events import Event, events

Object = dict[str, Any]


def start(phase: str | None, reason: str = "Started", ready: str = "True") -> Object:
    conditions = [
        {"type": "Ready", "status": ready, "reason": reason, "message": "ready said"},
        {"type": "Succeeded", "status": "Unknown", "reason": phase, "message": "job said"},
    ]
    return {"status": {"phase": phase, "conditions": conditions}} if phase else {"status": {}}


@pytest.mark.parametrize(
    ("what", "before", "after", "want"),
    [
        ("a new phase", start(None), start("Gated"), Event("Normal", "Gated", "Gated: job said")),
        ("the same phase again", start("Gated"), start("Gated"), None),
        (
            "a refusal",
            start(None),
            start("Refused", "ErrInvalid", "False"),
            Event("Warning", "ErrInvalid", "Refused: ready said"),
        ),
        (
            "another class in the same phase",
            start("Pending", "ErrUnreachable", "False"),
            start("Pending", "ErrUnsupported", "False"),
            Event("Warning", "ErrUnsupported", "Pending: ready said"),
        ),
        (
            "the same class in the same phase",
            start("Pending", "ErrUnreachable", "False"),
            start("Pending", "ErrUnreachable", "False"),
            None,
        ),
        (
            "a failed job",
            start("Running"),
            start("Failed", "OOMKilled", "False"),
            Event("Warning", "Failed", "Failed: ready said"),
        ),
        ("a status that somebody emptied", start("Gated"), start(None), None),
    ],
)
def test_announcements(what: str, before: Object, after: Object, want: Event | None) -> None:
    assert list(events(before, after)) == ([want] if want else []), what
