"""DispatchStart: one StartRequest, and what became of it (docs/contract.md, DispatchStart)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from dispatch_operator.api.enums import Gate, Retry
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.api.models.base import (
    ClosedModel,
    FreeFormObject,
    Items,
    Model,
    Word,
    immutable,
    must_match,
    validations,
)
from dispatch_operator.api.models.immutability import (
    always_there,
    duration,
    empty_when_absent,
    object_when_absent,
    unchanged,
    zero_when_absent,
)
from dispatch_operator.api.models.reading import Fault, read

# High enough for the operator, not the API server, to say that a list is too long; low enough for the API server to
# bound the cost of comparing requests.
MOST_ITEMS = 100_000

LONGEST_NAME = 253
"""Of an object: a longer one is no name, and would make each request for it too long."""

# What can't be a step of a path would make a list of the request for one object, or a request for another.
BACKEND_PATTERN = r"(?!\.{1,2}$)[^/%]*"
BACKEND = "must be the name of a DispatchBackend"
IMAGE = "dispatch/Image"
RUNTIME_REF = "kubeflow/RuntimeRef"
SHARED_CHECKPOINT = "dispatch/SharedCheckpoint"


ANYTHING: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
ANY_OBJECT: dict[str, Any] = {"type": "object", **ANYTHING}


def _extensions(schema: dict[str, Any]) -> None:
    """Make a schema one of any extensions with any content: the operator gives the verdict on them.

    What the operator reads is declared without a type: the API server then writes a default, and sees that nothing is
    changed; of what is not declared it compares only the values of keys that both have (kubernetes: unstructuredMap).
    """
    kind = {"description": f"{' or '.join(RuntimeKind)}.", "default": RuntimeKind.CLUSTER_TRAINING_RUNTIME.value}
    del schema["additionalProperties"]
    schema |= {
        **ANY_OBJECT,
        "maxProperties": MOST_ITEMS,
        "properties": {
            IMAGE: _declaring("The image that the job runs in.", ref={"description": "The image."}),
            RUNTIME_REF: _declaring("The runtime.", kind=kind, name={"description": "The runtime's name."}),
            SHARED_CHECKPOINT: {"description": "Any object. It changes nothing.", **ANY_OBJECT},
        },
    }


def _declaring(description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    declared = {name: {**schema, **ANYTHING} for name, schema in properties.items()}
    return {"description": description, **ANY_OBJECT, "properties": declared}


class Image(ClosedModel):
    """The extension dispatch/Image."""

    ref: str = Field(default_factory=str, examples=["registry.example/llama:1"])


class RuntimeRef(ClosedModel):
    """The extension kubeflow/RuntimeRef: the Trainer runtime that the job runs on a copy of."""

    kind: str = Field(default=RuntimeKind.CLUSTER_TRAINING_RUNTIME.value)
    name: str = Field(default_factory=str, examples=["torch-dispatch"])


class Extensions(Model):
    """The extensions of a JobSpec: three that Kubeflow knows, and any other, which is refused."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=_extensions,
    )
    __pydantic_extra__: dict[str, dict[str, Any]]

    image: Image | None = Field(default=None, alias=IMAGE, examples=[{"ref": "registry.example/llama:1"}])
    runtime_ref: RuntimeRef | None = Field(default=None, alias=RUNTIME_REF, examples=[{"name": "torch-dispatch"}])
    shared_checkpoint: dict[str, Any] | None = Field(default=None, alias=SHARED_CHECKPOINT)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of those that Kubeflow can't honour, sorted."""
        return tuple(sorted(self.__pydantic_extra__))


class JobSpec(Model):
    """What to run, where, and how large."""

    model_config = ConfigDict(
        json_schema_extra=unchanged(
            empty_when_absent("command", "env", "workDir"),
            zero_when_absent("nodes"),
            always_there("gpusPerNode", "procsPerNode"),
            duration("timeLimit"),
            empty_when_absent("name", "checkpoint"),
            object_when_absent("recovery", "extensions"),
        )
    )

    command: Items[str] = Field(
        default_factory=tuple,
        examples=[["python", "train.py"]],
        description="The program and its arguments, at most 124. They reach the process byte for byte.",
        json_schema_extra={"maxItems": MOST_ITEMS},
    )
    env: dict[str, str] = Field(
        default_factory=dict,
        examples=[{"SEED": "7"}],
        description="Environment variables, at most 122 (121 with workDir). Values reach the process byte for byte.",
        json_schema_extra={"maxProperties": MOST_ITEMS},
    )
    work_dir: str = Field(
        default_factory=str,
        description="The directory that the command starts in; when it can't be entered the job exits with 125.",
    )
    nodes: int = Field(
        default_factory=int,
        examples=[1],
        description="How many pods run the command side by side, 1 to 100,000.",
    )
    gpus_per_node: int = Field(default=0, description="GPUs of each pod, in the backend's gpuResource.")
    procs_per_node: int = Field(
        default=0,
        description="Processes of each pod, for a runtime with the torch policy; 0 leaves it to the runtime.",
    )
    time_limit: str = Field(
        default_factory=str,
        description='How long the job may run once its gate is open, as a Go duration such as 1h30m; none when "0".',
        json_schema_extra={"maxLength": MOST_ITEMS},
    )
    name: str = Field(default_factory=str, description="A name for people. It changes nothing.")
    checkpoint: str = Field(
        default_factory=str,
        description="Where the job keeps its checkpoints: an absolute path or s3://bucket/prefix. It changes nothing.",
    )
    recovery: FreeFormObject = Field(
        default=None,
        description="How the supervisor recovers the job. It changes nothing here.",
    )
    extensions: Extensions = Field(
        default_factory=Extensions,
        description=(
            'Extensions by "<namespace>/<name>". dispatch/Image {ref} and kubeflow/RuntimeRef {kind, name} are '
            "required, dispatch/SharedCheckpoint is accepted, and any other is refused with ErrUnsupported."
        ),
        examples=[{IMAGE: {"ref": "registry.example/llama:1"}, RUNTIME_REF: {"name": "torch-dispatch"}}],
    )


