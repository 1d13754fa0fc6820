"""What the operator writes: what became of a request, and what is known of a backend.

These are records: small, immutable, and compared by value. They are also the source of the CRDs' status schemas.
"""

from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from msgspec import Meta, Struct, field, json, structs
from msgspec.structs import FieldInfo

from dispatch_operator.api.enums import BackendGate, ConditionStatus, ErrorClass, ErrorKind, Phase
from dispatch_operator.api.enums import Condition as ConditionType

UNSEEN = -1
"""The default of observedGeneration, by which kstatus knows an object that nobody has looked at yet."""
MESSAGE_LIMIT = 32_768
"""Characters of a message, at most; the CRDs hold it too."""


def _words(words: type[StrEnum], description: str) -> Meta:
    """Describe a field that holds a word of an enum; the schema lists the words in the enum's order."""
    return Meta(description=description, extra_json_schema={"type": "string", "enum": [word.value for word in words]})


def _time(description: str) -> Meta:
    return Meta(description=description, extra_json_schema={"format": "date-time"})


def _message(description: str) -> Meta:
    return Meta(description=description, max_length=MESSAGE_LIMIT)


def _listed_by(key: str, description: str) -> Meta:
    schema: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return Meta(description=description, extra_json_schema=schema)


class Status(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all records of a status, and of its parts."""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON for a request's body, defaults left out."""
        made: dict[str, Any] = json.decode(json.encode(self))
        return made


@cache
def fields_of(status: type[Status]) -> tuple[FieldInfo, ...]:
    """Return the fields of a record; msgspec finds them out anew each time, which takes longer than to read them."""
    return structs.fields(status)


class ObjectReference(Status, frozen=True):
    """An object by name and UID."""

    name: Annotated[str, Meta(description="The object's name; the TrainJob's is written <namespace>/<name>.")]
    uid: Annotated[str, Meta(description="The object's UID.")]


class CopyReference(ObjectReference, frozen=True):
    """The copy, as it was when the Start was recorded."""

    generation: Annotated[
        int, Meta(description="The copy's generation when its spec was what had been submitted; absent when it is 1.")
    ] = 1


class Source(Status, frozen=True):
    """The runtime that the copy was made of."""

    kind: Annotated[str, Meta(description="ClusterTrainingRuntime or TrainingRuntime.")]
    name: Annotated[str, Meta(description="The runtime's name.")]
    uid: Annotated[str, Meta(description="The runtime's UID.")]
    generation: Annotated[int, Meta(description="The runtime's generation when it was copied.")]


class Outcome(Status, frozen=True):
    """How it ended."""

    state: Annotated[str, Meta(description="Succeeded, Failed, Refused, Cancelled or Lost.")]
    cause: Annotated[
        str | None,
        Meta(
            description=(
                "Why it did not succeed, in one word such as OOMKilled, Evicted, WorkDirMissing or Cancelled; of a "
                "refusal the error class."
            )
        ),
    ] = None
    error_kind: Annotated[
        ErrorKind | None,
        _words(
            ErrorKind,
            "Of a failure: User (the program or the request: another try ends as this one), System (the node, the "
            "cluster or a preemption: worth another try) or Unknown.",
        ),
    ] = None
    pod: Annotated[str | None, Meta(description="Of a failure: the pod that failed first.")] = None
    container: Annotated[str | None, Meta(description="Of a failure: the container in that pod.")] = None
    exit_code: Annotated[int | None, Meta(description="The exit code of the process that ended the job.")] = None
    message: Annotated[
        Annotated[str, Meta(max_length=MESSAGE_LIMIT)] | None,
        Meta(description="What is known of the cause, in a sentence."),
    ] = None


class Restart(Status, frozen=True):
    """A restart of the job by its JobSet, and the failure that caused it; never an outcome."""

    number: Annotated[int, Meta(description="The number of the restart, counted from 1.")]
    cause: Annotated[str, Meta(description="Why, in one word, as the cause of an outcome; Unknown when nothing tells.")]
    message: Annotated[
        Annotated[str, Meta(max_length=MESSAGE_LIMIT)] | None,
        Meta(description="What is known of the cause, in a sentence."),
    ] = None
    pod: Annotated[str | None, Meta(description="The pod that failed first.")] = None
    container: Annotated[str | None, Meta(description="The container in that pod.")] = None
    exit_code: Annotated[int | None, Meta(description="The exit code of its process.")] = None


class Condition(Status, frozen=True):
    """One aspect of the object's state, in the form that kubectl wait and kstatus read."""

    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=316,
            description=(
                "RequestValid, RuntimeCopied, TrainJobCreated, OwnerSet, ReadBack and WorkloadGated are the steps of "
                "the Start, Started all of them together. Succeeded is the job's end, and Finished is True at every "
                "end, however it came. Ready is True once the Start is whole, and False after a refusal, a failed or a "
                "cancelled job. Reconciling and Stalled say whether something more will happen."
            ),
        ),
    ]
    status: Annotated[ConditionStatus, _words(ConditionStatus, "True, False, or Unknown while it goes on.")]
    observed_generation: Annotated[int, Meta(description="The metadata.generation that the condition was set for.")]
    last_transition_time: Annotated[str, _time("When status last changed.")]
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_024,
            description="One word: of a refusal the error class, " + ", ".join(ErrorClass) + ".",
        ),
    ]
    message: Annotated[str, _message("Details for a person; of a refusal every problem.")]


