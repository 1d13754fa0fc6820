"""The operator's connection to the model's API server: each request suspends the reconcile that makes it."""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any

import msgspec

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import typed
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Store
from support.fake_api import Request

Value = dict[str, Any]
Answer = Value | tuple[Value, ...] | ApiError | None
WRITES = ("create", "patch", "delete")


@dataclass(frozen=True, eq=False)
class SuspendedRequest:
    """One request; equal ones are identical."""

    request: Request
    body: Value
    """What is written, or the preconditions of a delete, or the label selector of a list."""

    @property
    def writes(self) -> bool:
        """Tell whether it changes anything."""
        return self.request.verb in WRITES

    def __str__(self) -> str:
        return str(self.request)


_ASKED: dict[tuple[Request, bytes], SuspendedRequest] = {}


_CREATED: dict[tuple[Request, int], tuple[Value, SuspendedRequest]] = {}
"""By the identity of its body, which is kept so that no identity comes again: a decision's is one object each time."""


def suspended(request: Request, body: Value) -> SuspendedRequest:
    """Return the one request of these values."""
    return _ASKED.setdefault((request, msgspec.json.encode(body, order="sorted")), SuspendedRequest(request, body))


def _created(request: Request, body: Value) -> SuspendedRequest:
    """Return the same for a body that is large and comes again and again."""
    key = (request, id(body))
    if key not in _CREATED:
        _CREATED[key] = (body, suspended(request, body))
    return _CREATED[key][1]


class _Ask:
    def __init__(self, verb: str, kind: str, name: str, body: Value, subresource: str = "") -> None:
        asked = _created if verb == "create" else suspended
        self.suspended = asked(Request(verb, str(kind), name, subresource), body)

    def __await__(self) -> Generator[SuspendedRequest, Answer, Any]:
        answer = yield self.suspended
        if isinstance(answer, ApiError):
            raise answer
        return answer


class SuspendingClient:
    """Stands in for `Client`."""

    async def get(self, kind: str, _namespace: str | None, name: str, *, timeout: float) -> Any:
        assert timeout > 0
        return await _Ask("get", kind, name, {})

    async def select(
        self,
        kind: str,
        _namespace: str,
        *,
        timeout: float,
        read: Callable[[Value], Any],
        most: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Any:
        assert timeout > 0
        listed = await _Ask("list", kind, "", {"labels": label_selector, "fields": field_selector})
        return tuple(map(read, listed))[:most]

    async def create(self, kind: str, _namespace: str, body: Value, *, timeout: float) -> Any:
        assert timeout > 0
        return await _Ask("create", kind, body["metadata"]["name"], body)

    async def patch(
        self, kind: str, _namespace: str, name: str, body: Value, *, timeout: float, subresource: str = ""
    ) -> Any:
        assert timeout > 0
        return await _Ask("patch", kind, name, body, subresource)

    async def delete(
        self, kind: str, _namespace: str, name: str, *, timeout: float, uid: str, resource_version: str | None = None
    ) -> None:
        assert timeout > 0
        await _Ask("delete", kind, name, {"metadata": {"uid": uid, "resourceVersion": resource_version}})


class SuspendingStore(Store):
    """A cache whose wait for a Workload suspends the reconcile, too."""

    async def workload_of(self, _namespace: str, owner_uid: str, seconds: float) -> Any:
        assert seconds > 0
        found = await _Ask("await", "Workload", owner_uid, {})
        return None if found is None else typed.record("get", Kind.WORKLOAD, found)


def advance(reconcile: Coroutine[SuspendedRequest, Answer, object], answer: Answer) -> SuspendedRequest | None:
    """Resume a reconcile; return its next request, or None at its end."""
    try:
        return reconcile.send(answer)
    except StopIteration:
        return None
