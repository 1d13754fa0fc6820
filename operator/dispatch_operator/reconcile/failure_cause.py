"""Why a job failed: the TrainJob's own reason, refined where its pods tell more (docs/contract.md, Outcome).

One failure takes others with it: a peer's connection breaks, a container is killed because its pod goes, pods are
deleted because their job has failed. What came first is told; of what ended in the same second, the finest that
Kubernetes tells, what is the least likely to have been dragged down.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from dispatch_operator.api.enums import ErrorKind
from dispatch_operator.api.group import NODE
from dispatch_operator.api.quoting import short_line
from dispatch_operator.records.base import KubeCondition
from dispatch_operator.records.core import ContainerStatus, Event, Pod, Terminated

PROLOGUE_REFUSED = 125
KILLED_FROM_OUTSIDE = (137, 143)
"""Exit codes of SIGKILL and SIGTERM: nothing says who sent them, and why."""

CAUSES: Mapping[str, ErrorKind] = {
    # Of a process.
    "NonZeroExitCode": ErrorKind.USER,
    "OOMKilled": ErrorKind.USER,
    "WorkDirMissing": ErrorKind.USER,
    "StartError": ErrorKind.USER,
    "ContainerCannotRun": ErrorKind.USER,
    "InitContainerFailed": ErrorKind.UNKNOWN,
    "OtherContainerFailed": ErrorKind.UNKNOWN,
    # Of a job that never came to run, or not in time.
    "DeadlineExceeded": ErrorKind.USER,
    "InvalidImageName": ErrorKind.USER,
    "ErrImageNeverPull": ErrorKind.USER,
    "CreateContainerConfigError": ErrorKind.USER,
    "CreateContainerError": ErrorKind.USER,
    "ErrImagePull": ErrorKind.UNKNOWN,
    "ImagePullBackOff": ErrorKind.UNKNOWN,
    # Of the node and the cluster, in Kubernetes' own words but for the first two.
    "NodeShutdown": ErrorKind.SYSTEM,
    "PodDeleted": ErrorKind.SYSTEM,
    "Evicted": ErrorKind.SYSTEM,
    "NodeLost": ErrorKind.SYSTEM,
    "ContainerStatusUnknown": ErrorKind.SYSTEM,
    "PreemptionByScheduler": ErrorKind.SYSTEM,
    "DeletionByTaintManager": ErrorKind.SYSTEM,
    "EvictionByEvictionAPI": ErrorKind.SYSTEM,
    "DeletionByPodGC": ErrorKind.SYSTEM,
    "TerminationByKubelet": ErrorKind.SYSTEM,
    "UnexpectedAdmissionError": ErrorKind.SYSTEM,
    "OutOfcpu": ErrorKind.SYSTEM,
    "OutOfmemory": ErrorKind.SYSTEM,
    "OutOfpods": ErrorKind.SYSTEM,
    "NodeAffinity": ErrorKind.SYSTEM,
}
"""Each cause that is known, and whose fault it is. Any other reason that a pod gives for itself is the system's."""

_SHUTDOWN = ("Terminated", "NodeShutdown", "Shutdown")
"""What kubelets of different versions call that their node is shut down."""
DID_NOT_RUN = "; it did not run: "
"""What stands before the obstacle of a job that its time limit ended before it ran."""
_OF_FAILED_JOBS = ("FailedJobs", "ReachedMaxRestarts", "FailJobSetFailurePolicyAction")
"""Reasons by which JobSet says that a Job failed; a Job fails when one of its pods failed, or is gone."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason, a CamelCase word, with whose fault it is, and where it was found."""

    reason: str
    message: str
    kind: ErrorKind = ErrorKind.UNKNOWN
    pod: str | None = None
    container: str | None = None
    exit_code: int | None = None


class _Weight(IntEnum):
    """Of what ended in the same second, what is told: the first of these."""

    SYSTEM = 0
    OUT_OF_MEMORY = 1
    TRAINER = 2
    OTHER_CONTAINER = 3
    KILLED = 4
    """By a signal that says nothing: mostly because another had ended."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What ended a pod, and when; what has no time came first."""

    at: str
    weight: _Weight
    cause: Cause

    @property
    def order(self) -> tuple[str, _Weight, str]:
        """What is told first."""
        return self.at, self.weight, self.cause.pod or ""


def cause_of_failure(failed: KubeCondition | None, pods: Iterable[Pod], stuck: Cause | None = None) -> Cause:
    """Return why a TrainJob failed.

    Args:
        failed: The TrainJob's Failed condition.
        pods: The job's pods, as they were left.
        stuck: What kept the job from running until then, if anything did.
    """
    reason = (failed and failed.reason) or "Failed"
    own = Cause(reason, short_line(failed.message if failed else ""), CAUSES.get(reason, ErrorKind.UNKNOWN))
    pods = _of_last_attempt(pods)
    if own.reason == "DeadlineExceeded":
        if stuck is None:
            return own
        told = short_line(f"{own.message}{DID_NOT_RUN}{stuck.reason}: {stuck.message}")
        return Cause(own.reason, told, own.kind, stuck.pod, stuck.container)
    if ended := sorted(_ends(pods), key=lambda end: end.order):
        return ended[0].cause
    if stuck:
        return stuck
    return Cause("PodDeleted", _deleted(own), CAUSES["PodDeleted"]) if own.reason in _OF_FAILED_JOBS else own


