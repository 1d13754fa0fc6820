"""Conditions as lists of a status: how one is set, and what must always hold of them (contract section 11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, Phase

MESSAGE_LIMIT = 32_768
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
_ORDER = {kind.value: place for place, kind in enumerate(Condition)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition as it should stand."""

    type: Condition
    status: str
    reason: str
    message: str = ""


def conditions(
    wanted: Iterable[Wanted], current: Iterable[Mapping[str, Any]], generation: int, now: float
) -> list[dict[str, Any]]:
    """Return the conditions to write, in order; a transition time moves only when its status changes.

    Args:
        wanted: What should stand; types that are not among them go away.
        current: What stands.
        generation: The object's generation, which every condition follows.
        now: Seconds since the epoch.
    """
    held = {entry.get("type"): entry for entry in current}
    made = [
        {
            "type": want.type.value,
            "status": want.status,
            "observedGeneration": generation,
            "lastTransitionTime": _transition(want, held.get(want.type.value), now),
            "reason": want.reason,
            "message": want.message[:MESSAGE_LIMIT],
        }
        for want in wanted
    ]
    return sorted(made, key=lambda entry: _ORDER[str(entry["type"])])


def _transition(want: Wanted, held: Mapping[str, Any] | None, now: float) -> str:
    moved = held is None or held.get("status") != want.status or times.read(held.get("lastTransitionTime")) is None
    return times.written(now) if moved or held is None else str(held["lastTransitionTime"])


def broken_invariants(status: Mapping[str, Any]) -> list[str]:
    """Name what no status of ours may ever show; empty when all is well.

    kstatus reads Reconciling before Stalled, so that both at once would hide the end of an object.
    """
    held = {entry["type"]: entry for entry in status.get("conditions", ())}
    true = {kind for kind, entry in held.items() if entry["status"] == TRUE}
    ended = status.get("phase") in {Phase.REFUSED, Phase.FAILED, Phase.LOST}
    rules = {
        "Reconciling and Stalled together": {Condition.RECONCILING, Condition.STALLED} <= true,
        "Reconciling or Stalled present but not True": bool(
            ({Condition.RECONCILING, Condition.STALLED} & held.keys()) - true
        ),
        "a type twice": len(held) != len(status.get("conditions", ())),
        "Started, Succeeded or Ready missing": not {Condition.STARTED, Condition.SUCCEEDED, Condition.READY}
        <= held.keys(),
        "an observedGeneration that differs": any(
            entry["observedGeneration"] != status.get("observedGeneration") for entry in held.values()
        ),
        "an end that is not Stalled": ended and Condition.STALLED not in true,
        "Ready without Started": Condition.READY in true and Condition.STARTED not in true,
        "a message that is too long": any(len(entry["message"]) > MESSAGE_LIMIT for entry in held.values()),
        "an empty reason": any(not entry["reason"] for entry in held.values()),
    }
    return [rule for rule, broken in rules.items() if broken]