_REFUSALS = (Phase.STOPPING, Phase.REFUSED)
_BEFORE_STARTED = (Phase.PENDING, Phase.STARTING, Phase.IN_FLIGHT, *_REFUSALS)
_ENDS = (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.LOST)
_WHILE_CANCELLED = (None, Phase.STOPPING, Phase.CANCELLED)
_FINAL = (ErrorClass.INVALID, ErrorClass.REJECTED)
"""What is final whatever the policy."""


class StartStatus(Status, frozen=True):
    """What became of the request, as the operator last saw it."""

    phase: Annotated[Phase | None, _words(Phase, "Where it is, in one word.")] = None
    observed_generation: Annotated[
        int | None,
        Meta(description="The metadata.generation that this status is about; -1 before it was first reconciled."),
    ] = None
    reference: Annotated[
        ObjectReference | None, Meta(description="The TrainJob that was created, also after it was deleted.")
    ] = None
    copied: Annotated[CopyReference | None, Meta(description="The TrainingRuntime that the TrainJob runs on.")] = field(
        default=None, name="copy"
    )
    source: Annotated[Source | None, Meta(description="The runtime that was copied.")] = None
    in_flight_since: Annotated[
        str | None, _time("Since when it is not known what became of a create; absent in other phases than InFlight.")
    ] = None
    outcome: Annotated[Outcome | None, Meta(description="How it ended; absent until it has.")] = None
    epoch: Annotated[
        str | None,
        Meta(
            description=(
                "The submission's first epoch, a number in decimal, which can exceed a signed 64-bit integer; each "
                "restart of the JobSet makes it one more."
            )
        ),
    ] = None
    restarts: Annotated[int | None, Meta(description="How often the JobSet restarted the job; 0 once started.")] = None
    last_restart: Annotated[
        Restart | None, Meta(description="The last restart by the JobSet, and the failure that caused it.")
    ] = None
    evictions: Annotated[
        int | None, Meta(description="How often Kueue put the job back into its queue, by preemption or otherwise.")
    ] = None
    conditions: Annotated[
        tuple[Condition, ...],
        _listed_by("type", "The steps of the Start, the job's end, and what is still to be expected."),
    ] = ()

    def condition(self, kind: str) -> Condition | None:
        """Return a condition by its type."""
        for one in self.conditions:
            if one.type == kind:
                return one
        return None

    @property
    def says_started(self) -> bool:
        """Whether the condition Started is True."""
        for one in self.conditions:  # noqa: SIM110 - asked dozens of times in a reconcile; a generator costs more.
            if one.type == ConditionType.STARTED and one.status is ConditionStatus.TRUE:
                return True
        return False

    @property
    def has_started(self) -> bool:
        """Whether Started has been recorded, or an end after it: the steps are then never made again.

        Parts of a status may get lost, so that anything that is left of it counts (Nothing starts anew).
        """
        if self.says_started or self.was_refused:
            return self.says_started
        past = self.phase is not None and self.phase not in _BEFORE_STARTED
        return past or self.recorded_end is not None

    @property
    def recorded_end(self) -> Phase | None:
        """How the job ended, as far as anything is left to tell; None while that is not recorded."""
        succeeded, finished = self.condition(ConditionType.SUCCEEDED), self.condition(ConditionType.FINISHED)
        told = [self.phase, self.outcome and self.outcome.state, finished and finished.reason]
        if succeeded is not None and succeeded.status is not ConditionStatus.UNKNOWN:
            told += [succeeded.reason, Phase.SUCCEEDED if succeeded.status is ConditionStatus.TRUE else Phase.FAILED]
        return next((end for word in told for end in _ENDS if end == word), None)

    @property
    def was_refused(self) -> bool:
        """Whether a final refusal has been recorded, as far as anything is left to tell; Started outweighs it."""
        started, finished = self.condition(ConditionType.STARTED), self.condition(ConditionType.FINISHED)
        of_class = started is not None and started.status is ConditionStatus.FALSE and started.reason in _FINAL
        told = (self.phase, self.outcome and self.outcome.state, finished and finished.reason)
        return of_class or (any(word in _REFUSALS for word in told) and not self.was_cancelled)

    @property
    def was_cancelled(self) -> bool:
        """Whether a cancellation has been recorded, as far as anything is left to tell: it stops, or has ended so."""
        succeeded = self.condition(ConditionType.SUCCEEDED)
        is_told = succeeded is not None and succeeded.reason == Phase.CANCELLED and self.phase in _WHILE_CANCELLED
        return is_told or self.recorded_end is Phase.CANCELLED


