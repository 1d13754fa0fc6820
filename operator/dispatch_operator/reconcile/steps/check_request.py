"""Steps 2 to 4: read the runtime, check it, check the request; every problem is reported together."""

from dispatch_operator.api.enums import Condition
from dispatch_operator.reconcile.actions import Act, ReadBackend, ReadRuntime
from dispatch_operator.reconcile.observation import Seen
from dispatch_operator.reconcile.step_result import Refusal, Verdict, transient
from dispatch_operator.render import problems, read_backend, runtime_reference, start_frame


def check_and_render(seen: Seen, _now: float) -> Act | Verdict | None:
    """Refuse what can't become a TrainJob; nothing has been created yet."""
    backend = read_backend(seen.backend.obj or {})
    reference = runtime_reference(seen.start, backend)
    if reference and not seen.runtime.live:
        if error := seen.failure(ReadRuntime):
            return transient(Condition.REQUEST_VALID, error)
        return ReadRuntime(reference.kind, reference.name)
    found = problems(seen.start, backend, seen.runtime.obj)
    if not found:
        return None
    if error := seen.failure(ReadBackend):
        return transient(Condition.REQUEST_VALID, error)
    if not seen.backend.live:
        return ReadBackend(start_frame(seen.start).backend)
    return Refusal.of(Condition.REQUEST_VALID, found)
