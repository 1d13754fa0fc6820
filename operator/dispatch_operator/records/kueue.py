"""What is read of Kueue's objects."""

from typing import ClassVar

from dispatch_operator.api.kinds import Kind
from dispatch_operator.records.base import ConditionedStatus, KubeObject, Record


class CheckState(Record, frozen=True):
    """The state of one admission check on a Workload."""

    name: str = ""
    state: str = ""
    message: str = ""
    last_transition_time: str = ""


class Eviction(Record, frozen=True):
    """How often a Workload was evicted for one reason."""

    reason: str = ""
    underlying_cause: str = ""
    count: int = 0


class SchedulingStats(Record, frozen=True):
    """What Kueue counts of a Workload."""

    evictions: tuple[Eviction, ...] = ()


class WorkloadSpec(Record, frozen=True):
    """What is read of a Workload's spec."""

    active: bool = True


class WorkloadStatus(ConditionedStatus, frozen=True):
    """What Kueue says of a Workload."""

    admission_checks: tuple[CheckState, ...] = ()
    scheduling_stats: SchedulingStats = SchedulingStats()


class Workload(KubeObject, frozen=True):
    """Kueue's own object of a job."""

    KIND: ClassVar[Kind] = Kind.WORKLOAD

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class LocalQueueSpec(Record, frozen=True):
    """What is read of a LocalQueue's spec."""

    cluster_queue: str = ""
    stop_policy: str | None = None


class LocalQueue(KubeObject, frozen=True):
    """A queue of one namespace."""

    KIND: ClassVar[Kind] = Kind.LOCAL_QUEUE

    spec: LocalQueueSpec = LocalQueueSpec()
    status: ConditionedStatus = ConditionedStatus()


class NamedCheck(Record, frozen=True):
    """An admission check that a ClusterQueue names."""

    name: str = ""
    on_flavors: tuple[str, ...] = ()


class CheckStrategy(Record, frozen=True):
    """The admission checks of a ClusterQueue."""

    admission_checks: tuple[NamedCheck, ...] = ()


class ClusterQueueSpec(Record, frozen=True):
    """What is read of a ClusterQueue's spec."""

    admission_checks_strategy: CheckStrategy = CheckStrategy()


class ClusterQueue(KubeObject, frozen=True):
    """The quota that LocalQueues share."""

    KIND: ClassVar[Kind] = Kind.CLUSTER_QUEUE

    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ConditionedStatus = ConditionedStatus()


class WorkloadPriorityClass(KubeObject, frozen=True):
    """A priority that jobs of Kueue may have; only whether it exists is read."""

    KIND: ClassVar[Kind] = Kind.WORKLOAD_PRIORITY_CLASS


class AdmissionCheckSpec(Record, frozen=True):
    """What is read of an AdmissionCheck's spec."""

    controller_name: str = ""


class AdmissionCheck(KubeObject, frozen=True):
    """A check that a controller answers before Kueue admits a Workload."""

    KIND: ClassVar[Kind] = Kind.ADMISSION_CHECK

    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: ConditionedStatus = ConditionedStatus()
