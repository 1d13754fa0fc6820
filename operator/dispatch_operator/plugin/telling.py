"""What a status says in full, where a part of it only points to another. Pure."""

import re

from dispatch_operator.api.enums import BackendGate, Condition, ConditionStatus
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.reconcile.backend.status import NOT_PROBED
from dispatch_operator.reconcile.status import POINTER, STEPS
from dispatch_operator.records.dispatch import DispatchStart

CLEARED_AWAY = (
    "the TrainJob of an ended job is deleted when keepEnded of its backend has passed, and its pods and their logs go "
    "with it"
)
"""Why nothing of a job is left that ended by itself, as a rule."""
_NOT_PROBED = re.compile(
    r'; (?:state: the DispatchBackend "[^"]*" is observe-only: )?'
    rf"(?:{'|'.join(BackendGate)}) is not proven: {re.escape(NOT_PROBED)}"
)


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


def without_not_probed(message: str) -> str:
    """Return what is told of an observe-only backend without the gates that nobody probed, which say nothing."""
    return _NOT_PROBED.sub("", message)


def altered_copy(start: DispatchStart) -> Entry | None:
    """Return the condition that says that the copy of a gated job is not what was submitted; None when it is."""
    copied = start.status.condition(Condition.RUNTIME_COPIED)
    is_altered = copied is not None and copied.status is ConditionStatus.FALSE and start.status.says_started
    return copied if is_altered else None
