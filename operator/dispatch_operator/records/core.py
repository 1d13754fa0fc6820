"""What is read of Kubernetes' own objects: a job's Jobs and pods, and the Events about them."""

from typing import ClassVar

from dispatch_operator.api.kinds import Kind
from dispatch_operator.records.base import ConditionedStatus, KubeObject, Record


class Terminated(Record, frozen=True):
    """How a container's process ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class WaitingContainer(Record, frozen=True):
    """Why a container's process has not begun."""

    reason: str = ""
    message: str = ""


class ContainerState(Record, frozen=True):
    """What a container does."""

    terminated: Terminated | None = None
    waiting: WaitingContainer | None = None


class ContainerStatus(Record, frozen=True):
    """What is known of one container."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(ConditionedStatus, frozen=True):
    """What is known of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(KubeObject, frozen=True):
    """A pod of a job."""

    KIND: ClassVar[Kind] = Kind.POD

    status: PodStatus = PodStatus()


class InvolvedObject(Record, frozen=True):
    """What an Event is about."""

    kind: str = ""
    name: str = ""


class JobStatus(Record, frozen=True):
    """How far a Job is."""

    ready: int = 0


class Job(KubeObject, frozen=True):
    """What makes the pods of a replicated job."""

    KIND: ClassVar[Kind] = Kind.JOB

    status: JobStatus = JobStatus()


class EventSeries(Record, frozen=True):
    """That an Event was told again."""

    last_observed_time: str | None = None


class Event(KubeObject, frozen=True):
    """What some controller told of an object."""

    KIND: ClassVar[Kind] = Kind.EVENT

    involved_object: InvolvedObject = InvolvedObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    series: EventSeries = EventSeries()

    @property
    def last_seen(self) -> str:
        """When it was told last; "" when nothing says so."""
        return self.series.last_observed_time or self.last_timestamp or self.event_time or ""
