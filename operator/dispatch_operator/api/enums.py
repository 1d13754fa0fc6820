"""Every word that users and supervisors see in a spec or a status: one place, one sentence each.

The values are binding; a test holds this file, the CRDs and `docs/contract.md` to the same sets.
"""

from enum import StrEnum


class Gate(StrEnum):
    """What the user wants of the start gate (docs/contract.md, The start gate)."""

    CLOSED = "Closed"
    OPEN = "Open"
    HELD = "Held"
    CANCELLED = "Cancelled"


class Retry(StrEnum):
    """Whether a refusal may be reconciled again (docs/contract.md, Error classes)."""

    ON_CHANGE = "OnChange"
    NEVER = "Never"


class BackendState(StrEnum):
    """What a backend lets through (docs/contract.md, Admit)."""

    OPEN = "Open"
    READ_ONLY = "ReadOnly"
    CLOSED = "Closed"


class BackendGate(StrEnum):
    """What the preflight probe proves of a backend (docs/contract.md, Backend gates)."""

    FIELDS_KEPT = "fields-kept"
    """The cluster stores a TrainJob and its copy as they were written (steps 5 to 8)."""
    START_GATE = "start-gate"
    """Behind its start gate a job gets neither a pod nor quota."""
    COLLECTED = "collected"
    """Deleting a TrainJob takes its copy with it."""


class ErrorClass(StrEnum):
    """The typed verdicts that supervisors act on (docs/contract.md, Error classes)."""

    INVALID = "ErrInvalid"
    """The request can never be right; final."""
    UNSUPPORTED = "ErrUnsupported"
    """This backend or runtime can't do it; reconciled again when either changes."""
    READ_ONLY = "ErrReadOnly"
    """The backend is read-only; reconciled again when it changes."""
    UNREACHABLE = "ErrUnreachable"
    """The backend is closed or missing, or a request that changed nothing failed; reconciled again."""
    REJECTED = "ErrRejected"
    """The cluster definitely refused, or what it holds is not what was asked; final."""
    OUTCOME_UNKNOWN = "ErrOutcomeUnknown"
    """A create or a stop went unanswered; resolved by reading, never given up silently."""


class Phase(StrEnum):
    """Where a DispatchStart is, in one word (docs/contract.md, Phases)."""

    PENDING = "Pending"
    """Waiting for something named in the Started condition; nothing has been refused for good."""
    STARTING = "Starting"
    """Steps 5 to 9 are going on."""
    IN_FLIGHT = "InFlight"
    """A create went unanswered and its outcome is being read (ErrOutcomeUnknown)."""
    REFUSED = "Refused"
    """A final refusal; nothing of it is left in the cluster."""
    GATED = "Gated"
    """Started, with the gate closed."""
    QUEUED = "Queued"
    """The gate is open; the job does not run yet."""
    RUNNING = "Running"
    """The job's pods run."""
    HOLDING = "Holding"
    """The gate is to be closed again, and the cluster does not hold the job yet."""
    HELD = "Held"
    """The gate was closed again, and the cluster holds the job."""
    STOPPING = "Stopping"
    """A refusal or a cancellation is recorded, and what was created is being deleted."""
    SUCCEEDED = "Succeeded"
    """The job completed."""
    FAILED = "Failed"
    """The job failed; the cause is in status.outcome."""
    CANCELLED = "Cancelled"
    """It was cancelled by its gate; nothing of it is left in the cluster."""
    LOST = "Lost"
    """The TrainJob vanished after Started was recorded."""

    @property
    def is_end(self) -> bool:
        """Whether nothing more will happen."""
        return self in _ENDS


_ENDS = frozenset({Phase.REFUSED, Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.LOST})


class ErrorKind(StrEnum):
    """Whose fault a failure was, and so whether another try may help (docs/contract.md, Outcome)."""

    USER = "User"
    """The program's or the request's: another try ends as this one."""
    SYSTEM = "System"
    """The node's, the cluster's, or a preemption: worth another try."""
    UNKNOWN = "Unknown"
    """Nothing tells."""


class Condition(StrEnum):
    """Condition types of a DispatchStart (docs/contract.md, Conditions), steps first and in order."""

    REQUEST_VALID = "RequestValid"
    """Steps 1 to 4: the backend takes it, the runtime is fit, the request is right."""
    RUNTIME_COPIED = "RuntimeCopied"
    """Step 5: the copy holds what the source held."""
    TRAIN_JOB_CREATED = "TrainJobCreated"
    """Step 6: the TrainJob exists."""
    OWNER_SET = "OwnerSet"
    """Step 7: deleting the TrainJob collects the copy."""
    READ_BACK = "ReadBack"
    """Step 8: the cluster stored what was written."""
    WORKLOAD_GATED = "WorkloadGated"
    """Step 9, Kueue mode only: the Workload waits behind the gate and the admission check."""
    STARTED = "Started"
    """The whole Start."""
    SUCCEEDED = "Succeeded"
    """The job: Unknown until it ends."""
    FINISHED = "Finished"
    """True when nothing more will happen, however it ended; False before."""
    READY = "Ready"
    """True once started; False after a refusal, a failed or a cancelled job."""
    RECONCILING = "Reconciling"
    """kstatus: present only while something goes on or will be tried again."""
    STALLED = "Stalled"
    """kstatus: present only when nothing more will happen and it did not end well."""


class ConditionStatus(StrEnum):
    """What a condition says, in Kubernetes' own words."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"
