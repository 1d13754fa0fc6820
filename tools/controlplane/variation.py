"""What a control plane can have other than the usual, to see how an operator takes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


def leave_alone(_crd: dict[str, Any]) -> None:
    """The usual change to a CRD: none."""


@dataclass(frozen=True)
class Variation:
    """How a control plane differs from the usual one.

    Attributes:
        kueue_feature_gates: Kueue's feature gates that are not at their defaults.
        kueue_config: Merged into Kueue's configuration: mappings key by key, anything else replaced.
        garbage_collection: Whether what an owner leaves behind is collected.
        alter_crds: Called with each CRD of Trainer, JobSet and Kueue before it is served; it may change it in place.
    """

    kueue_feature_gates: Mapping[str, bool] = field(default_factory=dict)
    kueue_config: Mapping[str, Any] = field(default_factory=dict)
    garbage_collection: bool = True
    alter_crds: Callable[[dict[str, Any]], None] = leave_alone


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with another merged into it."""
    result = dict(base)
    for key, value in change.items():
        held = result.get(key)
        result[key] = merged(held, value) if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    return result