class BackendCondition(Condition, frozen=True):
    """One aspect of the backend's state, in the form that kubectl wait and kstatus read."""

    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=316,
            description=(
                "Ready says whether every gate is proven, or that the backend is Closed or ReadOnly as its spec says; "
                "Reconciling is present while the gates are probed, or will be probed again."
            ),
        ),
    ]
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_024,
            description=(
                "One word: Proven, ObserveOnly (a gate is not proven, and Starts are refused), Probing, or the state "
                "of a backend that is Closed or ReadOnly, and not probed."
            ),
        ),
    ]
    message: Annotated[str, _message("Details for a person: each gate that is not proven, and why.")]


class GateState(Status, frozen=True):
    """One gate of the backend, and whether it holds."""

    name: Annotated[
        BackendGate,
        _words(
            BackendGate,
            "fields-kept: the cluster stores a TrainJob as it was written; start-gate: behind its gate a job gets "
            "neither a pod nor quota; collected: deleting a TrainJob takes its copy with it.",
        ),
    ]
    proven: Annotated[bool, Meta(description="Whether the last probe, or a Start since, found that it holds.")]
    last_probe_time: Annotated[str | None, _time("When it was last probed; absent when never.")] = None
    reason: Annotated[
        Annotated[str, Meta(max_length=MESSAGE_LIMIT)] | None,
        Meta(description="Why it is not proven; absent when it is."),
    ] = None


class ProbedRuntime(Status, frozen=True):
    """The runtime that the probe was started on."""

    kind: Annotated[str, Meta(description="ClusterTrainingRuntime or TrainingRuntime.")]
    name: Annotated[str, Meta(description="The runtime's name.")]
    uid: Annotated[str | None, Meta(description="The runtime's UID; absent when there was none of that name.")] = None
    generation: Annotated[int | None, Meta(description="The runtime's generation when it was probed.")] = None


class ServedApi(Status, frozen=True):
    """A version of an API as the API server served it."""

    api: Annotated[str, Meta(description="Group and version, such as trainer.kubeflow.org/v1alpha1.")]
    hash: Annotated[
        str | None,
        Meta(description="The hash of it in the API server's OpenAPI index; absent when it was not served."),
    ] = None


class Proof(Status, frozen=True):
    """What the gates' verdicts rest on; when any of it changes, the gates are probed again."""

    operator_version: Annotated[str, Meta(description="The operator's version.")]
    backend_generation: Annotated[
        int, Meta(description="The metadata.generation of the backend, which follows its spec.")
    ]
    runtime: Annotated[ProbedRuntime, Meta(description="The runtime that the probe was started on.")]
    served: Annotated[tuple[ServedApi, ...], _listed_by("api", "The APIs of Trainer, JobSet and Kueue.")]


class BackendStatus(Status, frozen=True):
    """What is known of the backend: whether its gates hold, and what that rests on."""

    observed_generation: Annotated[
        int | None,
        Meta(description="The metadata.generation that this status is about; -1 before it was first reconciled."),
    ] = None
    conditions: Annotated[
        tuple[BackendCondition, ...],
        _listed_by("type", "Whether Starts are taken, and whether the gates are being probed."),
    ] = ()
    gates: Annotated[
        tuple[GateState, ...],
        _listed_by(
            "name", "Each gate and whether it is proven; absent until the first probe has ended, and Starts wait."
        ),
    ] = ()
    proof: Annotated[
        Proof | None,
        Meta(description="What the verdicts rest on; absent after a Start found a gate that does not hold."),
    ] = None

    def condition(self, kind: str) -> BackendCondition | None:
        """Return a condition by its type."""
        return next((one for one in self.conditions if one.type == kind), None)
