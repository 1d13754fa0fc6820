"""Which transitions become Events."""

from typing import Any

import pytest

from dispatch_operator.reconcile.events import Announcement, announcements

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
        ("a new phase", start(None), start("Gated"), Announcement("Normal", "Gated", "Gated: job said")),
        ("the same phase again", start("Gated"), start("Gated"), None),
        (
            "a refusal",
            start(None),
            start("Refused", "ErrInvalid", "False"),
            Announcement("Warning", "ErrInvalid", "Refused: ready said"),
        ),
        (
            "another class in the same phase",
            start("Pending", "ErrUnreachable", "False"),
            start("Pending", "ErrUnsupported", "False"),
            Announcement("Warning", "ErrUnsupported", "Pending: ready said"),
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
            Announcement("Warning", "Failed", "Failed: ready said"),
        ),
        ("a status that somebody emptied", start("Gated"), start(None), None),
    ],
)
def test_announcements(what: str, before: Object, after: Object, want: Announcement | None) -> None:
    assert list(announcements(before, after)) == ([want] if want else []), what
