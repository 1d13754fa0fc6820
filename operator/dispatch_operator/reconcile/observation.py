"""What one reconcile knows, and how sure it is: pure values, and what an answer adds to them."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from dispatch_operator.api.models import Backend
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import (
    Action,
    ActionKey,
    AwaitWorkload,
    Create,
    Delete,
    Get,
    List,
    Patch,
    PatchStatus,
    Slot,
)
from dispatch_operator.records.core import Event, Job, Pod
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT, DispatchBackend, DispatchStart
from dispatch_operator.records.kueue import AdmissionCheck, ClusterQueue, LocalQueue, Workload, WorkloadPriorityClass
from dispatch_operator.records.reading import AnyRecord
from dispatch_operator.records.trainer import JobSet, TrainingRuntime, TrainJob

T = TypeVar("T")
Answer = AnyRecord | tuple[AnyRecord, ...] | None
"""What an action brought: an object (None when it is absent or deleted), or a list's items."""


class Origin(IntEnum):
    """Where a fact comes from; only what is live may carry a verdict (docs/contract.md, Live verdicts)."""

    CACHED = 0
    """A watch said so, some time ago: enough to start a create or to read, never for a verdict."""
    WRITTEN = 1
    """A write of this reconcile returned it."""
    READ = 2
    """A live read of this reconcile returned it, or its absence."""


class Observation(Struct, Generic[T], frozen=True):
    """One object as this reconcile knows it; ``obj`` is None when absent."""

    obj: T | None = None
    origin: Origin = Origin.CACHED

    @property
    def live(self) -> bool:
        """True when the API server itself said so in this reconcile."""
        return self.origin is not Origin.CACHED

    @property
    def absent(self) -> bool:
        """True when a live read found nothing."""
        return self.obj is None and self.live


class Observed(Struct, frozen=True):
    """The facts of one reconcile of one DispatchStart; nothing here outlives it."""

    start: DispatchStart
    backend: Observation[DispatchBackend] = Observation()
    runtime: Observation[TrainingRuntime] = Observation()
    copy: Observation[TrainingRuntime] = Observation()
    train_job: Observation[TrainJob] = Observation()
    other: Observation[DispatchStart | DispatchBackend] = Observation()
    """The object that another's copy or TrainJob names as its start."""
    workload: Observation[Workload] = Observation()
    """Kueue mode: the Workload that the TrainJob owns."""
    awaited: bool = False
    """Whether this reconcile has waited for the Workload."""
    local_queue: Observation[LocalQueue] = Observation()
    cluster_queue: Observation[ClusterQueue] = Observation()
    check: Observation[AdmissionCheck] = Observation()
    priority_class: Observation[WorkloadPriorityClass] = Observation()
    job_set: JobSet | None = None
    """Cached only: it decides nothing, it is mirrored."""
    probes: tuple[TrainJob, ...] | None = None
    """TrainJobs of probes that stand in the namespace; None when that was not asked."""
    pods: tuple[Pod, ...] | None = None
    """Of the job: those that do not run, or after its end all."""
    trainer_job: Observation[Job] = Observation()
    """What makes the trainer's pods."""
    warnings: tuple[Event, ...] | None = None
    """About the TrainJob and its JobSet."""
    child_warnings: tuple[Event, ...] | None = None
    """About a pod that does not run, or a Job that has no pods."""
    last_inquiry: float = 0.0
    """When this job was last asked why it does not run, in seconds since the epoch."""
    failures: Mapping[ActionKey, ApiError] = field(default_factory=dict)
    """The last failure of each kind of action; a success of the same kind takes it away."""
    first_create: float | None = None
    """When this reconcile first tried to create the TrainJob, in seconds since the epoch."""
    created: frozenset[tuple[str, str]] = frozenset()
    """The UID and the first resourceVersion of each object that this reconcile has created: it is ours, whatever
    webhooks have made of it."""

    @property
    def call_timeout(self) -> float:
        """The bound of each request in seconds: the backend's `timeouts.call`."""
        return self.backend.obj.call_timeout if self.backend.obj else DEFAULT_CALL_TIMEOUT

    @property
    def admitted(self) -> Backend:
        """The backend, which the first step has let through."""
        return cast("Backend", self.backend.obj and self.backend.obj.valid)

    def failure(self, action: type[Action], slot: Slot) -> ApiError | None:
        """Return how the last try of this kind of action failed, if it did."""
        return self.failures.get((action, slot))

    def due(self, get: Get) -> Get | ApiError | None:
        """Return a read that is still to be made, how it failed, or None when its object is known live."""
        known: Observation[Any] = getattr(self, get.slot)
        if known.live:
            return None
        return self.failures.get(get.key) or get

    def apply(self, action: Action, answer: Answer | ApiError, now: float) -> "Observed":
        """Return the facts after an action.

        Args:
            action: What was done.
            answer: What it brought, or how it failed.
            now: When it was begun, in seconds since the epoch.
        """
        known = self
        if action.key == (Create, Slot.TRAIN_JOB) and self.first_create is None:
            known = replace(self, first_create=now)
        return _failed(known, action, answer) if isinstance(answer, ApiError) else _succeeded(known, action, answer)


def _succeeded(observed: Observed, action: Action, answer: Answer) -> Observed:
    failures = {key: error for key, error in observed.failures.items() if key != action.key}
    change: dict[str, Any]
    match action:
        case PatchStatus():
            change = {"start": answer or observed.start}
        case Delete(slot=slot):
            # Accepted; whether it is gone, only a read can tell. What stood in the way of a create may be gone, too.
            failures.pop((Create, slot), None)
            change = {slot: Observation()}
        case Create(slot=slot):
            meta = cast("AnyRecord", answer).metadata
            created = observed.created | {(meta.uid, meta.resource_version)}
            change = {slot: Observation(answer, Origin.WRITTEN), "created": created}
        case Patch(slot=slot):
            change = {slot: Observation(answer, Origin.WRITTEN)}
        case AwaitWorkload(slot=slot):
            change = {slot: Observation(answer), "awaited": True}
        case List(slot=slot, owner=""):
            change = {slot: answer}
        case _:
            change = {action.slot: Observation(answer, Origin.READ)}
    return replace(observed, failures=failures, **change)


def _failed(observed: Observed, action: Action, error: ApiError) -> Observed:
    if isinstance(action, Patch | Delete) and (error.conflict or error.not_found):
        # A precondition that does not hold is no failure: what it was about is read again.
        return _forgotten(observed, action.slot)
    observed = replace(observed, failures={**observed.failures, action.key: error})
    uncertain = isinstance(action, Create) or (isinstance(action, Patch) and action.reads_after_failure)
    return _forgotten(observed, action.slot) if uncertain else observed


def _forgotten(observed: Observed, slot: Slot) -> Observed:
    """Forget the object that an action was about: the next verdict on it needs a live read after the action."""
    change: dict[str, Any] = {slot: Observation()}
    if slot in {Slot.COPY, Slot.TRAIN_JOB}:
        change[Slot.OTHER] = Observation()
    return replace(observed, **change)
