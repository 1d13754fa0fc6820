"""The operator's own two kinds, as it sees them: the spec read once, the status as far as it can be relied on."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from dispatch_operator.api import duration
from dispatch_operator.api.enums import Condition, Gate, Phase, Retry
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend, StartReading, StartRequest
from dispatch_operator.api.models.status import BackendStatus, StartStatus
from dispatch_operator.records.base import ObjectMeta

DEFAULT_CALL_TIMEOUT = 30.0
"""Seconds that a request may take where no backend says otherwise."""


@dataclass(frozen=True, slots=True)
class DispatchStart:
    """A DispatchStart, or the one that a probe makes up for its DispatchBackend."""

    KIND: ClassVar[Kind] = Kind.DISPATCH_START

    metadata: ObjectMeta
    reading: StartReading
    """The spec, and everything that is wrong with it."""
    target: str
    """The name of its copy and its TrainJob; empty when the job or the submission is not valid."""
    status: StartStatus = field(default_factory=StartStatus)
    is_probe: bool = False
    status_was_written: bool = False
    """Whether anybody has ever written the status of this very object, as the API server remembers."""

    @property
    def lost_its_status(self) -> bool:
        """Whether the status was written, and holds nothing of it any more: it was nulled, or pruned."""
        return self.status_was_written and self.status.phase is None

    @property
    def request(self) -> StartRequest:
        """The request, with something right in the place of what could not be read."""
        return self.reading.request

    @property
    def backend(self) -> str:
        """The name of its DispatchBackend; empty, which no object is called, when it could not be read."""
        return "" if self.reading.is_faulty("backend") else self.reading.spec.backend

    @property
    def gate(self) -> Gate:
        """What the user wants of the start gate; Closed when it could not be read."""
        return self.reading.spec.gate

    @property
    def is_cancelled(self) -> bool:
        """Whether it is to be cancelled, or was; a refusal or another end that was recorded before stays what it is.

        A stop whose reason got lost is what the gate wishes, which never leaves Cancelled.
        """
        if self.gate is not Gate.CANCELLED:
            return False
        status = self.status
        is_bare = status.phase is Phase.STOPPING and status.condition(Condition.STARTED) is None
        ends_otherwise = status.recorded_end not in {None, Phase.CANCELLED} or (status.was_refused and not is_bare)
        return not ends_otherwise

    @property
    def retry(self) -> Retry:
        """Whether a refusal may be looked at again."""
        return self.reading.spec.retry


@dataclass(frozen=True, slots=True)
class DispatchBackend:
    """A DispatchBackend."""

    KIND: ClassVar[Kind] = Kind.DISPATCH_BACKEND

    metadata: ObjectMeta
    valid: Backend | None
    """What it says; None when that is not what the CRD allows."""
    fault: str = ""
    """What is wrong with it then."""
    status: BackendStatus = field(default_factory=BackendStatus)

    @property
    def call_timeout(self) -> float:
        """The bound of each request in seconds."""
        return _seconds(self.valid.spec.timeouts.call) if self.valid else DEFAULT_CALL_TIMEOUT

    @property
    def keep_ended(self) -> float | None:
        """Seconds for which an ended job keeps its TrainJob; None for ever, as where the backend is not valid."""
        kept = self.valid.spec.keep_ended if self.valid else None
        return None if kept is None else _seconds(kept)

    @property
    def probe_runtime(self) -> tuple[Kind, str]:
        """The kind and name of the runtime that the backend is probed on; an empty name when it is not valid."""
        if self.valid is None:
            return Kind.CLUSTER_TRAINING_RUNTIME, ""
        reference = self.valid.spec.probe_runtime
        return Kind(reference.kind), reference.name


@lru_cache(maxsize=64)
def _seconds(text: str) -> float:
    """Read a duration of a backend: its time-out is asked for at each request."""
    return duration.seconds(text)
