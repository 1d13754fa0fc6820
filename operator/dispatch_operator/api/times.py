"""Times as Kubernetes writes them, from and to seconds since the epoch."""

from datetime import UTC, datetime


def written(seconds: float) -> str:
    """Write a time in RFC 3339 with whole seconds, as metav1.Time is."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(text: object) -> float | None:
    """Read an RFC 3339 time; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
