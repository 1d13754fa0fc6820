"""Which transitions become Events."""

import pytest

from dispatch_operator.reconcile.events import Event, events
from dispatch_operator.records.dispatch import DispatchStart
from support.builders import make_backend, make_condition, make_start
from support.records import backend_of, start_of


def start(phase: str | None, reason: str = "Started", ready: str = "True") -> DispatchStart:
    told = [("Ready", ready, reason, "ready said"), ("Succeeded", "Unknown", phase, "job said")]
    conditions = [make_condition(*one) for one in told if phase]
    status = {"phase": phase, "conditions": conditions} if phase else {}
    return start_of({**make_start(), "status": status})


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
        (
            "a stop after a refusal",
            start("Starting"),
            start("Stopping", "ErrRejected", "False"),
            Event("Warning", "ErrRejected", "Stopping: ready said"),
        ),
        (
            "a stop that is wanted",
            start("Running"),
            start("Stopping", "Cancelled", "False"),
            Event("Normal", "Stopping", "Stopping: ready said"),
        ),
        ("a status that somebody emptied", start("Gated"), start(None), None),
    ],
)
def test_which_transitions_become_events(
    what: str, before: DispatchStart, after: DispatchStart, want: Event | None
) -> None:
    assert list(events(before, after)) == ([want] if want else []), what


def test_a_backend_without_a_verdict_is_no_event() -> None:
    judged = {**make_backend(), "status": {"conditions": [make_condition("Ready", "True", "Verified", "proven")]}}
    assert list(events(backend_of(judged), backend_of(make_backend()))) == []
