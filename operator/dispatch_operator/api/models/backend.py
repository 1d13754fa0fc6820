"""DispatchBackend: what one namespace's admin lets Starts use (docs/contract.md, DispatchBackend)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dispatch_operator.api import duration
from dispatch_operator.api.enums import BackendState
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.api.models.base import Items, Model, Word, must_match, validations
from dispatch_operator.api.models.reading import parse

LONGEST_NAME = 253
LONGEST_QUEUE = 63
"""The name of a queue, or of a priority class, is a label's value too."""
NO_GUARD_RAILS: Mapping[str, Any] = {
    "images": None,
    "max_nodes": None,
    "max_gpus": None,
    "max_time_limit": None,
    "time_limit_required": False,
}
MOST_RUNTIMES = 1_000
MOST_IMAGES = 1_000
LONGEST_IMAGE = 500
POSITIVE_DURATION = "must be a duration greater than zero, such as 90s or 1m30s"
KEPT = "must be a duration greater than zero, such as 168h; leave it out to keep ended jobs for ever"
LONGEST_TIMEOUT = "1h"
BOUNDED_DURATION = f"must be at most {LONGEST_TIMEOUT}"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}([.]{_LABEL})*"
NAME = "must be the name of an object: lower-case letters, digits, - and ., such as team-a"
GPU_RESOURCE_PATTERN = rf"^{_LABEL}(\.{_LABEL})*/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
GPU_RESOURCE = (
    "must be an extended resource: a domain, a slash and a name, such as nvidia.com/gpu; cpu, memory, what begins with "
    "requests. and what belongs to kubernetes.io are none"
)


ObjectName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
# Rules and not patterns in the CRD, because the API server would show people the pattern.
_NAME_RULE = validations(f"self.matches('^{_SUBDOMAIN}$')", NAME)
Queue = Annotated[
    str, Field(min_length=1, max_length=LONGEST_QUEUE, json_schema_extra=_NAME_RULE), must_match(_SUBDOMAIN, NAME)
]
Check = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, json_schema_extra=_NAME_RULE), must_match(_SUBDOMAIN, NAME)
]
_IS_DURATION = f"self.matches('^({duration.POSITIVE})$')"
_IS_BOUNDED = f"!self.matches('{duration.EXCESSIVE}') && duration(self) <= duration('{LONGEST_TIMEOUT}')"


def _bounded(text: str) -> str:
    """Return a timeout, or the longest one: an object that was stored before there was a rule may hold a longer."""
    return text if duration.parse(text) <= duration.parse(LONGEST_TIMEOUT) else LONGEST_TIMEOUT


Timeout = Annotated[
    str,
    Field(
        max_length=64,
        json_schema_extra=validations(
            _IS_DURATION,
            POSITIVE_DURATION,
            # What is no duration is refused by the rule above, and by that one alone.
            (f"!{_IS_DURATION} || ({_IS_BOUNDED})", BOUNDED_DURATION),
        ),
    ),
    must_match(duration.POSITIVE, POSITIVE_DURATION),
    AfterValidator(_bounded),
]
TimeLimit = Annotated[
    str,
    Field(max_length=64, json_schema_extra=validations(_IS_DURATION, POSITIVE_DURATION)),
    must_match(duration.POSITIVE, POSITIVE_DURATION),
]
KeepEnded = Annotated[
    str,
    Field(max_length=64, json_schema_extra=validations(_IS_DURATION, KEPT)),
    must_match(duration.POSITIVE, KEPT),
]
Images = Annotated[
    Items[Annotated[str, Field(min_length=1, max_length=LONGEST_IMAGE)]], Field(min_length=1, max_length=MOST_IMAGES)
]
# The API server shows the pattern; the rule beside it says in words what Kubernetes takes for an extended resource.
GpuResource = Annotated[
    str,
    Field(
        max_length=317,
        json_schema_extra={
            "pattern": GPU_RESOURCE_PATTERN,
            **validations(
                "self.contains('/') && !self.startsWith('requests.') && !self.contains('kubernetes.io/')", GPU_RESOURCE
            ),
        },
    ),
    must_match(rf"(?!requests\.)(?!.*kubernetes\.io/){GPU_RESOURCE_PATTERN}", GPU_RESOURCE),
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

    queue: Queue = Field(description="The LocalQueue of this namespace that jobs are put into.")
    admission_check: Check = Field(
        description="The AdmissionCheck that the queue's ClusterQueue must list; a Start is refused without it.",
    )
    priority_class: Queue | None = Field(
        default=None,
        description="The WorkloadPriorityClass of the jobs. When absent Kueue goes by their pods' priorityClassName.",
    )


class Timeouts(Model):
    """How long the operator waits, as Go durations greater than zero and of at most an hour."""

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
    gpu_resource: GpuResource = Field(
        default="nvidia.com/gpu",
        description="The extended resource that a request's gpusPerNode counts, such as nvidia.com/gpu or amd.com/gpu.",
    )
    probe_runtime: BackendRuntime = Field(
        description="The runtime that the preflight probe is started on, to prove that this backend's gates hold.",
    )
    images: Images | None = Field(
        default=None,
        description=(
            'The images that a request may name, as patterns such as registry.example/*, in which "*" stands for any '
            "characters. When absent any."
        ),
    )
    max_nodes: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The most nodes of a request. When absent any number."
    )
    max_gpus: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The most GPUs of a request, nodes times gpusPerNode. When absent any number."
    )
    max_time_limit: TimeLimit | None = Field(
        default=None,
        description="The longest timeLimit of a request, which must then state one. When absent any, and none.",
    )
    time_limit_required: bool = Field(
        default=False, description="Whether a request must state a timeLimit, also where there is no longest."
    )
    kueue: Kueue | None = Field(
        default=None,
        description="Kueue mode. When absent jobs are gated plainly, by the TrainJob's spec.suspend.",
    )
    keep_ended: KeepEnded | None = Field(
        default=None,
        description=(
            "How long after its end a job keeps its TrainJob, and with it the copy, the JobSet and the pods; a Go "
            "duration greater than zero. The DispatchStart stays. When absent for ever."
        ),
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
