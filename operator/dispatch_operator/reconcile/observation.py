"""What one reconcile knows: facts gathered so far, and how sure they are. Pure values; nothing here outlives its reconcile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Action

Object = Mapping[str, Any]


class Origin(IntEnum):
    """Where a fact comes from; only READ may carry a verdict (contract section 4, rule 1)."""

    CACHED = 0
    """A watch said so, some time ago: enough to start a create or to read, never for a verdict."""
    WRITTEN = 1
    """A write of this reconcile returned it."""
    READ = 2
    """A live read of this reconcile returned it, or its absence."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One object as this reconcile knows it; ``obj`` is None when absent."""

    obj: Object | None = None
    origin: Origin = Origin.CACHED

    @property
    def live(self) -> bool:
        """True when the API server itself said so in this reconcile."""
        return self.origin is not Origin.CACHED

    @property
    def absent(self) -> bool:
        """True when a live read found nothing."""
        return self.obj is None and self.live


@dataclass(frozen=True, slots=True)
class Observed:
    """The facts of one reconcile at one DispatchStart."""

    start: Object
    backend: Observation = Observation()
    runtime: Observation = Observation()
    copy: Observation = Observation()
    train_job: Observation = Observation()
    other: Observation = Observation()
    """The object that another's copy or TrainJob names as its start."""
    workload: Observation = Observation()
    """Kueue mode: the Workload that the TrainJob owns."""
    awaited: bool = False
    """Whether this reconcile has waited for the Workload."""
    local_queue: Observation = Observation()
    cluster_queue: Observation = Observation()
    check: Observation = Observation()
    job_set: Object | None = None
    """Cached only: it decides nothing, it is mirrored."""
    pods: tuple[Object, ...] | None = None
    warnings: tuple[Object, ...] | None = None
    failures: Mapping[type[Action], ApiError] = field(default_factory=dict)
    """The last failure of each kind of act; a success of the same kind takes it away."""
    first_create: float | None = None
    """When this reconcile first tried to create the TrainJob, in seconds since the epoch."""

    def failure(self, action: type[Action]) -> ApiError | None:
        """Return how the last try of this kind of act failed, if it did."""
        return self.failures.get(action)


def at(obj: object, *path: str) -> Any:  # noqa: ANN401 - what lies there has any type.
    """Return what lies at a path of a JSON value, or None where any part of it is missing."""
    for part in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(part)
    return obj


def condition(obj: object, kind: str) -> Mapping[str, Any]:
    """Return a condition of an object's status by its type; empty when it has none such."""
    conditions = at(obj, "status", "conditions")
    found = [entry for entry in conditions or [] if at(entry, "type") == kind] if isinstance(conditions, list) else []
    return found[0] if found else {}
