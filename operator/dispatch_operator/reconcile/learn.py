"""What a request's answer, or its failure, adds to what a reconcile knows. Pure, as `decide` is."""

from dataclasses import replace

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import (
    Action,
    AdoptCopy,
    AwaitWorkload,
    CreateCopy,
    CreateTrainJob,
    DeleteCopy,
    DeleteTrainJob,
    FindWorkload,
    MarkUnproven,
    OwnCopy,
    PatchStatus,
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
    SetActive,
    SetGates,
    SetSuspend,
)
from dispatch_operator.reconcile.observation import Object, Observation, Observed, Origin
from dispatch_operator.reconcile.sanitized import sanitized

UNKNOWN = Observation()
Answer = Object | tuple[Object, ...] | None

_PRECONDITIONED = (OwnCopy, AdoptCopy, DeleteCopy, DeleteTrainJob, MarkUnproven, SetSuspend, SetGates, SetActive)


def learn(observed: Observed, action: Action, answer: Answer | ApiError, now: float) -> Observed:
    """Return the facts after an act.

    Args:
        observed: The facts before.
        action: What was done.
        answer: The object that was read or returned (None when it is absent or deleted), a list's items, or a failure.
        now: When the act was begun, in seconds since the epoch.
    """
    if isinstance(action, CreateTrainJob) and observed.first_create is None:
        observed = replace(observed, first_create=now)
    return _failed(observed, action, answer) if isinstance(answer, ApiError) else _succeeded(observed, action, answer)


def _succeeded(observed: Observed, action: Action, answer: Answer) -> Observed:
    failures = {kind: error for kind, error in observed.failures.items() if kind is not type(action)}
    match action:
        case ReadPods():
            return replace(observed, pods=_items(answer), failures=failures)
        case ReadWarnings():
            return replace(observed, warnings=_items(answer), failures=failures)
        case DeleteTrainJob():
            # Accepted; whether it is gone, only a read can tell.
            return replace(observed, train_job=UNKNOWN, failures=failures)
        case DeleteCopy():
            failures.pop(CreateCopy, None)
            return replace(observed, copy=UNKNOWN, failures=failures)
    obj = answer if not isinstance(answer, tuple) else None
    read, wrote = Observation(obj, Origin.READ), Observation(obj, Origin.WRITTEN)
    match action:
        case PatchStatus():
            return replace(observed, start=sanitized(obj) if obj else observed.start, failures=failures)
        case ReadBackend():
            return replace(observed, backend=read, failures=failures)
        case MarkUnproven():
            return replace(observed, backend=wrote, failures=failures)
        case ReadRuntime():
            return replace(observed, runtime=read, failures=failures)
        case ReadOther():
            return replace(observed, other=read, failures=failures)
        case ReadCopy():
            return replace(observed, copy=read, failures=failures)
        case ReadTrainJob():
            return replace(observed, train_job=read, failures=failures)
        case CreateCopy() | AdoptCopy() | OwnCopy():
            return replace(observed, copy=wrote, failures=failures)
        case CreateTrainJob() | SetSuspend() | SetGates():
            return replace(observed, train_job=wrote, failures=failures)
        case AwaitWorkload():
            return replace(observed, workload=Observation(obj, Origin.CACHED), awaited=True, failures=failures)
        case ReadWorkload() | FindWorkload():
            return replace(observed, workload=read, failures=failures)
        case SetActive():
            return replace(observed, workload=wrote, failures=failures)
        case ReadLocalQueue():
            return replace(observed, local_queue=read, failures=failures)
        case ReadClusterQueue():
            return replace(observed, cluster_queue=read, failures=failures)
        case ReadCheck():
            return replace(observed, check=read, failures=failures)
    raise TypeError(f"unknown act {action!r}")


def _failed(observed: Observed, action: Action, error: ApiError) -> Observed:
    if isinstance(action, _PRECONDITIONED) and (error.conflict or error.not_found):
        # A precondition that does not hold is no failure: what it was about is reconciled again.
        return _forget(observed, action)
    observed = replace(observed, failures={**observed.failures, type(action): error})
    return _forget(observed, action) if isinstance(action, CreateCopy | CreateTrainJob | OwnCopy) else observed


def _forget(observed: Observed, action: Action) -> Observed:
    """Forget the object that an act was about: the next verdict on it needs a live read after the act."""
    match action:
        case CreateTrainJob() | DeleteTrainJob() | SetSuspend() | SetGates():
            return replace(observed, train_job=UNKNOWN, other=UNKNOWN)
        case SetActive():
            return replace(observed, workload=UNKNOWN)
        case MarkUnproven():
            return replace(observed, backend=UNKNOWN)
        case _:
            return replace(observed, copy=UNKNOWN, other=UNKNOWN)


def _items(answer: Answer) -> tuple[Object, ...]:
    return answer if isinstance(answer, tuple) else ()
