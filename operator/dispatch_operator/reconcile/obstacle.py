"""What keeps a job from running that may run, in Kubernetes' own words (docs/contract.md, Why nothing runs).

It stands in one of two places: in the state of a pod that does not come up, or in an Event, about that pod, or about
what should have made pods and could not: the Job, the JobSet, the TrainJob. What is nearest to the container is told.
"""

import re
from collections.abc import Iterable, Iterator

from dispatch_operator.api import times
from dispatch_operator.api.enums import ErrorKind
from dispatch_operator.api.quoting import short_line
from dispatch_operator.reconcile.failure_cause import CAUSES, Cause
from dispatch_operator.records.core import ContainerStatus, Event, Pod

ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""What a kubelet says of a container that nothing is known to be wrong with."""
LATEST = 1_200.0
"""Seconds after which an Event says nothing any more: controllers try again, and tell again, within less."""
_RANDOM_NAME = re.compile(r'(pods? "[^"]+-)[a-z0-9]{5}"')
"""A Job makes up a new name for each try; what is told must not change with it."""
_COMBINED = "(combined from similar events): "
_NO_OBSTACLE = re.compile(r"Restart|FailJobSet|ReachedMaxRestarts|FailedJobs|BackOff$|Unhealthy$|Killing$")
"""Warnings of what has ended, or of what runs."""


def obstacle(pods: Iterable[Pod], of_children: Iterable[Event], of_owners: Iterable[Event], now: float) -> Cause | None:
    """Return what keeps a job from running; None when nothing tells.

    Args:
        pods: Those of the job that do not run.
        of_children: Events about one of these pods, or about a Job that has none.
        of_owners: Events about the TrainJob and its JobSet.
        now: Seconds since the epoch.
    """
    waiting = waiting_pod(pods)
    told = _of_pod(waiting) if waiting else None
    return told or _newest(of_children, now) or _newest(of_owners, now)


def stuck(pods: Iterable[Pod]) -> Cause | None:
    """Return what a pod that does not come up says of itself; None when there is none, or nothing is wrong with it."""
    waiting = waiting_pod(pods)
    return _of_pod(waiting) if waiting else None


def waiting_pod(pods: Iterable[Pod]) -> Pod | None:
    """Return the pod to look at among those that do not run: one that says why, if there is one."""
    pending = [pod for pod in pods if pod.status.phase in {"Pending", ""} and not pod.metadata.is_terminating]
    return min(pending, key=lambda pod: (_of_pod(pod) is None, pod.metadata.name), default=None)


def _of_pod(pod: Pod) -> Cause | None:
    name = pod.metadata.name
    for container in _containers(pod):
        waiting = container.state.waiting
        if waiting and waiting.reason not in ON_ITS_WAY:
            where = f"pod {name}, container {container.name}"
            return _cause(waiting.reason, f"{where}: {waiting.message or 'no message'}", name, container.name or None)
    scheduled = pod.status.condition("PodScheduled")
    if scheduled and scheduled.status == "False":
        return _cause(scheduled.reason or "Unschedulable", f"pod {name}: {scheduled.message or 'no message'}", name)
    return None


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.init_container_statuses
    yield from pod.status.container_statuses


def _newest(events: Iterable[Event], now: float) -> Cause | None:
    """Return what the newest of the Events that still count says."""
    counting = [event for event in events if _counts(event, now)]
    newest = max(counting, key=lambda event: (event.last_seen, event.metadata.name), default=None)
    if newest is None:
        return None
    said = _RANDOM_NAME.sub(r'\1…"', newest.message.removeprefix(_COMBINED))
    about = newest.involved_object
    return _cause(newest.reason, f"{about.kind} {about.name}: {said}", about.name if about.kind == "Pod" else None)


def _counts(event: Event, now: float) -> bool:
    seen = times.read(event.last_seen)
    is_recent = seen is None or now - seen < LATEST
    return event.type == "Warning" and is_recent and not _NO_OBSTACLE.search(event.reason)


def _cause(reason: str, message: str, pod: str | None = None, container: str | None = None) -> Cause:
    return Cause(reason, short_line(message), CAUSES.get(reason, ErrorKind.UNKNOWN), pod, container)
