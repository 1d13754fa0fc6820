"""What no status of ours may ever show, whoever wrote it and however it came to be."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api.enums import Condition, Phase
from dispatch_operator.api.models.status import MESSAGE_LIMIT

TRUE = "True"


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
