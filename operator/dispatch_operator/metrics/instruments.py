"""What is counted where it happens: requests, steps, ends, probes, and whether this process leads."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from prometheus_client import Counter, Gauge, Histogram, Info

from dispatch_operator import __version__
from dispatch_operator.api.models.status import StartStatus

SUCCEEDED, UNANSWERED = "2xx", "none"
"""Codes of a request that was carried out, and of one that nobody answered."""
MOST_CAUSES = 40
"""Of ended jobs: a cause is a word of Kubernetes, of Trainer or of the operator, and there are some twenty."""
OTHER = "Other"

REQUESTS = Counter(
    "dispatch_api_requests",
    f"Requests to the API server by HTTP status; {SUCCEEDED} when carried out, {UNANSWERED} when nobody answered.",
    ("verb", "kind", "code"),
)
REQUEST_SECONDS = Histogram(
    "dispatch_api_request_seconds",
    "Seconds until a request was answered, or given up; of a list or a watch until the answer began.",
    ("verb", "kind"),
)
STEP_SECONDS = Histogram(
    "dispatch_step_seconds",
    "Seconds that one act of a reconcile took: what was done (such as Create), and about which object.",
    ("action", "object"),
)
START_SECONDS = Histogram(
    "dispatch_start_seconds",
    "Seconds from the creation of a DispatchStart until its Start was whole.",
    buckets=(0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
)
ENDED = Counter(
    "dispatch_ended", "DispatchStarts that ended, by the state and the cause of their outcome.", ("state", "cause")
)
EXPIRED = Counter("dispatch_expired", "TrainJobs of ended jobs that were deleted, as keepEnded of their backend says.")
PROBES = Counter("dispatch_probes", "Preflight probes of backends: proven, unproven, or undecided.", ("result",))
REFUSED_STATUSES = Counter(
    "dispatch_refused_statuses",
    "Writes of a status that the API server refused for good, such as one that is too large; they are tried again.",
    ("kind",),
)
LEADER = Gauge("dispatch_leader", "Whether this process works; 0 while it waits for its Lease.")
BUILD = Info("dispatch_build", "What runs.")
BUILD.info({"version": __version__, "python": sys.version.partition(" ")[0]})

# Looking a child up by its labels costs more than counting; there are as many children as there are series.
_requests, _request_seconds = cache(REQUESTS.labels), cache(REQUEST_SECONDS.labels)
_step_seconds = cache(STEP_SECONDS.labels)
_causes: set[str] = set()


@contextmanager
def request(verb: str, kind: str) -> Iterator[None]:
    """Count and time a request, which fails by raising what may have an HTTP status."""
    begun, code = time.perf_counter(), SUCCEEDED
    try:
        yield
    except BaseException as error:
        code = str(getattr(error, "status", None) or UNANSWERED)
        raise
    finally:
        _requests(verb, kind, code).inc()
        _request_seconds(verb, kind).observe(time.perf_counter() - begun)


def step(action: str, about: str, seconds: float) -> None:
    """Note how many seconds one act of a reconcile took."""
    _step_seconds(action, about).observe(seconds)


def start_changed(before: StartStatus, after: StartStatus, age: float | None) -> None:
    """Note what the write of a DispatchStart's status tells.

    Args:
        before: The status that stood.
        after: The status that stands.
        age: Seconds since the DispatchStart was created; None when that is not known.
    """
    if after.says_started and not before.has_started and age is not None:
        START_SECONDS.observe(max(age, 0.0))
    if after.outcome is not None and before.outcome is None:
        ENDED.labels(after.outcome.state, _bounded(after.outcome.cause or "")).inc()


def _bounded(cause: str) -> str:
    """Return a cause as a label's value; a pod's own reasons may be anything, and only so many are told apart."""
    if cause not in _causes and len(_causes) >= MOST_CAUSES:
        return OTHER
    _causes.add(cause)
    return cause
