"""Reading the API server's audit log, to count what a user asked of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """One answered request; for a watch, there is one when it starts and one when it ends."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    agent: str


def requests(path: Path, user: str | None = None) -> Iterator[Request]:
    """The requests in an audit log, in the order in which they were logged, all or one user's.

    A service account's user is `system:serviceaccount:<namespace>:<name>`.
    """
    with path.open() as lines:
        for line in lines:
            # The server may be in the middle of writing its last line.
            if not line.endswith("\n"):
                return
            event = json.loads(line)
            if user in (None, event["user"].get("username")):
                yield _request(event)


def _request(event: dict[str, dict[str, str]]) -> Request:
    subject = event.get("objectRef", {})
    return Request(
        # Whoever could not say who they are has none.
        user=event["user"].get("username", ""),
        verb=str(event["verb"]),
        group=subject.get("apiGroup", ""),
        resource=subject.get("resource", ""),
        subresource=subject.get("subresource", ""),
        namespace=subject.get("namespace", ""),
        name=subject.get("name", ""),
        code=int(event.get("responseStatus", {}).get("code", 0)),
        agent=str(event.get("userAgent", "")),
    )
