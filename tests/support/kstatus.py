"""What kstatus (Flux, Argo CD, kubectl's cli-utils) makes of a custom resource, by its documented rules.

sigs.k8s.io/cli-utils/pkg/kstatus: a stale observedGeneration is InProgress, then Reconciling is InProgress, Stalled is
Failed, a Ready that is not True is InProgress, and everything else is Current.
"""

from typing import Any


def kstatus(obj: dict[str, Any]) -> str:
    """Return InProgress, Failed, Current or Terminating."""
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    status = obj.get("status", {})
    if status.get("observedGeneration") not in (None, obj["metadata"]["generation"]):
        return "InProgress"
    held = {entry["type"]: entry["status"] for entry in status.get("conditions", ())}
    if held.get("Reconciling") == "True":
        return "InProgress"
    if held.get("Stalled") == "True":
        return "Failed"
    return "InProgress" if held.get("Ready") in {"False", "Unknown"} else "Current"
