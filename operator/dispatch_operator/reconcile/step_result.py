"""What a step of a Start can come to, besides an action: passed, waiting, or refused."""

from dataclasses import dataclass

from dispatch_operator.api.enums import Condition, ErrorClass
from dispatch_operator.checks.problems import Problem, class_of, summary
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Get
from dispatch_operator.reconcile.observation import Observed


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing is wrong, but the step can't go on yet: something else must end first."""

    step: Condition
    reason: str
    """CamelCase, for the conditions."""
    message: str
    requeue_after: float | None = None
    """Seconds until the next reconcile, if no event comes first."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step failed: the class and message for the conditions (docs/contract.md, Error classes)."""

    step: Condition
    error_class: ErrorClass
    message: str
    transient: bool = False
    """True when it is tried again by itself, with backoff, rather than when something changes."""
    retry_after: float | None = None
    """Seconds that the API server asked to wait, if it did."""
    requeue_after: float | None = None
    """Seconds until the next reconcile, when a time limit rather than a backoff decides."""
    never_final: bool = False
    """True in the steps after the create, where what is transient stops nothing (Definite failures only)."""

    @classmethod
    def of(cls, step: Condition, problems: tuple[Problem, ...]) -> "Refusal":
        """Make one refusal of all that is wrong."""
        return cls(step, class_of(problems), summary(problems))


Verdict = Waiting | Refusal


def transient(step: Condition, error: ApiError, *, never_final: bool = False) -> Refusal:
    """Return the refusal for a request that changed nothing or was only a read: it is tried again."""
    return Refusal(
        step,
        ErrorClass.UNREACHABLE,
        str(error),
        transient=True,
        retry_after=error.retry_after,
        never_final=never_final,
    )


def read_first(observed: Observed, get: Get, step: Condition, *, never_final: bool = False) -> Get | Refusal | None:
    """Return the read that a step needs first, the refusal when it failed, or None when its object is known live."""
    match observed.due(get):
        case ApiError() as error:
            return transient(step, error, never_final=never_final)
        case due:
            return due
