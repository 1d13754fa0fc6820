"""API failures: what an answer, or the lack of one, says about what happened (docs/contract.md, API answers)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

_AUTHORIZER = re.compile(r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)"')
_NOT_YET_SEEN = (
    # Trainer's validator, until its cache has seen the copy (kubeflow/trainer: ValidateObjects of the runtime).
    re.compile(r"must be created before the TrainJob is created"),
    # Kueue's validator, until its own cache has.
    re.compile(r"runtime '[^']*' not found"),
)


# etcd's own limit, and that of the API server's connection to it: neither has an HTTP status of its own.
_TOO_LARGE = re.compile(r"etcdserver: request is too large|trying to send message larger than max")

HTTP_BAD_REQUEST = 400
HTTP_UNAUTHORIZED = 401
HTTP_FORBIDDEN = 403
HTTP_NOT_FOUND = 404
HTTP_CONFLICT = 409
HTTP_GONE = 410
HTTP_TOO_LARGE = 413
HTTP_UNPROCESSABLE = 422
HTTP_SERVER_ERROR = 500


class Effect(Enum):
    """What is known of a request that did not succeed."""

    DEFINITE = "the API server said no"
    NOTHING_HAPPENED = "the request was not carried out"
    UNANSWERED = "the request may have been carried out"


@dataclass(eq=False)
class ApiError(Exception):
    """A request that failed, with all that its handling needs.

    ``status`` is the HTTP status, or None when no answer came; ``reason`` is the API's own word (``AlreadyExists``);
    ``retry_after`` is in seconds, as the server asked.
    """

    verb: str
    target: str
    effect: Effect
    message: str
    status: int | None = None
    reason: str = ""
    retry_after: float | None = None
    invalid_fields: tuple[str, ...] = ()
    """Of an object that is refused as not valid, as paths."""

    def __str__(self) -> str:
        code = f" ({self.status})" if self.status else ""
        return f"{self.verb} {self.target} failed{code}: {self.message}"

    @property
    def already_exists(self) -> bool:
        """True when another object holds the name."""
        return self.status == HTTP_CONFLICT and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """True when a UID or resourceVersion precondition failed."""
        return self.status == HTTP_CONFLICT and not self.already_exists

    @property
    def not_found(self) -> bool:
        """True when the object of that name does not exist."""
        return self.status == HTTP_NOT_FOUND

    @property
    def lacks_right(self) -> bool:
        """True when the account may not make the request, whatever it is about."""
        return self.status == HTTP_FORBIDDEN and _AUTHORIZER.search(self.message) is not None

    @property
    def for_good(self) -> bool:
        """True when the same request on the same object would fail again."""
        return self.effect is Effect.DEFINITE and not (self.already_exists or self.not_found)

    @property
    def exceeds_quota(self) -> bool:
        """True when a ResourceQuota is full."""
        return self.status == HTTP_FORBIDDEN and "exceeded quota" in self.message

    @property
    def too_large(self) -> bool:
        """True when there is no room for what was written, and never will be."""
        return self.status == HTTP_TOO_LARGE or _TOO_LARGE.search(self.message) is not None

    @property
    def webhook_has_not_seen_the_copy(self) -> bool:
        """True for the two denials of a TrainJob's create that pass by themselves: a cache is behind."""
        return self.status == HTTP_FORBIDDEN and any(pattern.search(self.message) for pattern in _NOT_YET_SEEN)


class PageTooLargeError(ApiError):
    """A page of a list holds more bytes than are taken at once; fewer objects must be asked for."""


class MalformedAnswerError(Exception):
    """The API server, or something between, sent what is no list and no watch, or broke off."""


def answered(verb: str, target: str, status: int, body: str, retry_after: str | None) -> ApiError:
    """Return the error that an answer of ``status`` means, with ``body`` as the API server sent it."""
    answer = _status_object(body)
    message = str(answer.get("message") or body.strip() or "no message")
    reason = str(answer.get("reason") or "")
    denied = _AUTHORIZER.search(message) if status == HTTP_FORBIDDEN else None
    if denied:
        message = (
            f"the operator may not {denied['verb']} {denied['resource']}; grant it in the operator's role: {message}"
        )
    if status == HTTP_NOT_FOUND and not answer:
        message = "the API server does not serve this kind; is its CRD installed?"
    return ApiError(
        verb=verb,
        target=target,
        effect=_effect(status, reason, message, denied=denied is not None),
        message=message,
        status=status,
        reason=reason,
        retry_after=_seconds(retry_after),
        invalid_fields=_fields(answer) if status == HTTP_UNPROCESSABLE else (),
    )


def from_status(verb: str, target: str, status: Mapping[str, Any]) -> ApiError:
    """Return the error that a Status object means, which a watch sends in the place of an answer."""
    code = status.get("code")
    return answered(verb, target, code if type(code) is int else HTTP_SERVER_ERROR, json.dumps(status), None)


def _effect(status: int, reason: str, message: str, *, denied: bool) -> Effect:
    match status:
        case 401 | 429:
            return Effect.NOTHING_HAPPENED
        case 403 if denied or "status unknown for quota" in message:
            # A quota that was just made is counted in a moment.
            return Effect.NOTHING_HAPPENED
        case 409 if reason != "AlreadyExists":
            return Effect.NOTHING_HAPPENED
        case 500 if "failed calling webhook" in message:
            return Effect.NOTHING_HAPPENED
        case _ if _TOO_LARGE.search(message):
            return Effect.DEFINITE
        case 408:
            return Effect.UNANSWERED
        case _ if status >= HTTP_SERVER_ERROR:
            return Effect.UNANSWERED
        case _:
            return Effect.DEFINITE


def _status_object(body: str) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _fields(answer: dict[str, Any]) -> tuple[str, ...]:
    """Read which fields a Status object tells of."""
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    fields = (cause.get("field") for cause in causes or () if isinstance(cause, dict))
    return tuple(dict.fromkeys(field for field in fields if isinstance(field, str)))


def _seconds(retry_after: str | None) -> float | None:
    """Read a Retry-After header's seconds; a date, which the API server never sends, counts as absent."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else None
