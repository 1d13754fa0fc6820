"""Why a job ended as it did: the TrainJob's own reason, refined where its pods tell more (contract section 11)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.reconcile.observation import at

Object = Mapping[str, Any]

PROLOGUE_REFUSED = 125
IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
MESSAGE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason, a CamelCase word, with its exit code where a process ended."""

    reason: str
    message: str
    exit_code: int | None = None


def cause_of_failure(failed: Object, pods: Iterable[Object]) -> Cause:
    """Return why a TrainJob failed.

    Args:
        failed: The TrainJob's Failed condition.
        pods: The job's pods, as they were left.
    """
    own = Cause(str(failed.get("reason") or "Failed"), _short(failed.get("message")))
    if own.reason == "DeadlineExceeded":
        stuck = next(_stuck(pods), None)
        return Cause(own.reason, _short(f"{own.message}; {stuck.reason}: {stuck.message}")) if stuck else own
    found = sorted(_causes(pods), key=lambda pair: pair[0])
    return found[0][1] if found else next(_stuck(pods), own)


def _causes(pods: Iterable[Object]) -> Iterator[tuple[str, Cause]]:
    """Yield what ended each failed pod, with the time that it ended at: the first one took the others with it."""
    for pod in pods:
        name = at(pod, "metadata", "name")
        if at(pod, "status", "reason") == "Evicted":
            yield "", Cause("Evicted", _short(f"pod {name}: {at(pod, 'status', 'message')}"))
        for container in _containers(pod):
            ended = at(container, "state", "terminated") or at(container, "lastState", "terminated")
            code = at(ended, "exitCode")
            if code:
                yield str(at(ended, "finishedAt") or "~"), _cause_of_exit(f"pod {name}", ended, code)


def _cause_of_exit(where: str, ended: Object, code: int) -> Cause:
    said = _short(ended.get("message"))
    text = f"{where}: exit code {code}" + (f": {said}" if said else "")
    if ended.get("reason") == "OOMKilled":
        return Cause("OOMKilled", f"{where}: a container used more memory than its limit", code)
    if code == PROLOGUE_REFUSED and "working directory" in said:
        return Cause("WorkDirMissing", text, code)
    return Cause("NonZeroExitCode", text, code)


def _stuck(pods: Iterable[Object]) -> Iterator[Cause]:
    for pod in pods:
        for container in _containers(pod):
            waiting = at(container, "state", "waiting") or {}
            if waiting.get("reason") in IMAGE_REASONS:
                name = at(pod, "metadata", "name")
                yield Cause(str(waiting["reason"]), _short(f"pod {name}: {waiting.get('message') or 'no message'}"))


def _containers(pod: Object) -> list[Object]:
    status = at(pod, "status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _short(text: object) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"