def cause_of_restart(number: int, pods: Iterable[Pod], warnings: Iterable[Event]) -> Cause:
    """Return the failure for which a JobSet restarted its job.

    Args:
        number: Of the restart, counted from 1: the attempt before it is what failed.
        pods: The job's pods; those of the attempt before are being deleted, or are gone.
        warnings: Events about the JobSet.
    """
    failed = [pod for pod in pods if _attempt(pod) == number - 1]
    if ended := sorted(_ends(failed), key=lambda end: end.order):
        return ended[0].cause
    told = [event for event in warnings if event.reason.startswith("Restart")]
    newest = max(told, key=lambda event: event.last_seen, default=None)
    if newest:
        return Cause("Unknown", short_line(f"the pods that failed are gone; {newest.reason}: {newest.message}"))
    return Cause("Unknown", "the pods that failed are gone")


def _deleted(own: Cause) -> str:
    return f"no pod shows a failure; one was deleted, with its node or by somebody: {own.message}"


def _of_last_attempt(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods of the JobSet's last attempt: those of others failed before, and were replaced."""
    held = list(pods)
    last = max((_attempt(pod) for pod in held), default=0)
    return [pod for pod in held if _attempt(pod) == last]


def _attempt(pod: Pod) -> int:
    said = pod.metadata.labels.restart_attempt or ""
    return int(said) if said.isdecimal() else 0


def _ends(pods: Iterable[Pod]) -> Iterator[_Ended]:
    for pod in pods:
        system, process = _of_system(pod), _of_process(pod)
        if system and process and process.weight is not _Weight.KILLED and process.at < system.at:
            # The process had ended by itself before the node or the cluster took the pod.
            yield process
        elif end := system or process:
            yield end


def _of_system(pod: Pod) -> _Ended | None:
    """Return what took a pod from outside: its node, or the cluster."""
    status, name = pod.status, pod.metadata.name
    disrupted = status.condition("DisruptionTarget")
    disrupted = disrupted if disrupted and disrupted.status == "True" else None
    if status.reason and status.reason != "DeadlineExceeded":
        reason = "NodeShutdown" if status.reason in _SHUTDOWN else status.reason
        said = status.message or (disrupted.message if disrupted else "")
    elif disrupted:
        reason, said = disrupted.reason, disrupted.message
    else:
        return None
    cause = Cause(reason, _told(f"pod {name}", said or reason), ErrorKind.SYSTEM, name)
    at = disrupted.last_transition_time if disrupted else None
    return _Ended(at or "", _Weight.SYSTEM, cause)


def _of_process(pod: Pod) -> _Ended | None:
    """Return what ended in a pod by itself: the trainer's process speaks first, an init container last."""
    status = pod.status
    containers = sorted(status.container_statuses, key=lambda one: one.name != NODE)
    for container in containers:
        if ended := _failed(container):
            return _end_of_container(pod, container, ended, init=False)
    for container in status.init_container_statuses:
        if ended := _failed(container):
            return _end_of_container(pod, container, ended, init=True)
    return None


def _failed(container: ContainerStatus) -> Terminated | None:
    ended = container.state.terminated or container.last_state.terminated
    return ended if ended and ended.exit_code else None


def _end_of_container(pod: Pod, container: ContainerStatus, ended: Terminated, *, init: bool) -> _Ended:
    said, code = short_line(ended.message), ended.exit_code
    is_trainer = not init and container.name == NODE and pod.metadata.labels.replicated_job in {NODE, None}
    weight = _Weight.TRAINER if is_trainer else _Weight.OTHER_CONTAINER
    kind: ErrorKind | None = None
    if ended.reason == "OOMKilled":
        reason, said, weight = "OOMKilled", "it used more memory than its limit", _Weight.OUT_OF_MEMORY
    elif ended.reason == "ContainerStatusUnknown":
        reason, weight = ended.reason, _Weight.SYSTEM
    elif init:
        reason = "InitContainerFailed"
    elif not is_trainer:
        reason = "OtherContainerFailed"
    elif code == PROLOGUE_REFUSED and "working directory" in said:
        reason = "WorkDirMissing"
    elif ended.reason in {"StartError", "ContainerCannotRun"}:
        reason = ended.reason
    else:
        reason = "NonZeroExitCode"
        if code in KILLED_FROM_OUTSIDE:
            kind, weight = ErrorKind.UNKNOWN, _Weight.KILLED
    name = pod.metadata.name
    what = f"pod {name}, {'init container' if init else 'container'} {container.name}: exit code {code}"
    cause = Cause(reason, _told(what, said), kind or CAUSES[reason], name, container.name or None, code)
    return _Ended(ended.finished_at or "~", weight, cause)


def _told(where: str, said: str) -> str:
    return short_line(f"{where}: {said}") if said else where
