"""DispatchBackend: what one namespace's admin lets Starts use (docs/contract.md, DispatchBackend)."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dispatch_operator.api import duration
from dispatch_operator.api.enums import BackendState
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.api.models.base import Items, Model, Word, validations
from dispatch_operator.api.models.reading import parse

LONGEST_NAME = 253
MOST_RUNTIMES = 1_000
POSITIVE_DURATION = "must be a duration greater than zero, such as 90s or 1m30s"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
GPU_RESOURCE_PATTERN = rf"^{_LABEL}(\.{_LABEL})*/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"

ObjectName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
LabelValue = Annotated[str, Field(min_length=1, max_length=63)]


def _positive(text: str) -> str:
    if not re.fullmatch(duration.POSITIVE, text):
        raise ValueError(POSITIVE_DURATION)
    return text


# A rule and not a pattern in the CRD, because the API server would show people the pattern.
Timeout = Annotated[
    str,
    Field(
        max_length=64,
        json_schema_extra=validations(f"self.matches('^({duration.POSITIVE})$')", POSITIVE_DURATION),
    ),
    AfterValidator(_positive),
]


class BackendRuntime(Model):
    """A Trainer runtime, by kind and name."""

    kind: Word[RuntimeKind] = Field(
        default=RuntimeKind.CLUSTER_TRAINING_RUNTIME,
        description="ClusterTrainingRuntime (the default), or TrainingRuntime for one in this backend's own namespace.",
    )
    name: ObjectName = Field(description="The runtime's name.")


class Kueue(Model):
    """Kueue mode: jobs wait in a queue, behind a gate that Kueue honours."""

    queue: LabelValue = Field(description="The LocalQueue of this namespace that jobs are put into.")
    admission_check: ObjectName = Field(
        description="The AdmissionCheck that the queue's ClusterQueue must list; a Start is refused without it.",
    )


class Timeouts(Model):
    """How long the operator waits, as Go durations greater than zero."""

    call: Timeout = Field(
        default="30s",
        description="The bound of each API call, and how long a create whose answer was lost is looked for.",
    )
    workload: Timeout = Field(
        default="60s",
        description="Kueue mode: how long a new TrainJob's gated Workload is waited for before the Start is refused.",
    )
    hold: Timeout = Field(
        default="3s",
        description="How long the preflight probe must stay without a pod and without quota to prove the gate.",
    )


class BackendSpec(Model):
    """What Starts on this backend may use, and how."""

    state: Word[BackendState] = Field(
        default=BackendState.OPEN,
        description="Open takes Starts, ReadOnly refuses them with ErrReadOnly, Closed with ErrUnreachable.",
    )
    runtimes: Items[BackendRuntime] = Field(
        max_length=MOST_RUNTIMES,
        description="The runtimes that a request may name. Any other is refused without being read.",
    )
    gpu_resource: str = Field(
        default="nvidia.com/gpu",
        pattern=GPU_RESOURCE_PATTERN,
        max_length=317,
        description="The extended resource that a request's gpusPerNode counts, such as nvidia.com/gpu or amd.com/gpu.",
    )
    probe_runtime: BackendRuntime = Field(
        description="The runtime that the preflight probe is started on, to prove that this backend's gates hold.",
    )
    kueue: Kueue | None = Field(
        default=None,
        description="Kueue mode. When absent jobs are gated plainly, by the TrainJob's spec.suspend.",
    )
    timeouts: Timeouts = Field(
        default_factory=Timeouts,
        description="How long the operator waits.",
        json_schema_extra={"default": {}},
    )


class BackendMetadata(Model):
    """Who a backend is; a file may lack all but the name."""

    name: str = ""
    uid: str | None = None
    generation: int | None = None


class Backend(Model):
    """Where the DispatchStarts of a namespace may run: the runtimes, the GPU resource, and the kind of start gate."""

    metadata: BackendMetadata = Field(default_factory=BackendMetadata)
    spec: BackendSpec = Field(description="What Starts on this backend may use, and how.")


def read_backend(raw: Mapping[str, Any]) -> Backend:
    """Read a DispatchBackend as the API server returns it.

    Raises:
        InvalidObject: it is not what the CRD allows.
    """
    return parse(Backend, raw)
