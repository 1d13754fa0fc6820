"""What Flux makes of a DispatchStart by the expressions of deploy/gitops, in CEL itself."""

from pathlib import Path
from typing import Any

import cel
import yaml

KUSTOMIZATION = Path(__file__).parents[2] / "deploy" / "gitops" / "flux" / "kustomization.yaml"


def health(obj: dict[str, Any]) -> str:
    """Return Failed, Current or InProgress, in the order in which Flux asks."""
    (expressions,) = yaml.safe_load(KUSTOMIZATION.read_text())["spec"]["healthCheckExprs"]
    if cel.evaluate(expressions["failed"], obj):
        return "Failed"
    return "Current" if cel.evaluate(expressions["current"], obj) else "InProgress"
