"""What a status says in full, where a part of it only points to another. Pure."""

from dispatch_operator.api.enums import Condition, ConditionStatus
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.reconcile.status import POINTER, STEPS


def failed_step(status: StartStatus) -> Entry | None:
    """Return the condition of the step that failed or waits; that of the whole Start where no step tells."""
    steps = [one for one in status.conditions if one.type in STEPS and one.status is not ConditionStatus.TRUE]
    return steps[0] if steps else status.condition(Condition.STARTED)


def in_full(status: StartStatus, message: str | None = None) -> str:
    """Return a message of a status, by default that of Ready; one that points to a condition is told in full."""
    ready = status.condition(Condition.READY)
    told = (ready.message if ready else "") if message is None else message
    named = next((one for one in status.conditions if told.endswith(f"{POINTER} {one.type}")), None)
    return named.message if named else told
