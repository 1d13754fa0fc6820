"""Step 8: read the TrainJob back, and compare what the cluster stored with what was written."""

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.reconcile.actions import Action, ReadBackend, ReadTrainJob
from dispatch_operator.reconcile.observation import Observed, Origin, at
from dispatch_operator.reconcile.step_result import Refusal, Verdict, transient
from dispatch_operator.reconcile.steps.admit import bears_terms, wrote_terms
from dispatch_operator.render import render_train_job, start_options
from dispatch_operator.render.read_back import differences

STEP = Condition.READ_BACK


def read_back(observed: Observed, _now: float) -> Action | Verdict | None:
    """Refuse a TrainJob that the cluster changed; the message names every differing path."""
    terms = wrote_terms(observed)
    if terms is None:
        return _without_backend(observed)
    if error := observed.failure(ReadTrainJob):
        return transient(STEP, error, never_final=True)
    if observed.train_job.origin is not Origin.READ:
        return ReadTrainJob()
    wrote = render_train_job(observed.start, terms, at(observed.copy.obj, "spec") or {})
    found = differences(wrote, observed.train_job.obj or {}, kueue=terms.queue is not None)
    if not found:
        return None
    # Without the annotation what was written depends on the backend, too.
    unread = None if bears_terms(observed) else _read_backend(observed)
    return unread or Refusal(
        STEP, ErrorClass.REJECTED, f"the cluster stored another TrainJob than was written: {'; '.join(found)}"
    )


def _without_backend(observed: Observed) -> Action | Verdict:
    """The TrainJob does not say what was taken from its backend, and that went away: nothing can be compared."""
    name = start_options(observed.start).backend
    message = f"DispatchBackend {name} went away before the TrainJob was read back; create it again"
    return _read_backend(observed) or Refusal(STEP, ErrorClass.UNREACHABLE, message, never_final=True)


def _read_backend(observed: Observed) -> Action | Verdict | None:
    if error := observed.failure(ReadBackend):
        return transient(STEP, error, never_final=True)
    return None if observed.backend.live else ReadBackend(start_options(observed.start).backend)