class StartRequest(Model):
    """One submission of one job, as the supervisor states it for every kind of backend alike."""

    model_config = ConfigDict(
        json_schema_extra=unchanged(
            always_there("job", "generation", "submission", "attempt"), object_when_absent("native")
        )
    )

    job: str = Field(
        examples=["01J9ZQ4V8Y3N5T7R2C6W1X0ABK"],
        description="The job: a ULID of 26 characters in upper-case Crockford base32.",
    )
    generation: int = Field(
        default=0,
        description="The job's generation, 0 to 18,000,000; the epoch of a process begins with it.",
    )
    submission: int = Field(
        examples=[1],
        description="The submission, 1 to 999,999. The TrainJob is named after job and submission.",
    )
    attempt: int = Field(default=0, description="How often this submission was tried before.")
    native: FreeFormObject = Field(
        default=None,
        description="Restart and requeue wishes for schedulers that have them. They change nothing here.",
    )
    spec: JobSpec = Field(
        examples=[
            {
                "command": ["python", "train.py"],
                "nodes": 1,
                "extensions": {IMAGE: {"ref": "registry.example/llama:1"}, RUNTIME_REF: {"name": "torch-dispatch"}},
            },
        ],
        description="What to run, where, and how large.",
    )


class StartSpec(Model):
    """What to start, on which backend, and what to do with its gate."""

    backend: Annotated[str, must_match(BACKEND_PATTERN, BACKEND)] = Field(
        default="default",
        min_length=1,
        max_length=LONGEST_NAME,
        description="The DispatchBackend of this namespace that the job is started on. It can't be changed.",
        json_schema_extra=immutable("the backend of a DispatchStart can't be changed; create another DispatchStart"),
    )
    gate: Word[Gate] = Field(
        default=Gate.CLOSED,
        description=(
            "Closed starts the job without running it, Open lets it run, Held stops it again until the next Open, and "
            "Cancelled stops it for good. It can't go back to Closed, and nowhere from Cancelled."
        ),
        json_schema_extra=validations(
            "self != 'Closed' || oldSelf == 'Closed' || oldSelf == 'Cancelled'",
            "a gate that was Open or Held can't go back to Closed, also not by leaving it out; use Held",
            (
                "oldSelf != 'Cancelled' || self == 'Cancelled'",
                "a Cancelled gate can't be changed any more, also not by leaving it out; submit under another number",
            ),
        ),
    )
    retry: Word[Retry] = Field(
        default=Retry.ON_CHANGE,
        description="OnChange looks at some refusals again when what they rest on changes; Never makes each one final.",
    )
    request: StartRequest = Field(
        examples=[
            {
                "job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABK",
                "submission": 1,
                "spec": {
                    "command": ["python", "train.py"],
                    "nodes": 1,
                    "extensions": {IMAGE: {"ref": "registry.example/llama:1"}, RUNTIME_REF: {"name": "torch-dispatch"}},
                },
            },
        ],
        description="The StartRequest. It can't be changed; another submission is another DispatchStart.",
    )


class Start(Model):
    """One submission of a job: turned into a TrainJob of Kubeflow Trainer that waits behind a start gate."""

    spec: StartSpec = Field(description="What to start, on which backend, and what to do with its gate.")


_NOTHING: set[str] = set()


@dataclass(frozen=True, slots=True)
class StartReading:
    """The spec of a DispatchStart as far as it could be read, and the faults of the rest."""

    spec: StartSpec
    faults: tuple[Fault, ...]

    @property
    def request(self) -> StartRequest:
        """The request, with something right in the place of what could not be read."""
        return self.spec.request

    def is_faulty(self, *path: str) -> bool:
        """Whether what ``path`` leads to from ``spec``, or something that it is in, could not be read."""
        return any(path[: len(fault.path)] == fault.path for fault in self.faults)


def read_start(raw: Mapping[str, Any]) -> StartReading:
    """Read the spec of a DispatchStart; a missing or wrong one has a faulty request."""
    spec = raw.get("spec")
    reading = read(StartSpec, spec if isinstance(spec, Mapping) else {})
    _forget_what_was_set(reading.value)
    return StartReading(reading.value, reading.faults)


def _forget_what_was_set(spec: StartSpec) -> None:
    """Let go of pydantic's sets of the fields that were given: nobody asks, and they are a fifth of a DispatchStart."""
    extensions = spec.request.spec.extensions
    for model in (spec, spec.request, spec.request.spec, extensions, extensions.image, extensions.runtime_ref):
        if model is not None:
            object.__setattr__(model, "__pydantic_fields_set__", _NOTHING)
