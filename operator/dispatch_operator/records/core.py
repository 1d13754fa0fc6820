"""What is read of Kubernetes' own objects: a job's pods, and the Events about it."""

from typing import ClassVar

from dispatch_operator.api.kinds import Kind
from dispatch_operator.records.base import KubeObject, Record


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

    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Record, frozen=True):
    """What is known of a pod."""

    reason: str = ""
    message: str = ""
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(KubeObject, frozen=True):
    """A pod of a job."""

    KIND: ClassVar[Kind] = Kind.POD

    status: PodStatus = PodStatus()


class Event(KubeObject, frozen=True):
    """What some controller told of an object."""

    KIND: ClassVar[Kind] = Kind.EVENT

    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
