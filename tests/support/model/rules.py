"""What must never be, and what must be in the end (docs/contract.md, Safety rules)."""

from collections.abc import Iterator

from support.model.objects import BACKED, COPIED, FIRST, QUEUES, SECOND, TRAINS, Obj, Objects
from support.model.server import GATED_BY, HELD, QUEUE
from support.records import at, condition, maker_uid

STARTS = (FIRST, SECOND)
GATE = "dispatch.phpboyscout.uk/start-gate"
OPENED = "dispatch.phpboyscout.uk/opened"
Pair = tuple[str, str]
"""The UIDs of a DispatchStart and of a TrainJob of it."""


def start_uid(obj: Obj) -> str | None:
    """Return the UID of the DispatchStart that an object was made for."""
    return maker_uid(obj.value)


def is_bare(obj: Obj) -> bool:
    """Tell whether a TrainJob of the operator's lost all marks as it was created; one of a human has no runtime."""
    return start_uid(obj) is None and at(obj.value, "spec", "runtimeRef") is not None


def is_started(start: Obj | None) -> bool:
    """Tell whether Started is recorded."""
    return start is not None and condition(start.value, "Started").get("status") == "True"


def phase(start: Obj) -> str:
    """Return the phase that is recorded."""
    return str(at(start.value, "status", "phase") or "")


def is_cancelled(start: Obj) -> bool:
    """Tell whether a cancellation is recorded: it is being stopped, or has ended so."""
    stops = phase(start) == "Stopping" and condition(start.value, "Succeeded").get("reason") == "Cancelled"
    return stops or phase(start) == "Cancelled"


def wants(start: Obj) -> str:
    """Return what the user wants of the gate."""
    return str(at(start.value, "spec", "gate"))


def is_open(job: Obj) -> bool:
    """Tell whether no gate of dispatch holds a TrainJob."""
    if at(job.value, "metadata", "labels", QUEUE):
        return GATE not in (at(job.value, "metadata", "annotations", GATED_BY) or "")
    return at(job.value, "spec", "suspend") is not True


def pairs_started(objects: Objects) -> frozenset[Pair]:
    """Return the TrainJobs that are recorded as started, each with its DispatchStart."""
    return frozenset(
        (start.uid, str(at(start.value, "status", "reference", "uid")))
        for start in (objects[slot] for slot in STARTS)
        if start and is_started(start)
    )


def pairs_opened(objects: Objects) -> frozenset[Pair]:
    """Return the TrainJob that is open, with its DispatchStart."""
    job = objects[TRAINS]
    return frozenset({(start_uid(job) or "", job.uid)}) if job and start_uid(job) and is_open(job) else frozenset()


def pairs_cancelled(objects: Objects) -> frozenset[Pair]:
    """Return the TrainJobs whose cancellation is recorded as it is wanted, each with its DispatchStart."""
    return frozenset(
        (start.uid, str(at(start.value, "status", "reference", "uid")))
        for start in (objects[slot] for slot in STARTS)
        if start and is_cancelled(start) and wants(start) == "Cancelled"
    )


def pairs_ended(objects: Objects) -> frozenset[Pair]:
    """Return the TrainJobs whose end is recorded in full, each with its DispatchStart."""
    return frozenset(
        (start.uid, str(at(start.value, "status", "reference", "uid")))
        for start in (objects[slot] for slot in STARTS)
        if start and at(start.value, "status", "outcome", "state") in {"Succeeded", "Failed"}
    )


def has_ended(job: Obj) -> bool:
    """Tell whether Trainer says that a job has ended."""
    return any(condition(job.value, kind).get("status") == "True" for kind in ("Complete", "Failed"))


def keep_ended(backend: Obj | None) -> str | None:
    """Return how long a backend keeps ended jobs; None for ever."""
    return at(backend.value, "spec", "keepEnded") if backend else None


