"""What is read of Kubeflow Trainer's and JobSet's objects."""

from typing import Any, ClassVar

from msgspec import field

from dispatch_operator.api.enums import ConditionStatus
from dispatch_operator.api.kinds import Kind
from dispatch_operator.records.base import ConditionedStatus, KubeCondition, KubeObject, Record

Json = dict[str, Any]
ENDS = ("Complete", "Failed")


class Trainer(Record, frozen=True):
    """The part of `spec.trainer` that a stand-in for the runtime is written with."""

    image: str | None = None
    num_proc_per_node: Any = None


class PatchedJob(Record, frozen=True):
    """A replicated job that a runtime patch names."""

    name: str = ""


class PatchedJobs(Record, frozen=True):
    """The replicated jobs of a patch."""

    replicated_jobs: tuple[PatchedJob, ...] = ()


class PatchedTemplate(Record, frozen=True):
    """`template` of a patch."""

    spec: PatchedJobs = PatchedJobs()


class PatchedRuntime(Record, frozen=True):
    """`trainingRuntimeSpec` of a patch."""

    template: PatchedTemplate = PatchedTemplate()


class RuntimePatch(Record, frozen=True):
    """One manager's patch of the runtime."""

    manager: str = ""
    training_runtime_spec: PatchedRuntime = PatchedRuntime()


class TrainJobSpec(Record, frozen=True):
    """What is read of a TrainJob's spec."""

    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    trainer: Trainer = Trainer()
    runtime_patches: tuple[RuntimePatch, ...] = ()


class JobCounts(Record, frozen=True):
    """How many pods of a replicated job are in which state."""

    name: str = ""
    ready: int = 0
    """Jobs of it whose pods are all ready, or done."""
    active: int = 0
    """Jobs of it that have a pod which waits or runs."""
    succeeded: int = 0


class TrainJobStatus(ConditionedStatus, frozen=True):
    """What Trainer says of a TrainJob."""

    jobs_status: tuple[JobCounts, ...] = ()

    @property
    def ends(self) -> tuple[KubeCondition, ...]:
        """The conditions that say that the job has ended: Complete or Failed."""
        return tuple(one for one in self.conditions if one.type in ENDS and one.status == ConditionStatus.TRUE)


class TrainJob(KubeObject, frozen=True):
    """A TrainJob."""

    KIND: ClassVar[Kind] = Kind.TRAIN_JOB

    spec: TrainJobSpec = TrainJobSpec()
    status: TrainJobStatus = TrainJobStatus()
    stored: Json | None = field(default=None, name="-stored")
    """The whole object, which the read-back compares with what was written; None when a watch told of it."""


class TrainingRuntime(KubeObject, frozen=True):
    """A runtime of one namespace; a copy is one, too."""

    KIND: ClassVar[Kind] = Kind.TRAINING_RUNTIME

    spec: Json | None = None
    """Verbatim; None when a watch told of it."""


class ClusterTrainingRuntime(TrainingRuntime, frozen=True):
    """A runtime of the whole cluster."""

    KIND: ClassVar[Kind] = Kind.CLUSTER_TRAINING_RUNTIME


class JobSetStatus(Record, frozen=True):
    """What JobSet says of a job."""

    restarts: int = 0


class JobSet(KubeObject, frozen=True):
    """The JobSet that Trainer makes of a TrainJob."""

    KIND: ClassVar[Kind] = Kind.JOB_SET

    status: JobSetStatus = JobSetStatus()
