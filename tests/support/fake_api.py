"""An API server in memory: names, UIDs, resourceVersions, preconditions, generations, garbage collection and faults.

It stands in for the real one where faults or speed matter; what Kubernetes really does is witnessed by tests/cluster.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dispatch_operator.kube.errors import ApiError, Effect, answered
from support.records import copied

Object = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One request, as faults and assertions see it."""

    verb: str
    kind: str
    name: str
    subresource: str = ""
    body: Object | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " ".join(part for part in (self.verb, self.kind, self.subresource) if part)


CLUSTER_SCOPED = ("ClusterTrainingRuntime", "ClusterQueue", "AdmissionCheck", "WorkloadPriorityClass")

Fault = Callable[[Request], ApiError | None]


@dataclass
class FakeApi:
    """Implements the methods of `dispatch_operator.kube.client.Client`."""

    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    before: Fault = lambda _request: None
    """Consulted before a request is carried out: an error means that it never was."""
    after: Fault = lambda _request: None
    """Consulted after a request was carried out: an error means that its answer was lost."""
    admit: Callable[[Request, Object], Object] = lambda _request, body: body
    """What a mutating webhook makes of a written object."""
    count: int = 0
    created: str = "2026-01-01T00:00:00Z"
    """The creationTimestamp of what is created."""
    collects: bool = False
    """Whether the garbage collector runs, after every delete."""
    watches: list[Callable[[str, Object, bool], None]] = field(default_factory=list)
    """Called with the kind and each object that was written, or that is gone."""
    namespace: str = "team-a"
    """Of the kubeconfig's context."""
    documents: dict[str, Object] = field(default_factory=dict)
    """What is served, by API version: OpenAPI documents."""

    def put(self, obj: Object, **status: Any) -> Object:
        """Place an object as if somebody had created it."""
        made = copied(obj)
        meta = made["metadata"]
        self.count += 1
        meta.setdefault("uid", f"uid-{self.count}")
        meta.setdefault("creationTimestamp", self.created)
        meta.setdefault("generation", 1)
        meta["resourceVersion"] = str(self.count)
        if status:
            made["status"] = status
        self.objects[self._key(made["kind"], meta.get("namespace"), meta["name"])] = made
        self._tell(made, gone=False)
        return copied(made)

    def one(self, kind: str) -> Object:
        """Return the only object of a kind."""
        (found,) = self.all(kind)
        return found

    def all(self, kind: str) -> list[Object]:
        """Return copies of all objects of a kind."""
        return [copied(obj) for (held, _, _), obj in self.objects.items() if held == kind]

    def edit(self, kind: str, change: Callable[[Object], None]) -> None:
        """Change the only object of a kind as a human would."""
        obj = self.one(kind)
        change(obj)
        self._store(obj)

    def writes(self) -> list[str]:
        """Return the requests that were no reads, in order."""
        return [str(request) for request in self.requests if request.verb not in {"get", "list"}]

    def collect(self) -> None:
        """Delete what is owned by objects that are gone, as the garbage collector does."""
        held = {obj["metadata"]["uid"] for obj in self.objects.values()}
        for key, obj in list(self.objects.items()):
            owners = obj["metadata"].get("ownerReferences")
            if owners and not any(owner["uid"] in held for owner in owners):
                del self.objects[key]
                self._tell(obj, gone=True)
                return self.collect()
        return None

    async def get(self, kind: str, namespace: str | None, name: str, *, timeout: float) -> Object | None:
        assert timeout > 0
        self._request("get", kind, name)
        found = self.objects.get(self._key(kind, namespace, name))
        self._answer()
        return copied(found)

    async def select(
        self,
        kind: str,
        namespace: str | None,
        *,
        timeout: float,
        read: Callable[[Object], T],
        most: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        assert timeout > 0
        self._request("list", kind, "")
        labels, fields = (
            dict(pair.split("=") for pair in selector.split(",") if pair)
            for selector in (label_selector, field_selector)
        )
        found = [
            read(copied(obj))
            for (held, where, _), obj in self.objects.items()
            if held == kind
            and namespace in {None, where}
            and labels.items() <= obj["metadata"].get("labels", {}).items()
            and all(_field(obj, path) == value for path, value in fields.items())
        ]
        self._answer()
        return tuple(found[:most])

    async def create(self, kind: str, namespace: str, body: Object, *, timeout: float) -> Object:
        assert timeout > 0
        name = body["metadata"]["name"]
        request = self._request("create", kind, name)
        if self._key(kind, namespace, name) in self.objects:
            raise refusal("create", kind, 409, "AlreadyExists", f'"{name}" already exists')
        made = self.admit(request, copied(dict(body)))
        made["metadata"]["namespace"] = namespace
        made = self.put(made)
        self._answer()
        return made

    async def patch(
        self, kind: str, namespace: str, name: str, body: Object, *, timeout: float, subresource: str = ""
    ) -> Object:
        assert timeout > 0
        self._request("patch", kind, name, subresource, body)
        held = self._existing("patch", kind, namespace, name)
        self._require("patch", kind, held, body["metadata"])
        merged = _merge(copied(held), {key: body[key] for key in body})
        if subresource == "status":
            merged["metadata"]["managedFields"] = written_status(held)
        if merged != held:
            self._store(merged)
        made = copied(self.objects[self._key(kind, namespace, name)])
        self._answer()
        return made

    async def delete(
        self, kind: str, namespace: str, name: str, *, timeout: float, uid: str, resource_version: str | None = None
    ) -> None:
        assert timeout > 0
        self._request("delete", kind, name)
        held = self._existing("delete", kind, namespace, name)
        self._require("delete", kind, held, {"uid": uid, "resourceVersion": resource_version})
        self.remove(kind, namespace, name)
        self._answer()

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object as if somebody had, and what it owned if the garbage collector runs."""
        gone = self.objects.pop(self._key(kind, namespace, name))
        self._tell(gone, gone=True)
        if self.collects:
            self.collect()

    async def served(self, *, timeout: float) -> dict[str, str]:
        assert timeout > 0
        self._request("get", "Served", "")
        self._answer()
        return {api: self._hash(document) for api, document in self.documents.items()}

    async def schemas(self, api: str, served_hash: str, *, timeout: float) -> Object:
        assert timeout > 0
        assert served_hash == self._hash(self.documents[api])
        self._request("get", "Schemas", api)
        self._answer()
        return self.documents[api]

    @staticmethod
    def _hash(document: Object) -> str:
        return hashlib.sha256(json.dumps(document).encode()).hexdigest()

    def _tell(self, obj: Object, *, gone: bool) -> None:
        for watch in self.watches:
            watch(obj["kind"], copied(obj), gone)

    def _request(self, verb: str, kind: str, name: str, subresource: str = "", body: Object | None = None) -> Request:
        self._last = Request(verb, str(kind), name, subresource, body)
        self.requests.append(self._last)
        if error := self.before(self._last):
            raise error
        return self._last

    def _answer(self) -> None:
        if error := self.after(self._last):
            raise error

    def _existing(self, verb: str, kind: str, namespace: str, name: str) -> Object:
        held = self.objects.get(self._key(kind, namespace, name))
        if held is None:
            raise refusal(verb, kind, 404, "NotFound", f'"{name}" not found')
        return held

    def _require(self, verb: str, kind: str, held: Object, wanted: Object) -> None:
        for key in ("uid", "resourceVersion"):
            if wanted.get(key) is not None and held["metadata"][key] != wanted[key]:
                raise refusal(verb, kind, 409, "Conflict", f"{key} differs")

    def _store(self, obj: Object) -> None:
        self.count += 1
        meta = obj["metadata"]
        key = self._key(obj["kind"], meta.get("namespace"), meta["name"])
        if self.objects[key].get("spec") != obj.get("spec"):
            meta["generation"] += 1
        meta["resourceVersion"] = str(self.count)
        self.objects[key] = copied(obj)
        self._tell(obj, gone=False)

    @staticmethod
    def _key(kind: str, namespace: str | None, name: str) -> tuple[str, str, str]:
        return (str(kind), "" if kind in CLUSTER_SCOPED else (namespace or ""), name)


def written_status(obj: Object) -> list[Object]:
    """Return what the API server remembers of a write of an object's status."""
    written = obj["metadata"].get("creationTimestamp", "2026-01-01T00:00:00Z")
    return [{"manager": "dispatch-operator", "operation": "Update", "subresource": "status", "time": written}]


def refusal(verb: str, kind: str, status: int, reason: str, message: str) -> ApiError:
    """Return the error of an answer, as the API server words it."""
    body = f'{{"kind":"Status","reason":"{reason}","message":{_quoted(message)}}}'
    return answered(verb, kind, status, body, None)


def unanswered(verb: str = "create", kind: str = "TrainJob") -> ApiError:
    """Return the error of a request whose answer never came."""
    return ApiError(verb, kind, Effect.UNANSWERED, "no answer in time")


def nth(number: int, verb: str, kind: str, error: ApiError) -> Fault:
    """Return a fault of the n-th request of a kind, counted from 1."""
    counter = iter(range(1, 1_000_000))

    def fault(request: Request) -> ApiError | None:
        return error if (request.verb, request.kind) == (verb, kind) and next(counter) == number else None

    return fault


def always(verb: str, kind: str, error: ApiError) -> Fault:
    """Return a fault of every request of a kind."""
    return lambda request: error if (request.verb, request.kind) == (verb, kind) else None


def _field(obj: Object, path: str) -> Any:
    """Return what a field selector compares."""
    found: Any = obj
    for part in path.split("."):
        found = (found or {}).get(part)
    return found


def _quoted(text: str) -> str:
    return json.dumps(text)


def _merge(held: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(held) if isinstance(held, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result
