"""The audit log is read as far as it is written."""

import json
from pathlib import Path

from controlplane import audit


def make_event(user: str, **subject: str) -> dict[str, object]:
    return {
        "user": {"username": user},
        "verb": "patch",
        "objectRef": subject,
        "responseStatus": {"code": 200},
        "userAgent": "test",
    }


def test_requests_are_those_of_the_user(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    events = [
        make_event("one", resource="trainjobs", name="a"),
        make_event("two", resource="pods", subresource="status"),
    ]
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert [request.resource for request in audit.requests(log)] == ["trainjobs", "pods"]
    (request,) = audit.requests(log, "two")
    assert (request.verb, request.subresource, request.name, request.code) == ("patch", "status", "", 200)


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_text(json.dumps(make_event("one")) + '\n{"user": ')
    assert len(list(audit.requests(log))) == 1
