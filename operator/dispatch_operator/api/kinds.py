"""The kinds of objects that the operator reads or writes."""

from enum import StrEnum


class Kind(StrEnum):
    """Kinds of the objects that the operator reads or writes."""

    DISPATCH_START = "DispatchStart"
    DISPATCH_BACKEND = "DispatchBackend"
    TRAIN_JOB = "TrainJob"
    TRAINING_RUNTIME = "TrainingRuntime"
    CLUSTER_TRAINING_RUNTIME = "ClusterTrainingRuntime"
    JOB_SET = "JobSet"
    WORKLOAD = "Workload"
    LOCAL_QUEUE = "LocalQueue"
    CLUSTER_QUEUE = "ClusterQueue"
    ADMISSION_CHECK = "AdmissionCheck"


class RuntimeKind(StrEnum):
    """Kinds that a Start can copy (contract section 4, step 2)."""

    CLUSTER_TRAINING_RUNTIME = Kind.CLUSTER_TRAINING_RUNTIME.value
    """Shared by every namespace."""
    TRAINING_RUNTIME = Kind.TRAINING_RUNTIME.value
    """In the DispatchStart's own namespace."""
