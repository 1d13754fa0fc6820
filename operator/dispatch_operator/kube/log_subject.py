"""Which object a line of the log is about, so that all lines about one can be found, whoever logs them."""

from contextvars import ContextVar
from typing import Any

from dispatch_operator.kube.index import Key

SUBJECT: ContextVar[Key] = ContextVar("log_subject", default=Key("", ""))  # noqa: B039 - it can't be changed.
"""What the task that logs is at, for lines that do not say it themselves; tasks that it makes are at the same."""


def about(namespace: str, name: str = "") -> dict[str, Any]:
    """Return the `extra` of a line about an object, or about a namespace, that is not what its task is at."""
    return {"about": {"namespace": namespace, "name": name}}
