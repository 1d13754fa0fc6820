"""Step 8: read the TrainJob back, and compare what the cluster stored with what was written.

See docs/contract.md, Read the TrainJob back and Read-back.
"""

from dispatch_operator.api.enums import Condition, ErrorClass, Gate
from dispatch_operator.checks.problems import joined
from dispatch_operator.reconcile.actions import Action, Get, Slot, get_backend, get_train_job
from dispatch_operator.reconcile.backend.terms import borne_terms, wrote_terms
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.ownership import was_opened
from dispatch_operator.reconcile.step_result import Refusal, Verdict, read_first, transient
from dispatch_operator.render import render_train_job
from dispatch_operator.render.read_back import differences

STEP = Condition.READ_BACK


def read_back(observed: Observed, _now: float) -> Action | Verdict | None:
    """Refuse a TrainJob that the cluster changed; the message names every differing path."""
    terms = wrote_terms(observed)
    if terms is None:
        return _without_backend(observed)
    if error := observed.failure(Get, Slot.TRAIN_JOB):
        return transient(STEP, error, never_final=True)
    job, copy = observed.train_job, observed.copy.obj
    if job.origin is not Origin.READ:
        return get_train_job(observed.start)
    wrote = render_train_job(observed.start, terms, (copy and copy.spec) or {})
    found = differences(
        wrote, (job.obj and job.obj.stored) or {}, kueue=terms.queue is not None, may_be_open=_may_be_open(observed)
    )
    if not found:
        return None
    # Where the TrainJob does not say what was taken from its backend, what was written depends on that, too.
    unread = None if borne_terms(observed) else _read_backend(observed)
    message = f"the cluster stored another TrainJob than was written: {joined(found)}"
    return unread or Refusal(STEP, ErrorClass.REJECTED, message)


def _may_be_open(observed: Observed) -> bool:
    """Tell whether an open gate is no difference: it is where it is wanted, or was opened by us."""
    return observed.start.gate is not Gate.CLOSED or was_opened(observed)


def _without_backend(observed: Observed) -> Action | Verdict:
    """The TrainJob does not say what was taken from its backend, and that went away: nothing can be compared."""
    name = observed.start.backend
    message = f"DispatchBackend {name} went away before the TrainJob was read back; create it again"
    return _read_backend(observed) or Refusal(STEP, ErrorClass.UNREACHABLE, message, never_final=True)


def _read_backend(observed: Observed) -> Action | Verdict | None:
    return read_first(observed, get_backend(observed.start), STEP, never_final=True)
