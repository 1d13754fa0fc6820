"""Why a job failed: the TrainJob's own reason, refined where its pods tell more (docs/contract.md, Outcome)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dispatch_operator.api.quoting import escaped
from dispatch_operator.records.base import KubeCondition
from dispatch_operator.records.core import ContainerStatus, Pod, Terminated

PROLOGUE_REFUSED = 125
IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
LINE_LIMIT = 1024
"""Characters of a foreign message, at most."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason, a CamelCase word, with its exit code where a process ended."""

    reason: str
    message: str
    exit_code: int | None = None


def cause_of_failure(failed: KubeCondition | None, pods: Iterable[Pod]) -> Cause:
    """Return why a TrainJob failed.

    Args:
        failed: The TrainJob's Failed condition.
        pods: The job's pods, as they were left.
    """
    own = Cause((failed and failed.reason) or "Failed", one_line(failed.message if failed else ""))
    if own.reason == "DeadlineExceeded":
        stuck = next(_stuck(pods), None)
        return Cause(own.reason, one_line(f"{own.message}; {stuck.reason}: {stuck.message}")) if stuck else own
    found = sorted(_causes(pods), key=lambda pair: pair[0])
    return found[0][1] if found else next(_stuck(pods), own)


def _causes(pods: Iterable[Pod]) -> Iterator[tuple[str, Cause]]:
    """Yield what ended each failed pod, with the time that it ended at: the first one took the others with it."""
    for pod in pods:
        name = pod.metadata.name
        if pod.status.reason == "Evicted":
            yield "", Cause("Evicted", one_line(f"pod {name}: {pod.status.message}"))
        for container in _containers(pod):
            ended = container.state.terminated or container.last_state.terminated
            if ended and ended.exit_code:
                yield ended.finished_at or "~", _cause_of_exit(f"pod {name}", ended)


def _cause_of_exit(where: str, ended: Terminated) -> Cause:
    said, code = one_line(ended.message), ended.exit_code
    text = f"{where}: exit code {code}" + (f": {said}" if said else "")
    if ended.reason == "OOMKilled":
        return Cause("OOMKilled", f"{where}: a container used more memory than its limit", code)
    if code == PROLOGUE_REFUSED and "working directory" in said:
        return Cause("WorkDirMissing", text, code)
    return Cause("NonZeroExitCode", text, code)


def _stuck(pods: Iterable[Pod]) -> Iterator[Cause]:
    for pod in pods:
        for container in _containers(pod):
            waiting = container.state.waiting
            if waiting and waiting.reason in IMAGE_REASONS:
                yield Cause(waiting.reason, one_line(f"pod {pod.metadata.name}: {waiting.message or 'no message'}"))


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return pod.status.init_container_statuses + pod.status.container_statuses


def one_line(text: str) -> str:
    """Return a foreign message on one line, its control characters escaped, cut where it is too long."""
    line = escaped(" ".join(text.split()))
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"
