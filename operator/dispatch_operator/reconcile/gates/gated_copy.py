"""Whether the copy of a gated job still is what was submitted (docs/contract.md, The copy of a gated job)."""

from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Action, Get, get_copy, get_runtime
from dispatch_operator.reconcile.observation import Observed

CAN_NOT_RUN = "the job can't run any more"


def check_copy(observed: Observed, *, opening: bool) -> Action | str | None:
    """See that the copy still is what was submitted: a live read before opening, else only when a watch says it is not.

    Returns:
        What must be read first, what is wrong with the copy, or None when nothing is.
    """
    altered = _altered(observed)
    if opening or altered:
        match observed.due(get_copy(observed.start)):
            case ApiError() as error:
                return f"the copy can't be read: {error}"
            case Get() as due:
                return due
    return _unless_restored(observed, altered) if altered else None


def _unless_restored(observed: Observed, altered: str) -> Action | str | None:
    """The copy was edited; perhaps it was edited back. Only the source can tell, if it is still the one copied."""
    status, copy = observed.start.status, observed.copy.obj
    source, copied = status.source, status.copied
    if copy is None or copied is None or copy.metadata.uid != copied.uid:
        return altered
    if source is None or source.kind not in set(RuntimeKind):
        return altered
    match observed.due(get_runtime(source.kind, source.name)):
        case ApiError() as error:
            return f"the source can't be read: {error}"
        case Get() as due:
            return due
    runtime = observed.runtime.obj
    if runtime is None or not is_source_unchanged(observed):
        return altered
    return None if runtime.spec == copy.spec else altered


def is_source_unchanged(observed: Observed) -> bool:
    """Tell whether the source, as it was read, still is what was copied: only then can a copy be restored."""
    source, runtime = observed.start.status.source, observed.runtime.obj
    wanted = source and (source.uid, source.generation)
    return runtime is not None and (runtime.metadata.uid, runtime.metadata.generation) == wanted


def _altered(observed: Observed) -> str | None:
    """Say what is wrong with the copy as it was last seen: its generation grows when somebody edits its spec."""
    held, copy = observed.start.status.copied, observed.copy.obj
    name = f"the copy, TrainingRuntime {held.name if held else None},"
    if copy is None:
        return f"{name} is gone; {_way_out(observed)}"
    if held is None or copy.metadata.uid != held.uid:
        return f"{name} was replaced by another; {_way_out(observed)}"
    # The deletion of an object that a finalizer holds counts as one more generation.
    if copy.metadata.generation > held.generation + copy.metadata.is_terminating:
        otherwise = "or delete this DispatchStart and submit under another number"
        return f"{name} was changed; restore its spec, {otherwise}; the gate is not opened"
    return None


def _way_out(observed: Observed) -> str:
    """Say what to do: Trainer checks every update of a TrainJob against the runtime, and takes no other for it."""
    meta = observed.start.metadata
    delete = f"kubectl delete dispatchstart {meta.name} --namespace {meta.namespace}"
    return f"the gate is not opened, and {CAN_NOT_RUN}: {delete}, and submit under another number"
