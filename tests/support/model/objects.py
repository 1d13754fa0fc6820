"""Values that are the same object when they are equal: comparing and hashing what a state holds is then cheap."""

from typing import Any

import msgspec

from support.builders import NAME, RUNTIME
from support.records import at

Value = dict[str, Any]
START, BACKEND, JOB, COPY, WORKLOAD = "DispatchStart", "DispatchBackend", "TrainJob", "TrainingRuntime", "Workload"
CLUSTER_RUNTIME = "ClusterTrainingRuntime"
SLOTS = (
    (START, "llama-s1"),
    (START, "other"),
    (COPY, NAME),
    (JOB, NAME),
    (WORKLOAD, "work"),
    (BACKEND, "default"),
    (CLUSTER_RUNTIME, RUNTIME),
)
"""Where an object can stand: its kind and name."""
FIRST, SECOND, COPIED, TRAINS, QUEUES, BACKED, SOURCE = range(len(SLOTS))
Objects = tuple["Obj | None", ...]


class Obj:
    """One state of one object; equal ones are identical."""

    __slots__ = ("key", "value")
    _kept: dict[bytes, "Obj"] = {}  # noqa: RUF012 - shared on purpose.
    _specs: dict[bytes, Value] = {}  # noqa: RUF012

    def __init__(self, key: bytes, value: Value) -> None:
        self.key, self.value = key, value

    @classmethod
    def of(cls, value: Value) -> "Obj":
        """Return the one object of this value; the value must not be changed any more."""
        key = msgspec.json.encode(value, order="sorted")
        found = cls._kept.get(key)
        if found is None:
            # Specs are shared, so that what is read from one is read once.
            spec = value.get("spec", {})
            shared = cls._specs.setdefault(msgspec.json.encode(spec, order="sorted"), spec)
            found = cls._kept[key] = cls(key, {**value, "spec": shared})
        return found

    @property
    def uid(self) -> str:
        """Return its UID."""
        return str(self.value["metadata"]["uid"])

    def __repr__(self) -> str:
        meta = self.value["metadata"]
        going = " going" if meta.get("deletionTimestamp") else ""
        owned = (
            f" owned by {[owner['uid'] for owner in meta['ownerReferences']]}" if meta.get("ownerReferences") else ""
        )
        gate = f" gate={at(self.value, 'spec', 'gate') or at(self.value, 'spec', 'suspend')}"
        return f"{meta['uid']}@{meta['resourceVersion']} {at(self.value, 'status', 'phase') or ''}{going}{owned}{gate}"


def replaced(objects: Objects, slot: int, obj: Obj | None) -> Objects:
    """Return objects with another one in one slot."""
    return (*objects[:slot], obj, *objects[slot + 1 :])
