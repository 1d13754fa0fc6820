"""The kinds of objects that the operator reads or writes, and where each is served: the one table of them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from dispatch_operator.api.group import (
    API_VERSION,
    JOBSET_API_VERSION,
    KUEUE_API_VERSION,
    TRAINER_API_VERSION,
)


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
    WORKLOAD_PRIORITY_CLASS = "WorkloadPriorityClass"
    JOB = "Job"
    POD = "Pod"
    EVENT = "Event"
    NAMESPACE = "Namespace"


class RuntimeKind(StrEnum):
    """Kinds that a Start can copy (docs/contract.md, Read the runtime)."""

    CLUSTER_TRAINING_RUNTIME = Kind.CLUSTER_TRAINING_RUNTIME.value
    """Shared by every namespace."""
    TRAINING_RUNTIME = Kind.TRAINING_RUNTIME.value
    """In the DispatchStart's own namespace."""


class Resource(NamedTuple):
    """Where a kind is served."""

    kind: Kind
    api_version: str
    """``<group>/<version>``, or only the version for Kubernetes' own kinds."""
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for Kubernetes' own kinds."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str | None = None) -> str:
        """Return the path of all objects of the kind, of one namespace or of all."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        return (
            f"{root}/namespaces/{namespace}/{self.plural}" if namespace and self.namespaced else f"{root}/{self.plural}"
        )


RESOURCES: Mapping[Kind, Resource] = {
    resource.kind: resource
    for resource in (
        Resource(Kind.DISPATCH_START, API_VERSION, "dispatchstarts"),
        Resource(Kind.DISPATCH_BACKEND, API_VERSION, "dispatchbackends"),
        Resource(Kind.TRAIN_JOB, TRAINER_API_VERSION, "trainjobs"),
        Resource(Kind.TRAINING_RUNTIME, TRAINER_API_VERSION, "trainingruntimes"),
        Resource(Kind.CLUSTER_TRAINING_RUNTIME, TRAINER_API_VERSION, "clustertrainingruntimes", namespaced=False),
        Resource(Kind.JOB_SET, JOBSET_API_VERSION, "jobsets"),
        Resource(Kind.WORKLOAD, KUEUE_API_VERSION, "workloads"),
        Resource(Kind.LOCAL_QUEUE, KUEUE_API_VERSION, "localqueues"),
        Resource(Kind.CLUSTER_QUEUE, KUEUE_API_VERSION, "clusterqueues", namespaced=False),
        Resource(Kind.ADMISSION_CHECK, KUEUE_API_VERSION, "admissionchecks", namespaced=False),
        Resource(Kind.WORKLOAD_PRIORITY_CLASS, KUEUE_API_VERSION, "workloadpriorityclasses", namespaced=False),
        Resource(Kind.JOB, "batch/v1", "jobs"),
        Resource(Kind.POD, "v1", "pods"),
        Resource(Kind.EVENT, "v1", "events"),
        Resource(Kind.NAMESPACE, "v1", "namespaces", namespaced=False),
    )
}
