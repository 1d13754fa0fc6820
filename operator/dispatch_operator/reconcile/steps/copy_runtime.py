"""Step 5: copy the runtime, so that later edits can't change a submitted job."""

from collections.abc import Mapping

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.api.group import LABEL_FRAMEWORK
from dispatch_operator.kube.errors import ApiError, Outcome
from dispatch_operator.reconcile.actions import (
    Act,
    AdoptCopy,
    CreateCopy,
    DeleteCopy,
    ReadCopy,
    ReadOther,
    ReadTrainJob,
)
from dispatch_operator.reconcile.judge import judge_train_job
from dispatch_operator.reconcile.observation import Seen, Source, at
from dispatch_operator.reconcile.ownership import Claim, claim_on_copy, is_going, owned_by_train_job, owners, uid_of
from dispatch_operator.reconcile.step_result import Refusal, Verdict, Waiting, transient
from dispatch_operator.render import render_copy
from dispatch_operator.render.differences import differing_paths

STEP = Condition.RUNTIME_COPIED


def copy_runtime(seen: Seen, _now: float) -> Act | Verdict | None:
    """Create the copy, or take over a leftover that is equal; never update one."""
    if seen.copy.obj is None:
        error = seen.failure(CreateCopy)
        return _after_failed_create(seen, error) if error else _create(seen)
    if not seen.copy.live:
        return _read_live(seen)
    return _judge_owned(seen) if owners(seen.copy.obj) else _judge_unowned(seen)


def _create(seen: Seen) -> Act | Verdict:
    # A TrainJob that stands there before its copy decides: nothing is created beside another's.
    verdict = judge_train_job(seen, STEP) if seen.train_job.obj is not None else None
    return verdict or CreateCopy(render_copy(seen.start, _source(seen)))


def _source(seen: Seen) -> dict[str, object]:
    return dict(seen.runtime.obj or {})


def _read_live(seen: Seen) -> Act | Verdict:
    return transient(STEP, error) if (error := seen.failure(ReadCopy)) else ReadCopy()


def _after_failed_create(seen: Seen, error: ApiError) -> Act | Verdict:
    if error.outcome is Outcome.NOTHING_HAPPENED:
        return transient(STEP, error)
    if not seen.copy.live:
        # Something may hold the name, and a create that was carried out can come back as a refusal: a read tells.
        return _read_live(seen)
    if error.outcome is Outcome.DEFINITE and not error.already_exists:
        return Refusal(STEP, ErrorClass.REJECTED, str(error))
    # What is absent now came and went, or never came; no TrainJob is created on such ground.
    return transient(STEP, error)


def _judge_owned(seen: Seen) -> Act | Verdict | None:
    copy = seen.copy.obj
    name = at(copy, "metadata", "name")
    if not owned_by_train_job(copy):
        by = f"{at(owners(copy)[0], 'kind')} {at(owners(copy)[0], 'name')}"
        return Refusal(STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} exists and is owned by {by}")
    # A TrainJob of our name exists, or existed until just now.
    if error := seen.failure(ReadTrainJob):
        return transient(STEP, error)
    if not seen.train_job.live:
        return ReadTrainJob()
    if seen.train_job.obj is not None and (verdict := judge_train_job(seen, STEP)):
        return verdict
    return Waiting(STEP, "CopyLeaving", f"waiting for TrainingRuntime {name}, whose TrainJob is gone, to be collected")


def _judge_unowned(seen: Seen) -> Act | Verdict | None:
    copy, source = seen.copy.obj, seen.runtime.obj
    name, equal = at(copy, "metadata", "name"), at(copy, "spec") == at(source, "spec")
    if is_going(copy):
        return Waiting(STEP, "CopyLeaving", f"waiting for TrainingRuntime {name} to be deleted")
    if seen.copy.source is Source.WRITE:
        return None if equal else _stored_changed(seen)
    claim = claim_on_copy(seen)
    match claim:
        case ReadOther():
            return transient(STEP, error) if (error := seen.failure(ReadOther)) else claim
        case Claim.FOREIGN:
            return Refusal(STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} exists and is not of this DispatchStart")
        case _:
            return _bring_up_to_date(seen) if equal else _delete(seen)


def _stored_changed(seen: Seen) -> Refusal:
    paths = differing_paths(at(seen.runtime.obj, "spec"), at(seen.copy.obj, "spec"), "spec")
    name = at(seen.copy.obj, "metadata", "name")
    return Refusal(
        STEP, ErrorClass.REJECTED, f"TrainingRuntime {name} was stored changed, at {', '.join(paths)}; see its webhooks"
    )


def _delete(seen: Seen) -> Act | Verdict:
    if error := seen.failure(DeleteCopy):
        return _after_failed_write(error)
    return DeleteCopy(uid_of(seen.copy.obj), at(seen.copy.obj, "metadata", "resourceVersion") or "")


def _after_failed_write(error: ApiError) -> Refusal:
    if error.outcome is Outcome.DEFINITE:
        return Refusal(STEP, ErrorClass.REJECTED, str(error))
    return transient(STEP, error)


def _bring_up_to_date(seen: Seen) -> Act | Verdict | None:
    wanted = at(render_copy(seen.start, _source(seen)), "metadata")
    annotations, labels = wanted["annotations"], {LABEL_FRAMEWORK: wanted["labels"][LABEL_FRAMEWORK]}
    if _holds(seen.copy.obj, "annotations", annotations) and _holds(seen.copy.obj, "labels", labels):
        return None
    if error := seen.failure(AdoptCopy):
        return _after_failed_write(error)
    return AdoptCopy(annotations, labels, uid_of(seen.copy.obj), at(seen.copy.obj, "metadata", "resourceVersion") or "")


def _holds(copy: object, marks: str, wanted: Mapping[str, str]) -> bool:
    held = at(copy, "metadata", marks) or {}
    return all(held.get(key) == value for key, value in wanted.items())
