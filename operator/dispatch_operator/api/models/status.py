"""What the operator writes: what became of a request, and what is known of a backend (contract sections 10, 11)."""

from typing import Annotated, Literal

from pydantic import Field

from dispatch_operator.api.enums import BackendGate, ErrorClass, Phase
from dispatch_operator.api.models.base import Items, Model, Word

UNSEEN = -1
"""The default of observedGeneration, by which kstatus knows an object that nobody has looked at yet."""

Text = Annotated[str, Field(max_length=32_768)]


class ObjectReference(Model):
    """An object by name and UID."""

    name: str = Field(description="The object's name; the TrainJob's is written <namespace>/<name>.")
    uid: str = Field(description="The object's UID.")


class Source(Model):
    """The runtime that the copy was made of."""

    kind: str = Field(description="ClusterTrainingRuntime or TrainingRuntime.")
    name: str = Field(description="The runtime's name.")
    uid: str = Field(description="The runtime's UID.")
    generation: int = Field(description="The runtime's generation when it was copied.")


class Outcome(Model):
    """How the job ended."""

    state: str = Field(description="Succeeded, Failed or Lost.")
    cause: str | None = Field(
        default=None,
        description="Why it did not succeed, in one word such as OOMKilled, Evicted or WorkDirMissing.",
    )
    exit_code: int | None = Field(default=None, description="The exit code of the process that ended the job.")
    message: Text | None = Field(default=None, description="What is known of the cause, in a sentence.")


class ConditionState(Model):
    """One aspect of the object's state, in the form that kubectl wait and kstatus read."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description=(
            "RequestValid, RuntimeCopied, TrainJobCreated, OwnerSet, ReadBack and WorkloadGated are the steps of the "
            "Start, Started all of them together. Succeeded is the job's end, Ready both. Reconciling and Stalled "
            "say whether something more will happen."
        ),
    )
    status: Literal["True", "False", "Unknown"] = Field(description="True, False, or Unknown while it goes on.")
    observed_generation: int = Field(description="The metadata.generation that the condition was set for.")
    last_transition_time: str = Field(
        description="When status last changed.",
        json_schema_extra={"format": "date-time"},
    )
    reason: Annotated[str, Field(min_length=1, max_length=1_024)] = Field(
        description="One word: of a refusal the error class, " + ", ".join(ErrorClass) + ".",
    )
    message: Text = Field(description="Details for a person; of a refusal every problem.")


class StartStatus(Model):
    """What became of the request, as the operator last saw it."""

    phase: Word[Phase] | None = Field(default=None, description="Where it is, in one word.")
    observed_generation: int | None = Field(
        default=None,
        description="The metadata.generation that this status is about; -1 before the operator's first reconcile.",
    )
    reference: ObjectReference | None = Field(
        default=None,
        description="The TrainJob that was created, also after it was deleted.",
    )
    copied: ObjectReference | None = Field(
        default=None,
        alias="copy",
        description="The TrainingRuntime that the TrainJob runs on.",
    )
    source: Source | None = Field(default=None, description="The runtime that was copied.")
    outcome: Outcome | None = Field(default=None, description="How the job ended; absent until it has.")
    restarts: int | None = Field(default=None, description="How often the JobSet restarted the job.")
    evictions: int | None = Field(
        default=None, description="How often Kueue put the job back into its queue, by preemption or otherwise."
    )
    conditions: Items[ConditionState] = Field(
        default_factory=tuple,
        description="The steps of the Start, the job's end, and what is still to be expected.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class BackendConditionState(ConditionState):
    """One aspect of the backend's state, in the form that kubectl wait and kstatus read."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description=(
            "Ready says whether every gate is proven; Reconciling is present while the gates are probed, or will be "
            "probed again."
        ),
    )
    reason: Annotated[str, Field(min_length=1, max_length=1_024)] = Field(
        description="One word: Proven, ObserveOnly (a gate is not proven, and Starts are refused), or Probing.",
    )
    message: Text = Field(description="Details for a person: each gate that is not proven, and why.")


class GateState(Model):
    """One gate of the backend, and whether it holds."""

    name: Word[BackendGate] = Field(
        description=(
            "fields-kept: the cluster stores a TrainJob as it was written; start-gate: behind its gate a job gets "
            "neither a pod nor quota; collected: deleting a TrainJob takes its copy with it."
        ),
    )
    proven: bool = Field(description="Whether the last probe, or a Start since, found that it holds.")
    reason: Text | None = Field(default=None, description="Why it is not proven; absent when it is.")
    last_probe_time: str = Field(
        description="When it was last probed.",
        json_schema_extra={"format": "date-time"},
    )


class ProbedRuntime(Model):
    """The runtime that the probe was started on."""

    kind: str = Field(description="ClusterTrainingRuntime or TrainingRuntime.")
    name: str = Field(description="The runtime's name.")
    uid: str | None = Field(default=None, description="The runtime's UID; absent when there was none of that name.")
    generation: int | None = Field(default=None, description="The runtime's generation when it was probed.")


class ServedApi(Model):
    """A version of an API as the API server served it."""

    api: str = Field(description="Group and version, such as trainer.kubeflow.org/v1alpha1.")
    hash: str | None = Field(
        default=None,
        description="Of all its schemas, as the API server's OpenAPI names them; absent when it was not served.",
    )


class Proof(Model):
    """What the gates' verdicts rest on; when any of it changes, the gates are probed again."""

    operator_version: str = Field(description="The operator's version.")
    backend_generation: int = Field(description="The metadata.generation of the backend, which follows its spec.")
    runtime: ProbedRuntime = Field(description="The runtime that the probe was started on.")
    served: Items[ServedApi] = Field(
        description="The APIs of Trainer, JobSet and Kueue.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["api"]},
    )


class BackendStatus(Model):
    """What is known of the backend: whether its gates hold, and what that rests on."""

    observed_generation: int | None = Field(
        default=None,
        description="The metadata.generation that this status is about; -1 before the operator's first reconcile.",
    )
    conditions: Items[BackendConditionState] = Field(
        default_factory=tuple,
        description="Whether Starts are taken, and whether the gates are being probed.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    gates: Items[GateState] = Field(
        default_factory=tuple,
        description="Each gate and whether it is proven; absent until the first probe has ended, and Starts wait.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    proof: Proof | None = Field(
        default=None,
        description="What the verdicts rest on; absent after a Start found a gate that does not hold.",
    )
