"""Steps 2 to 4: read the runtime, check it, check the request; every problem is reported together."""

from dispatch_operator.api.enums import Condition
from dispatch_operator.reconcile.actions import Action, ReadBackend, ReadRuntime
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Refusal, Verdict, transient
from dispatch_operator.render import problems, read_backend, runtime_reference, start_options


def check_and_render(observed: Observed, _now: float) -> Action | Verdict | None:
    """Refuse what can't become a TrainJob; nothing has been created yet."""
    backend = read_backend(observed.backend.obj or {})
    reference = runtime_reference(observed.start, backend)
    if reference and not observed.runtime.live:
        if error := observed.failure(ReadRuntime):
            return transient(Condition.REQUEST_VALID, error)
        return ReadRuntime(reference.kind, reference.name)
    found = problems(observed.start, backend, observed.runtime.obj)
    if not found:
        return None
    if error := observed.failure(ReadBackend):
        return transient(Condition.REQUEST_VALID, error)
    if not observed.backend.live:
        return ReadBackend(start_options(observed.start).backend)
    return Refusal.of(Condition.REQUEST_VALID, found)
