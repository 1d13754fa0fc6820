"""Which objects a reflector has handed over, and in which version: all that it remembers of them."""

from typing import Any, NamedTuple

from dispatch_operator.kube.errors import MalformedAnswerError

Object = dict[str, Any]


class Identity(NamedTuple):
    """One object; another one that gets its name later has another UID. A cluster's object has an empty namespace."""

    namespace: str
    name: str
    uid: str


class KnownObjects:
    """Keeps two short strings an object, because there may be tens of thousands of them."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        """By "namespace/name", which is client-go's key: "uid resourceVersion"."""

    def __len__(self) -> int:
        return len(self._versions)

    def keys(self) -> set[str]:
        """Return the keys of all objects."""
        return set(self._versions)

    def holds(self, identity: Identity, resource_version: str) -> bool:
        """Tell whether this very version of an object is known."""
        return self._versions.get(key_of(identity)) == _version(identity, resource_version)

    def get(self, key: str) -> Identity | None:
        """Return the object that is known by this key."""
        if (version := self._versions.get(key)) is None:
            return None
        namespace, _, name = key.partition("/")
        return Identity(namespace, name, version.rpartition(" ")[0])

    def put(self, identity: Identity, resource_version: str) -> None:
        """Remember a version of an object in place of what was known by its key."""
        self._versions[key_of(identity)] = _version(identity, resource_version)

    def forget_versions(self) -> None:
        """Remember which objects there are, but not in which versions: these say nothing any more."""
        self._versions = {key: _without_version(version) for key, version in self._versions.items()}

    def remove(self, identity: Identity) -> None:
        """Forget what is known by the key of an object."""
        self._versions.pop(key_of(identity), None)


def key_of(identity: Identity) -> str:
    """Return the key of an object: neither a namespace nor a name can hold a slash."""
    return f"{identity.namespace}/{identity.name}"


def _version(identity: Identity, resource_version: str) -> str:
    return f"{identity.uid} {resource_version}"


def _without_version(version: str) -> str:
    return f"{version.rpartition(' ')[0]} "


def read_metadata(obj: object) -> tuple[Identity, str]:
    """Return which object this is, and its resourceVersion.

    Raises:
        MalformedAnswerError: It is no object that an API server has stored.
    """
    match obj:
        case {"metadata": {"name": str(name), "uid": str(uid)} as metadata} if name and uid:
            return Identity(metadata.get("namespace") or "", name, uid), read_resource_version(obj)
    raise MalformedAnswerError("an object without name or uid was received")


def read_resource_version(obj: object) -> str:
    """Return the resourceVersion of an object, or of a bookmark, which has nothing else.

    Raises:
        MalformedAnswerError: It has none.
    """
    match obj:
        case {"metadata": {"resourceVersion": str(resource_version)}} if resource_version:
            return resource_version
    raise MalformedAnswerError("an object without resourceVersion was received")
