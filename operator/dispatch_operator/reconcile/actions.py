"""The requests that a reconcile may make: what is decided is one of these values, and only `act` carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Action:
    """One request to the API server, or a short pause before one."""


@dataclass(frozen=True)
class ReadBackend(Action):
    """Read the DispatchBackend that the start names."""

    name: str


@dataclass(frozen=True)
class ReadRuntime(Action):
    """Read the source runtime (contract section 4, step 2)."""

    kind: str
    name: str


@dataclass(frozen=True)
class ReadCopy(Action):
    """Read the copy by its name."""


@dataclass(frozen=True)
class ReadTrainJob(Action):
    """Read the TrainJob by its name."""


@dataclass(frozen=True)
class ReadOther(Action):
    """Read the DispatchStart (or, for a probe's, DispatchBackend) that another's object names."""

    kind: str
    name: str


@dataclass(frozen=True)
class ReadPods(Action):
    """List the job's pods, to learn why it failed."""


@dataclass(frozen=True)
class ReadWarnings(Action):
    """List the TrainJob's Events, to learn why nothing runs."""


@dataclass(frozen=True)
class AwaitWorkload(Action):
    """Wait for the watch to tell of the TrainJob's Workload (step 9)."""

    seconds: float
    """At most; the watch ends it at once."""


@dataclass(frozen=True)
class ReadWorkload(Action):
    """Read the TrainJob's Workload, which a watch has told of."""

    name: str


@dataclass(frozen=True)
class FindWorkload(Action):
    """List the namespace's Workloads for the one that the TrainJob owns."""

    owner_uid: str


@dataclass(frozen=True)
class ReadLocalQueue(Action):
    """Read the backend's LocalQueue, to learn why a Workload is not as it must be."""

    name: str


@dataclass(frozen=True)
class ReadClusterQueue(Action):
    """Read the LocalQueue's ClusterQueue, for the same reason."""

    name: str


@dataclass(frozen=True)
class ReadCheck(Action):
    """Read the backend's AdmissionCheck, for the same reason."""

    name: str


@dataclass(frozen=True)
class CreateCopy(Action):
    """Create the copy (step 5)."""

    body: Object


@dataclass(frozen=True)
class AdoptCopy(Action):
    """Bring dispatch's annotations and the framework's label of a leftover copy up to date (step 5)."""

    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    uid: str
    resource_version: str


@dataclass(frozen=True)
class CreateTrainJob(Action):
    """Create the TrainJob (step 6)."""

    body: Object
    pause: float = 0.0
    """Seconds to wait first: a webhook's cache has not seen the copy yet."""


@dataclass(frozen=True)
class OwnCopy(Action):
    """Make the TrainJob the copy's owner (step 7)."""

    owner: Object
    uid: str
    resource_version: str


@dataclass(frozen=True)
class DeleteCopy(Action):
    """Delete a copy that is ours and unowned."""

    uid: str
    resource_version: str


@dataclass(frozen=True)
class DeleteTrainJob(Action):
    """Stop a TrainJob that is ours."""

    uid: str


@dataclass(frozen=True)
class SetSuspend(Action):
    """Open, hold or release the gate in plain mode (contract section 12)."""

    suspend: bool
    uid: str


@dataclass(frozen=True)
class SetGates(Action):
    """Open the gate in Kueue mode: write the names that are left in the annotation (contract section 12)."""

    names: tuple[str, ...]
    uid: str
    resource_version: str


@dataclass(frozen=True)
class SetActive(Action):
    """Hold or release a job in Kueue mode, by its Workload's `spec.active`."""

    active: bool
    name: str
    uid: str


@dataclass(frozen=True)
class MarkUnproven(Action):
    """Write a backend's status: a Start has shown that one of its gates does not hold (contract section 10)."""

    status: Object
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True)
class PatchStatus(Action):
    """Write the status, at the resourceVersion that the reconcile began with (section 4, rule 3)."""

    status: Object


@dataclass(frozen=True)
class Result:
    """The reconcile is over: nothing is to be done until something changes, or until a time has come.

    ``again`` asks for another reconcile with backoff, not before ``retry_after`` seconds; ``wake_after`` asks for one at a
    fixed number of seconds from now.
    """

    requeue: bool = False
    retry_after: float | None = None
    requeue_after: float | None = None
