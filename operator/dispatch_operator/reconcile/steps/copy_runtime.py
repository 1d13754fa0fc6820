"""Step 5: copy the runtime, so that later edits can't change a submitted job."""

from collections.abc import Mapping

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.group import LABEL_FRAMEWORK
from dispatch_operator.kube.errors import ApiError, Outcome
from dispatch_operator.reconcile.actions import (
    Action,
    AdoptCopy,
    CreateCopy,
    DeleteCopy,
    ReadCopy,
    ReadOther,
    ReadTrainJob,
)
from dispatch_operator.reconcile.judge import check_ownership
from dispatch_operator.reconcile.observation import Observed, Origin, at
from dispatch_operator.reconcile.ownership import (
    Ownership,
    is_going,
    owned_by_train_job,
    owners,
    ownership_of_copy,
    uid_of,
)
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.render import render_copy
from dispatch_operator.render.differences import differing_paths

STEP = Condition.RUNTIME_COPIED


def copy_runtime(observed: Observed, _now: float) -> Action | Verdict | None:
    """Create the copy, or take over a leftover that is equal; never update one."""
    if observed.copy.obj is None:
        error = observed.failure(CreateCopy)
        return _after_failed_create(observed, error) if error else _create(observed)
    if not observed.copy.live:
        return _read_live(observed)
    return _judge_owned(observed) if owners(observed.copy.obj) else _judge_unowned(observed)


def _create(observed: Observed) -> Action | Verdict:
    # A TrainJob that stands there before its copy decides: nothing is created beside another's.
    verdict = check_ownership(observed, STEP) if observed.train_job.obj is not None else None
    return verdict or CreateCopy(render_copy(observed.start, _source(observed)))


def _source(observed: Observed) -> dict[str, object]:
    return dict(observed.runtime.obj or {})


def _read_live(observed: Observed) -> Action | Verdict:
    return transient(STEP, error) if (error := observed.failure(ReadCopy)) else ReadCopy()


def _after_failed_create(observed: Observed, error: ApiError) -> Action | Verdict:
    if error.outcome is Outcome.NOTHING_HAPPENED:
        return transient(STEP, error)
    if not observed.copy.live:
        # Something may hold the name, and a create that was carried out can come back as a refusal: a read tells.
        return _read_live(observed)
    if error.outcome is Outcome.DEFINITE and not error.already_exists:
        return Refusal(STEP, ErrorClass.REJECTED, str(error))
    # What is absent now came and went, or never came; no TrainJob is created on such ground.
    return transient(STEP, error)


def _judge_owned(observed: Observed) -> Action | Verdict | None:
    copy = observed.copy.obj
    name = at(copy, "metadata", "name")
    if not owned_by_train_job(copy):
        by = f"{at(owners(copy)[0], 'kind')} {at(owners(copy)[0], 'name')}"
        return Refusal(STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} exists and is owned by {by}")
    # A TrainJob of our name exists, or existed until just now.
    if error := observed.failure(ReadTrainJob):
        return transient(STEP, error)
    if not observed.train_job.live:
        return ReadTrainJob()
    if observed.train_job.obj is not None and (verdict := check_ownership(observed, STEP)):
        return verdict
    return Waiting(STEP, "CopyLeaving", f"waiting for TrainingRuntime {name}, whose TrainJob is gone, to be collected")


def _judge_unowned(observed: Observed) -> Action | Verdict | None:
    copy, source = observed.copy.obj, observed.runtime.obj
    name, equal = at(copy, "metadata", "name"), at(copy, "spec") == at(source, "spec")
    if is_going(copy):
        return Waiting(STEP, "CopyLeaving", f"waiting for TrainingRuntime {name} to be deleted")
    if observed.copy.origin is Origin.WRITTEN:
        return None if equal else _stored_changed(observed)
    ownership = ownership_of_copy(observed)
    match ownership:
        case ReadOther():
            return transient(STEP, error) if (error := observed.failure(ReadOther)) else ownership
        case Ownership.FOREIGN:
            return Refusal(STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} exists and is not of this DispatchStart")
        case _:
            return _bring_up_to_date(observed) if equal else _delete(observed)


def _stored_changed(observed: Observed) -> Refusal:
    paths = differing_paths(at(observed.runtime.obj, "spec"), at(observed.copy.obj, "spec"), "spec")
    name = at(observed.copy.obj, "metadata", "name")
    return Refusal(
        STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} was stored changed, at {', '.join(paths)}; see its webhooks"
    )


def _delete(observed: Observed) -> Action | Verdict:
    if error := observed.failure(DeleteCopy):
        return _after_failed_write(error)
    return DeleteCopy(uid_of(observed.copy.obj), at(observed.copy.obj, "metadata", "resourceVersion") or "")


def _after_failed_write(error: ApiError) -> Refusal:
    if error.outcome is Outcome.DEFINITE:
        return Refusal(STEP, ErrorClass.REJECTED, str(error))
    return transient(STEP, error)


def _bring_up_to_date(observed: Observed) -> Action | Verdict | None:
    wanted = at(render_copy(observed.start, _source(observed)), "metadata")
    annotations, labels = wanted["annotations"], {LABEL_FRAMEWORK: wanted["labels"][LABEL_FRAMEWORK]}
    if _holds(observed.copy.obj, "annotations", annotations) and _holds(observed.copy.obj, "labels", labels):
        return None
    if error := observed.failure(AdoptCopy):
        return _after_failed_write(error)
    return AdoptCopy(
        annotations, labels, uid_of(observed.copy.obj), at(observed.copy.obj, "metadata", "resourceVersion") or ""
    )


def _holds(copy: object, marks: str, wanted: Mapping[str, str]) -> bool:
    held = at(copy, "metadata", marks) or {}
    return all(held.get(key) == value for key, value in wanted.items())
