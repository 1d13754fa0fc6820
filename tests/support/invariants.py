"""What no status of ours may ever show, whoever wrote it and however it came to be."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api.enums import Condition, ErrorClass, Phase
from dispatch_operator.api.models.status import MESSAGE_LIMIT
from dispatch_operator.reconcile.status import POINTER

TRUE = "True"


def broken_invariants(status: Mapping[str, Any]) -> list[str]:
    """Name what no status of ours may ever show; empty when all is well.

    kstatus reads Reconciling before Stalled, so that both at once would hide the end of an object.
    """
    held = {entry["type"]: entry for entry in status.get("conditions", ())}
    true = {kind for kind, entry in held.items() if entry["status"] == TRUE}
    phase = str(status.get("phase") or "")
    ended = phase in {Phase.REFUSED, Phase.FAILED, Phase.CANCELLED, Phase.LOST}
    finished = bool(phase) and Phase(phase).is_end
    refusals = [entry["message"] for entry in held.values() if entry["reason"] in set(ErrorClass)]
    refusals = [message for message in refusals if POINTER not in message]
    rules = {
        "Reconciling and Stalled together": {Condition.RECONCILING, Condition.STALLED} <= true,
        "Reconciling or Stalled present but not True": bool(
            ({Condition.RECONCILING, Condition.STALLED} & held.keys()) - true
        ),
        "a type twice": len(held) != len(status.get("conditions", ())),
        "Started, Succeeded, Finished or Ready missing": not {
            Condition.STARTED,
            Condition.SUCCEEDED,
            Condition.FINISHED,
            Condition.READY,
        }
        <= held.keys(),
        "Finished before the end, or an end that is not Finished": (Condition.FINISHED in true) is not finished,
        "an outcome before the end, or an end without one": ("outcome" in status) is not finished,
        "a reference without an epoch": "reference" in status and "epoch" not in status,
        "an observedGeneration that differs": any(
            entry["observedGeneration"] != status.get("observedGeneration") for entry in held.values()
        ),
        "an end that is not Stalled": ended and Condition.STALLED not in true,
        "Ready without Started": Condition.READY in true and Condition.STARTED not in true,
        "a message that is too long": any(len(entry["message"]) > MESSAGE_LIMIT for entry in held.values()),
        "a message with what a terminal would obey": any(not entry["message"].isprintable() for entry in held.values()),
        "a refusal that is told twice": len(set(refusals)) != len(refusals),
        "an empty reason": any(not entry["reason"] for entry in held.values()),
    }
    return [rule for rule, broken in rules.items() if broken]
