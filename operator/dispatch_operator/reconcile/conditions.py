"""The list of a status's conditions is composed here (docs/contract.md, Conditions)."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ConditionStatus
from dispatch_operator.api.models.status import MESSAGE_LIMIT
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.api.quoting import one_line
from dispatch_operator.checks.problems import fitting

E = TypeVar("E", bound=Entry)
_ORDER = {kind: place for place, kind in enumerate(Condition)}


class Wanted(Struct, frozen=True):
    """A condition as it should stand."""

    type: Condition
    status: ConditionStatus
    reason: str
    message: str = ""
    since: float | None = None
    """When its status became this, in seconds since the epoch, where something else than the operator's clock tells."""


def conditions(
    wanted: Iterable[Wanted], current: Iterable[E], generation: int, now: float, entry: type[E]
) -> tuple[E, ...]:
    """Return the conditions to write, in order; a transition time moves only when its status changes.

    Args:
        wanted: What should stand; types that are not among them go away.
        current: What stands.
        generation: The object's generation, written as each condition's observedGeneration.
        now: Seconds since the epoch.
        entry: The class to make: Condition or BackendCondition.
    """
    held = {one.type: one for one in current}
    return tuple(
        entry(
            type=want.type,
            status=want.status,
            observed_generation=generation,
            last_transition_time=_transition(want, held.get(want.type), now),
            reason=want.reason,
            # What others say comes in here, too: a webhook, Kueue, a container.
            message=fitting(one_line(want.message), MESSAGE_LIMIT),
        )
        for want in sorted(wanted, key=lambda want: _ORDER[want.type])
    )


def _transition(want: Wanted, held: Entry | None, now: float) -> str:
    if held is None or held.status != want.status or times.read(held.last_transition_time) is None:
        return times.written(now if want.since is None else want.since)
    return held.last_transition_time
