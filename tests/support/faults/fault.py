"""What can happen to one request and its answer. The errors are made by the operator's own classification."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import aiohttp

from dispatch_operator.kube.client import from_exception
from dispatch_operator.kube.errors import ApiError, answered
from support.fake_api import Request

WRITES = ("create", "patch", "delete", "apply")


class Says(Enum):
    """What a fault says about the request, in the words of docs/contract.md, API answers."""

    NO = "definite"
    NOTHING_HAPPENED = "nothing happened"
    NOT_KNOWN = "unanswered"


@dataclass(frozen=True)
class Fault:
    """One way in which a request does not succeed."""

    name: str
    says: Says
    error: Callable[[Request], ApiError]
    carried_out: bool = False
    """Whether the request took effect all the same."""
    slow: bool = False
    """Whether the caller's whole bound passes before it shows."""
    verbs: tuple[str, ...] = ("get", "list", *WRITES)
    """The requests that it can happen to."""

    def __str__(self) -> str:
        return self.name

    def can_meet(self, request: Request) -> bool:
        """Tell whether a request can end like this; a read that was carried out unseen is one that was not."""
        return request.verb in self.verbs and not (self.carried_out and request.verb not in WRITES)


def _answer(status: int, reason: str, message: str, retry_after: str | None = None) -> Callable[[Request], ApiError]:
    def error(request: Request) -> ApiError:
        text = message.format(verb=request.verb, kind=request.kind, name=request.name)
        body = json.dumps({"kind": "Status", "reason": reason, "message": text}) if reason else text
        return answered(request.verb, f"{request.kind} {request.name}", status, body, retry_after)

    return error


def _broken(exception: Callable[[], Exception]) -> Callable[[Request], ApiError]:
    return lambda request: from_exception(request.verb, f"{request.kind} {request.name}", exception())


def _resets() -> Callable[[], Exception]:
    """Return what a reset connection raises: its text names another port each time."""
    ports: Iterator[int] = iter(range(32_768, 10**9))
    return lambda: aiohttp.ClientOSError(
        104, f"read tcp 10.0.0.9:{next(ports)}->10.0.0.1:443: connection reset by peer"
    )


_RESET = _resets()
_DENIED = 'User "system:serviceaccount:dispatch:operator" cannot {verb} resource "{kind}" in API group "x"'
_TIMED_OUT, _SAYS_500 = "etcdserver: request timed out", "InternalError"

FAULTS = (
    Fault("400", Says.NO, _answer(400, "BadRequest", "no")),
    Fault("401", Says.NOTHING_HAPPENED, _answer(401, "Unauthorized", "Unauthorized")),
    Fault("403 of the authorizer", Says.NOTHING_HAPPENED, _answer(403, "Forbidden", _DENIED)),
    Fault(
        "403 of admission",
        Says.NO,
        _answer(403, "Forbidden", 'admission webhook "x" denied the request: no'),
        verbs=WRITES,
    ),
    Fault("403 of a quota", Says.NO, _answer(403, "Forbidden", "exceeded quota: objects"), verbs=("create",)),
    Fault("404", Says.NO, _answer(404, "NotFound", '"{name}" not found'), verbs=("create", "patch")),
    Fault(
        "404 of a kind that is not served",
        Says.NO,
        _answer(404, "", "404 page not found"),
        verbs=("get", "list", "create", "patch", "apply"),
    ),
    Fault("405", Says.NO, _answer(405, "MethodNotAllowed", "no"), verbs=WRITES),
    Fault("409 Conflict", Says.NOTHING_HAPPENED, _answer(409, "Conflict", "the object has been modified")),
    Fault("409 AlreadyExists", Says.NO, _answer(409, "AlreadyExists", '"{name}" already exists'), verbs=("create",)),
    Fault("410", Says.NO, _answer(410, "Expired", "too old resource version")),
    Fault("413", Says.NO, _answer(413, "RequestEntityTooLarge", "too large"), verbs=WRITES),
    Fault("422", Says.NO, _answer(422, "Invalid", "is invalid"), verbs=WRITES),
    Fault("429 with Retry-After", Says.NOTHING_HAPPENED, _answer(429, "TooManyRequests", "slow down", "7")),
    Fault(
        "500 of a webhook that can't be called",
        Says.NOTHING_HAPPENED,
        _answer(500, _SAYS_500, 'failed calling webhook "x": connection refused'),
        verbs=WRITES,
    ),
    Fault("connection refused", Says.NOTHING_HAPPENED, _broken(lambda: ConnectionRefusedError(111, "refused"))),
    *(
        Fault(f"{name}{', carried out' if carried_out else ''}", Says.NOT_KNOWN, error, carried_out, slow)
        for carried_out in (False, True)
        for name, error, slow in (
            ("500 of etcd", _answer(500, _SAYS_500, _TIMED_OUT), False),
            ("502", _answer(502, "", "Bad Gateway"), False),
            ("503", _answer(503, "ServiceUnavailable", "unavailable", "3"), False),
            ("504", _answer(504, "Timeout", "timed out"), True),
            ("no answer", _broken(TimeoutError), True),
            ("a reset", _broken(_RESET), False),
            ("a cut-off answer", _broken(lambda: aiohttp.ClientPayloadError("not enough data")), False),
        )
    ),
    # A proxy, or a load balancer, that sends a request twice shows the answer to the second.
    Fault(
        "409 AlreadyExists, carried out",
        Says.NO,
        _answer(409, "AlreadyExists", '"{name}" already exists'),
        carried_out=True,
        verbs=("create",),
    ),
    Fault(
        "403 of a quota, carried out",
        Says.NO,
        _answer(403, "Forbidden", "exceeded quota: objects"),
        carried_out=True,
        verbs=("create",),
    ),
)


class Lasts(Enum):
    """How long a fault lasts."""

    ONCE = "once"
    A_WHILE = "for a while"
    OUTAGE = "as an outage of everything"


WHILE = 100.0
"""Seconds that a lasting fault takes."""
OF_AN_OUTAGE = frozenset({"401", "429 with Retry-After", "503", "connection refused"})


def durations(fault: Fault) -> tuple[Lasts, ...]:
    """Return how long a fault may last.

    In an outage of everything a verdict can't be recorded either, as long as each request fails at once. That a name is
    taken can be untrue by the time that it is looked at, but not for long.
    """
    if fault.name == "409 AlreadyExists":
        return (Lasts.ONCE,)
    return tuple(Lasts) if fault.name in OF_AN_OUTAGE else (Lasts.ONCE, Lasts.A_WHILE)
