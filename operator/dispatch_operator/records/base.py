"""What every object has: its metadata, and in most cases conditions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, field, json

from dispatch_operator.api import group
from dispatch_operator.api.enums import ConditionStatus
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.names import gate_names


class Record(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A part of an object as the API server returned it; what is not listed is not kept."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a request's body holds it."""
        made: dict[str, Any] = json.decode(json.encode(self))
        return made


class OwnerReference(Record, frozen=True):
    """An object that another goes with."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Keys(Record, frozen=True):
    """Labels or annotations."""

    def differing(self, wanted: Mapping[str, str]) -> list[str]:
        """Return the keys whose values are not as they are wanted."""
        held = self.as_json()
        return [key for key, value in wanted.items() if held.get(key) != value]


class Labels(Keys, frozen=True):
    """The labels that are read."""

    job: str | None = field(default=None, name=group.LABEL_JOB)
    submission: str | None = field(default=None, name=group.LABEL_SUBMISSION)
    managed_by: str | None = field(default=None, name=group.LABEL_MANAGED_BY)
    probe: str | None = field(default=None, name=group.LABEL_PROBE)
    framework: str | None = field(default=None, name=group.LABEL_FRAMEWORK)
    replicated_job: str | None = field(default=None, name=group.LABEL_REPLICATED_JOB)
    restart_attempt: str | None = field(default=None, name=group.LABEL_RESTART_ATTEMPT)


class Annotations(Keys, frozen=True):
    """The annotations that are read."""

    comment: str | None = field(default=None, name=group.ANNOTATION_COMMENT)
    start: str | None = field(default=None, name=group.ANNOTATION_START)
    start_uid: str | None = field(default=None, name=group.ANNOTATION_START_UID)
    source: str | None = field(default=None, name=group.ANNOTATION_SOURCE)
    backend: str | None = field(default=None, name=group.ANNOTATION_BACKEND)
    opened: str | None = field(default=None, name=group.ANNOTATION_OPENED)
    gated_by: str | None = field(default=None, name=group.ANNOTATION_GATED_BY)
    held: str | None = field(default=None, name=group.ANNOTATION_HELD)


class ObjectMeta(Record, frozen=True):
    """Who an object is, whose, and since when."""

    name: str = ""
    namespace: str = ""
    """Empty for what belongs to the cluster."""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Labels = Labels()
    annotations: Annotations = Annotations()
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def is_terminating(self) -> bool:
        """Whether the object is being deleted."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The object that this one belongs to."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def marks(self) -> frozenset[str]:
        """The UIDs of the objects that this one says that it was made for: its annotation's, and its controller's."""
        named = (self.annotations.start_uid, self.controller and self.controller.uid)
        return frozenset(uid for uid in named if uid)

    @property
    def gates(self) -> tuple[str, ...]:
        """The names that gate Kueue's admission of a TrainJob or a Workload."""
        return gate_names(self.annotations.gated_by)


class KubeCondition(Record, frozen=True):
    """One aspect of an object's state, as another controller tells it."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class ConditionedStatus(Record, frozen=True):
    """A status with conditions."""

    conditions: tuple[KubeCondition, ...] = ()

    def condition(self, kind: str) -> KubeCondition | None:
        """Return a condition by its type."""
        return next((one for one in self.conditions if one.type == kind), None)

    def is_true(self, kind: str) -> bool:
        """Tell whether a condition stands and is True."""
        return any(one.type == kind and one.status == ConditionStatus.TRUE for one in self.conditions)


class KubeObject(Record, frozen=True):
    """An object of some kind."""

    KIND: ClassVar[Kind]

    metadata: ObjectMeta = ObjectMeta()
