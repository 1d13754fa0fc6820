"""Steps 2 to 4: read the runtime, check it, check the request; every problem is reported together.

See docs/contract.md, Read the runtime, Check the runtime and Check the request.
"""

from dispatch_operator.api.enums import Condition
from dispatch_operator.reconcile.actions import Action, get_backend, get_runtime
from dispatch_operator.reconcile.observation import Observed, Origin
from dispatch_operator.reconcile.step_result import Refusal, Verdict, read_first
from dispatch_operator.render import problems, runtime_reference

STEP = Condition.REQUEST_VALID


def check_request(observed: Observed, _now: float) -> Action | Verdict | None:
    """Refuse what can't become a TrainJob; nothing has been created yet."""
    if observed.copy.origin is Origin.WRITTEN:
        # The copy is written after this step only: all of it was checked in this very reconcile.
        return None
    backend = observed.admitted
    reference = runtime_reference(observed.start, backend)
    if reference and (unread := read_first(observed, get_runtime(reference.kind, reference.name), STEP)):
        return unread
    found = problems(observed.start, backend, observed.runtime.obj)
    if not found:
        return None
    # What is refused rests on a live backend, too.
    return read_first(observed, get_backend(observed.start), STEP) or Refusal.of(STEP, found)