def wrong_with_write(
    before: Objects,
    after: Objects,
    writer: str | None,
    started: frozenset[Pair],
    opened: frozenset[Pair],
    cancelled: frozenset[Pair],
    ended: frozenset[Pair],
) -> Iterator[str]:
    """Say which rules of safety a write of the operator has broken.

    Args:
        before: What stood.
        after: What stands.
        writer: The UID of the DispatchStart that the writing reconcile is of; None for the collector.
        started: What was ever recorded as started.
        opened: What was ever open.
        cancelled: What was ever recorded as cancelled.
        ended: Whose end was ever recorded.
    """
    for slot in STARTS:
        old, new = before[slot], after[slot]
        if old and new and old.uid == new.uid and old is not new:
            yield from _wrong_with_record(old, new, before[TRAINS], cancelled)
        job, lost = before[TRAINS], old and new and phase(old) != "Lost" and phase(new) == "Lost"
        if lost and new and job and job.uid == at(new.value, "status", "reference", "uid"):
            yield f"{new.uid} was recorded as Lost though its TrainJob stands"
        if lost and old and phase(old) in {"Succeeded", "Failed"}:
            yield f"{old.uid} was recorded as Lost after its end"
    teller = next((start for start in (before[slot] for slot in STARTS) if start and start.uid == writer), None)
    if before[BACKED] is not after[BACKED] and teller and phase(teller) not in {"Refused", "Stopping"}:
        yield "a backend was doubted before a refusal was recorded"
    yield from _wrong_with_workload(before, after)
    yield from _wrong_with_job(before, after, writer, started, opened, cancelled, ended)
    yield from _wrong_with_copy(before, after, writer)


def _wrong_with_record(old: Obj, new: Obj, job: Obj | None, cancelled: frozenset[Pair]) -> Iterator[str]:
    """Say which rules of safety a write of a status has broken."""
    if is_started(old) and phase(new) in {"Refused", "Stopping"} and not is_cancelled(new):
        yield "a refusal was recorded over a Start"
    if is_cancelled(new) and wants(old) != "Cancelled":
        yield f"{new.uid} was cancelled, and nobody wanted it"
    if is_cancelled(old) and old.uid in {start for start, _ in cancelled} and not is_cancelled(new):
        yield f"{new.uid} was cancelled, and goes on"
    refused = phase(old) == "Stopping" and str(condition(old.value, "Started").get("reason")).startswith("Err")
    if is_cancelled(new) and (refused or phase(old) in {"Succeeded", "Failed", "Lost", "Refused"}):
        yield f"{new.uid} was {phase(old)}, and a cancellation was recorded over it"
    if phase(new) == "Cancelled" and job and job.uid == at(new.value, "status", "reference", "uid"):
        yield f"{new.uid} was recorded as Cancelled though its TrainJob stands"


def _wrong_with_workload(before: Objects, after: Objects) -> Iterator[str]:
    old, new, start = before[QUEUES], after[QUEUES], before[FIRST]
    if old is None or old is new:
        return
    if new is None or old.uid != new.uid:
        yield f"Workload {old.uid} was deleted"
    elif is_active(new) and not is_active(old):
        mark = at(old.value, "metadata", "annotations", HELD)
        if mark is None:
            yield "what Kueue deactivated was released"
        elif start and int(mark) >= start.value["metadata"]["generation"]:
            yield "the newest wish to hold was undone"


def _wrong_with_job(
    before: Objects,
    after: Objects,
    writer: str | None,
    started: frozenset[Pair],
    opened: frozenset[Pair],
    cancelled: frozenset[Pair],
    ended: frozenset[Pair],
) -> Iterator[str]:
    old, new = before[TRAINS], after[TRAINS]
    if old is new:
        return
    if old and start_uid(old) != writer and not is_bare(old):
        yield f"TrainJob {old.uid} of another was changed"
    if new and start_uid(new) and is_open(new) and not (old and old.uid == new.uid and is_open(old)):
        pair = (start_uid(new) or "", new.uid)
        if pair not in started:
            yield f"the gate of {new.uid} was opened before it was recorded as started"
        if any(start == pair[0] and job != pair[1] for start, job in opened):
            yield "two TrainJobs of one DispatchStart were opened"
    gone = old is not None and (new is None or "deletionTimestamp" in new.value["metadata"])
    if old and gone and (start_uid(old) or "", old.uid) in started - cancelled:
        yield from _wrong_with_delete(old, before[BACKED], ended)


def _wrong_with_delete(job: Obj, backend: Obj | None, ended: frozenset[Pair]) -> Iterator[str]:
    if not has_ended(job):
        yield f"{job.uid}, which has started, was stopped"
    elif (start_uid(job) or "", job.uid) not in ended:
        yield f"{job.uid} was deleted before its end was recorded"
    elif backend and "keepEnded" not in backend.value["spec"]:
        yield f"{job.uid} was deleted though its backend has always kept it"


def _wrong_with_copy(before: Objects, after: Objects, writer: str | None) -> Iterator[str]:
    old, new = before[COPIED], after[COPIED]
    if old is None or old is new:
        return
    maker = next((start for start in (before[slot] for slot in STARTS) if start and start.uid == start_uid(old)), None)
    if start_uid(old) is None:
        yield f"copy {old.uid} of a human was changed"
    elif maker and is_cancelled(maker):
        return
    elif maker and is_started(maker) and at(maker.value, "status", "copy", "uid") == old.uid and new is None:
        yield f"copy {old.uid}, which its Start uses, was deleted"
    elif (
        start_uid(old) != writer
        and maker
        and phase(maker) not in {"Refused", "Stopping"}
        and not (new is None and is_started(maker))
    ):
        yield f"copy {old.uid} of a living Start was changed"


