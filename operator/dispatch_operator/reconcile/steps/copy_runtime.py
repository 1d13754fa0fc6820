"""Step 5: copy the runtime, so that later edits can't change a submitted job (docs/contract.md, Copy the runtime)."""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.group import LABEL_FRAMEWORK, LABEL_PROBE
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.reconcile.actions import (
    Action,
    Create,
    Delete,
    Get,
    Patch,
    Slot,
    adopt_copy,
    create_copy,
    delete_copy,
    get_copy,
    get_train_job,
)
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.ownership import Ownership, check_ownership, owned_by_train_job, ownership_of_copy
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, read_first, transient
from dispatch_operator.reconcile.steps import quota
from dispatch_operator.records.trainer import TrainingRuntime
from dispatch_operator.render import render_copy
from dispatch_operator.render.differences import differing_paths

STEP = Condition.RUNTIME_COPIED


def copy_runtime(observed: Observed, now: float) -> Action | Verdict | None:
    """Create the copy, or take over a leftover that is equal; never update one."""
    copy, source = observed.copy.obj, observed.runtime.obj or TrainingRuntime()
    if copy is None:
        error = observed.failure(Create, Slot.COPY)
        return _after_failed_create(observed, error, now) if error else _create(observed, source)
    if unread := read_first(observed, get_copy(observed.start), STEP):
        return unread
    if copy.metadata.owner_references:
        return _judge_owned(observed, copy)
    return _judge_unowned(observed, copy, source)


def _create(observed: Observed, source: TrainingRuntime) -> Action | Verdict:
    # A TrainJob that stands there before its copy decides: nothing is created beside another's.
    verdict = check_ownership(observed, STEP) if observed.train_job.obj is not None else None
    return verdict or create_copy(render_copy(observed.start, source))


def _after_failed_create(observed: Observed, error: ApiError, now: float) -> Action | Verdict:
    if error.effect is Effect.NOTHING_HAPPENED:
        return transient(STEP, error)
    # Something may hold the name, and a create that was carried out can come back as a refusal: a read tells.
    if unread := read_first(observed, get_copy(observed.start), STEP):
        return unread
    if error.effect is Effect.DEFINITE and not error.already_exists:
        return quota.unless_final(observed, STEP, error, now) or Refusal(STEP, ErrorClass.REJECTED, str(error))
    # What is absent now came and went, or never came; no TrainJob is created on such ground.
    return transient(STEP, error)


def _judge_owned(observed: Observed, copy: TrainingRuntime) -> Action | Verdict | None:
    name = copy.metadata.name
    if not owned_by_train_job(copy):
        owner = copy.metadata.owner_references[0]
        message = f"TrainingRuntime {name} exists and is owned by {owner.kind} {owner.name}"
        return Refusal(STEP, ErrorClass.REJECTED, message)
    # A TrainJob of our name exists, or existed until just now.
    if verdict := read_first(observed, get_train_job(observed.start), STEP) or check_ownership(observed, STEP):
        return verdict
    return Waiting(STEP, "CopyLeaving", f"waiting for TrainingRuntime {name}, whose TrainJob is gone, to be collected")


def _judge_unowned(observed: Observed, copy: TrainingRuntime, source: TrainingRuntime) -> Action | Verdict | None:
    name, equal = copy.metadata.name, copy.spec == source.spec
    if copy.metadata.is_terminating:
        return Waiting(STEP, "CopyLeaving", f"waiting for TrainingRuntime {name} to be deleted")
    if observed.copy.origin is Origin.WRITTEN:
        changed = _changed(observed, copy, source)
        return _stored_changed(copy, changed) if changed else None
    match ownership_of_copy(observed, copy):
        case Get() as get:
            return read_first(observed, get, STEP)
        case Ownership.FOREIGN:
            return Refusal(STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} exists and is not of this DispatchStart")
        case _:
            return _bring_up_to_date(observed, copy, source) if equal else _delete(observed, copy)


def _changed(observed: Observed, copy: TrainingRuntime, source: TrainingRuntime) -> list[str]:
    """Return where a copy that was just written is not as it was meant: its spec, and what says whose it is."""
    changed = list(differing_paths(source.spec, copy.spec, "spec"))
    if (copy.metadata.uid, copy.metadata.resource_version) in observed.created:
        meta, wanted = copy.metadata, render_copy(observed.start, source)["metadata"]
        probe = {key: value for key, value in wanted["labels"].items() if key == LABEL_PROBE}
        changed += [f"metadata.labels[{key}]" for key in meta.labels.differing(probe)]
        changed += [f"metadata.annotations[{key}]" for key in meta.annotations.differing(wanted["annotations"])]
    return changed


def _stored_changed(copy: TrainingRuntime, changed: list[str]) -> Refusal:
    paths = ", ".join(changed)
    message = f"TrainingRuntime {copy.metadata.name} was stored changed, at {paths}; see its webhooks"
    return Refusal(STEP, ErrorClass.REJECTED, message)


def _delete(observed: Observed, copy: TrainingRuntime) -> Action | Verdict:
    error = observed.failure(Delete, Slot.COPY)
    return _after_failed_write(error) if error else delete_copy(copy)


def _after_failed_write(error: ApiError) -> Refusal:
    if error.effect is Effect.DEFINITE:
        return Refusal(STEP, ErrorClass.REJECTED, str(error))
    return transient(STEP, error)


def _bring_up_to_date(observed: Observed, copy: TrainingRuntime, source: TrainingRuntime) -> Action | Verdict | None:
    wanted = render_copy(observed.start, source)["metadata"]
    annotations, framework = wanted["annotations"], wanted["labels"][LABEL_FRAMEWORK]
    if not copy.metadata.annotations.differing(annotations) and copy.metadata.labels.framework == framework:
        return None
    error = observed.failure(Patch, Slot.COPY)
    return _after_failed_write(error) if error else adopt_copy(copy, annotations, {LABEL_FRAMEWORK: framework})
