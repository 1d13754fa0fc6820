"""What a request's answer, or its failure, adds to what a reconcile knows. Pure, as `decide` is."""

from dataclasses import replace

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import (
    Act,
    AdoptCopy,
    AwaitWorkload,
    CreateCopy,
    CreateTrainJob,
    DeleteCopy,
    DeleteTrainJob,
    DoubtBackend,
    FindWorkload,
    OwnCopy,
    ReadBackend,
    ReadCheck,
    ReadClusterQueue,
    ReadCopy,
    ReadLocalQueue,
    ReadOther,
    ReadPods,
    ReadRuntime,
    ReadTrainJob,
    ReadWarnings,
    ReadWorkload,
    Record,
    SetActive,
    SetGates,
    SetSuspend,
)
from dispatch_operator.reconcile.observation import Object, Seen, Sight, Source
from dispatch_operator.reconcile.sanitized import sane

UNKNOWN = Sight()
Answer = Object | tuple[Object, ...] | None

_PRECONDITIONED = (OwnCopy, AdoptCopy, DeleteCopy, DeleteTrainJob, DoubtBackend, SetSuspend, SetGates, SetActive)


def learn(seen: Seen, act: Act, answer: Answer | ApiError, now: float) -> Seen:
    """Return the facts after an act.

    Args:
        seen: The facts before.
        act: What was done.
        answer: The object that was read or returned (None when it is absent or deleted), a list's items, or a failure.
        now: When the act was begun, in seconds since the epoch.
    """
    if isinstance(act, CreateTrainJob) and seen.first_create is None:
        seen = replace(seen, first_create=now)
    return _failed(seen, act, answer) if isinstance(answer, ApiError) else _succeeded(seen, act, answer)


def _succeeded(seen: Seen, act: Act, answer: Answer) -> Seen:
    failures = {kind: error for kind, error in seen.failures.items() if kind is not type(act)}
    match act:
        case ReadPods():
            return replace(seen, pods=_items(answer), failures=failures)
        case ReadWarnings():
            return replace(seen, warnings=_items(answer), failures=failures)
        case DeleteTrainJob():
            # Accepted; whether it is gone, only a read can tell.
            return replace(seen, train_job=UNKNOWN, failures=failures)
        case DeleteCopy():
            failures.pop(CreateCopy, None)
            return replace(seen, copy=UNKNOWN, failures=failures)
    obj = answer if not isinstance(answer, tuple) else None
    read, wrote = Sight(obj, Source.READ), Sight(obj, Source.WRITE)
    match act:
        case Record():
            return replace(seen, start=sane(obj) if obj else seen.start, failures=failures)
        case ReadBackend():
            return replace(seen, backend=read, failures=failures)
        case DoubtBackend():
            return replace(seen, backend=wrote, failures=failures)
        case ReadRuntime():
            return replace(seen, runtime=read, failures=failures)
        case ReadOther():
            return replace(seen, other=read, failures=failures)
        case ReadCopy():
            return replace(seen, copy=read, failures=failures)
        case ReadTrainJob():
            return replace(seen, train_job=read, failures=failures)
        case CreateCopy() | AdoptCopy() | OwnCopy():
            return replace(seen, copy=wrote, failures=failures)
        case CreateTrainJob() | SetSuspend() | SetGates():
            return replace(seen, train_job=wrote, failures=failures)
        case AwaitWorkload():
            return replace(seen, workload=Sight(obj, Source.CACHE), awaited=True, failures=failures)
        case ReadWorkload() | FindWorkload():
            return replace(seen, workload=read, failures=failures)
        case SetActive():
            return replace(seen, workload=wrote, failures=failures)
        case ReadLocalQueue():
            return replace(seen, local_queue=read, failures=failures)
        case ReadClusterQueue():
            return replace(seen, cluster_queue=read, failures=failures)
        case ReadCheck():
            return replace(seen, check=read, failures=failures)
    raise TypeError(f"unknown act {act!r}")


def _failed(seen: Seen, act: Act, error: ApiError) -> Seen:
    if isinstance(act, _PRECONDITIONED) and (error.conflict or error.not_found):
        # A precondition that does not hold is no failure: what it was about is reconciled again.
        return _forget(seen, act)
    seen = replace(seen, failures={**seen.failures, type(act): error})
    return _forget(seen, act) if isinstance(act, CreateCopy | CreateTrainJob | OwnCopy) else seen


def _forget(seen: Seen, act: Act) -> Seen:
    """Forget the object that an act was about: the next verdict on it needs a live read after the act."""
    match act:
        case CreateTrainJob() | DeleteTrainJob() | SetSuspend() | SetGates():
            return replace(seen, train_job=UNKNOWN, other=UNKNOWN)
        case SetActive():
            return replace(seen, workload=UNKNOWN)
        case DoubtBackend():
            return replace(seen, backend=UNKNOWN)
        case _:
            return replace(seen, copy=UNKNOWN, other=UNKNOWN)


def _items(answer: Answer) -> tuple[Object, ...]:
    return answer if isinstance(answer, tuple) else ()