def wrong_in_the_end(objects: Objects, *, excused: bool) -> Iterator[str]:
    """Say what is not as promised once the faults have stopped and everybody has come to rest.

    Args:
        objects: What stands.
        excused: Whether anything happened that may refuse a Start for good.
    """
    job, copy = objects[TRAINS], objects[COPIED]
    starts = [start for start in (objects[slot] for slot in STARTS) if start]
    makers = {start.uid for start in starts}
    if sum(is_started(start) and phase(start) not in {"Lost", "Cancelled"} for start in starts) > 1:
        yield "two DispatchStarts of one submission have started"
    if copy and start_uid(copy) and not copy.value["metadata"].get("ownerReferences"):
        yield f"copy {copy.uid} has no owner"
    if job and is_bare(job):
        yield f"{job.uid} is left behind without marks"
    if job and start_uid(job) and start_uid(job) not in makers:
        yield f"{job.uid} is left of a DispatchStart that is gone"
    for start in starts:
        yield from _wrong_with_end_of(start, objects, excused=excused)


def _wrong_with_end_of(start: Obj, objects: Objects, *, excused: bool) -> Iterator[str]:
    job, copy, workload = objects[TRAINS], objects[COPIED], objects[QUEUES]
    keeps_no_longer = keep_ended(objects[BACKED]) is not None
    ours = [obj for obj in (job, copy) if obj and start_uid(obj) == start.uid]
    if phase(start) in {"Refused", "Lost", "Cancelled"}:
        if ours:
            yield f"{start.uid} is {phase(start)} and leaves {ours} behind"
        if not excused and phase(start) != "Cancelled":
            yield f"{start.uid} is {phase(start)} without a cause"
    elif wants(start) == "Cancelled" and phase(start) not in {"Succeeded", "Failed"}:
        yield f"{start.uid} is to be cancelled and never ends: {phase(start)}"
    elif condition(start.value, "Started").get("reason") == "ReferenceLost":
        if job is None or start_uid(job) != start.uid:
            yield f"{start.uid} waits for a TrainJob that is not there"
        elif is_open(job) and at(job.value, "metadata", "annotations", OPENED) == job.uid:
            yield f"{job.uid} is open, and is not followed"
    elif phase(start) in {"Succeeded", "Failed"} and (job is None or start_uid(job) != start.uid):
        return
    elif phase(start) in {"Succeeded", "Failed"} and keeps_no_longer and ours:
        yield f"{start.uid} has ended and leaves {ours} behind"
    elif phase(start) in {"Succeeded", "Failed"} and wants(start) == "Cancelled":
        return
    elif not is_started(start):
        yield f"{start.uid} never ends: {phase(start)}, {condition(start.value, 'Started').get('message')}"
    elif job is None or job.uid != at(start.value, "status", "reference", "uid"):
        yield f"{start.uid} is {phase(start)} without its TrainJob"
    else:
        yield from _wrong_with_started(start, job, copy, workload)


def _wrong_with_started(start: Obj, job: Obj, copy: Obj | None, workload: Obj | None) -> Iterator[str]:
    altered = condition(start.value, "RuntimeCopied").get("status") == "False"
    if altered:
        return
    if not copy or not any(owner["uid"] == job.uid for owner in copy.value["metadata"].get("ownerReferences", ())):
        if not is_open(job):
            yield f"{job.uid} has no copy that it owns, and nobody says so"
    else:
        yield from _wrong_with_gate(start, job, workload)


def _wrong_with_gate(start: Obj, job: Obj, workload: Obj | None) -> Iterator[str]:
    may_run = is_open(job) and (workload is None or is_active(workload))
    if at(start.value, "spec", "gate") == "Open":
        deactivated = workload is not None and not is_active(workload) and not is_held(workload)
        if not may_run and not deactivated:
            yield f"the gate of {job.uid} is not where it is wanted"
    elif may_run:
        yield f"the gate of {job.uid} is not where it is wanted"
    elif workload and is_open(job) and phase(start) != "Held":
        yield f"{start.uid} is held and says {phase(start)}"


def is_active(workload: Obj) -> bool:
    """Tell whether Kueue may admit a Workload."""
    return at(workload.value, "spec", "active") is not False


def is_held(workload: Obj) -> bool:
    """Tell whether a Workload bears the operator's mark."""
    return at(workload.value, "metadata", "annotations", HELD) is not None
