"""What a reflector tells, and whether it tells it rightly."""

from typing import Any

from dispatch_operator.kube.known_objects import Identity

Object = dict[str, Any]


class Recorder:
    """A handler that allows nothing to be told twice, and no deletion of what is not there."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.log: list[tuple[str, str, str]] = []
        """Each as ("put", name, resourceVersion) or ("deleted", name, UID)."""
        self.syncs = 0
        self.wrongs: list[str] = []
        self._versions: set[tuple[str, str]] = set()
        self._latest = 0
        self._went_back = False

    def added_or_modified(self, obj: Object, *, listed: bool) -> None:
        metadata = obj["metadata"]
        key, uid, version = (metadata["namespace"], metadata["name"]), metadata["uid"], metadata["resourceVersion"]
        # After an etcd restore everything is told anew.
        self._went_back |= listed and int(version) < self._latest
        self._latest = max(self._latest, int(version))
        if (uid, version) in self._versions and not (listed and self._went_back):
            self.wrongs.append(f"{key} of version {version} was told twice")
        if key in self.objects and self.objects[key]["metadata"]["uid"] != uid:
            self.wrongs.append(f"{key} was made anew, and the one before it was not told as deleted")
        self._versions.add((uid, version))
        self.objects[key] = obj
        self.log.append(("put", key[1], version))

    def deleted(self, identity: Identity) -> None:
        held = self.objects.pop((identity.namespace, identity.name), None)
        if held is None or held["metadata"]["uid"] != identity.uid:
            self.wrongs.append(f"{identity} was told as deleted, but was not there")
        self.log.append(("deleted", identity.name, identity.uid))

    def synced(self) -> None:
        self.syncs += 1
