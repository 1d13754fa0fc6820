"""Which part of the work is this operator's, where several share a cluster (docs/contract.md, Shards)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.label_selector import LabelSelector
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.known_objects import Identity
from dispatch_operator.kube.reflector import ResourceEventHandler
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.ownership import made_for
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob


class Shard:
    """Serves the DispatchStarts that a selector selects, and one of all shards cares for what belongs to none.

    What belongs to a DispatchStart is known by the start annotations of its copy and its TrainJob, not by a label of
    theirs: a DispatchStart may get another label at any time, and whatever is its own goes with it.
    """

    def __init__(self, store: Store, selector: LabelSelector) -> None:
        self._store = store
        self._selector = selector
        self._of_others: set[Key] = set()
        """The DispatchStarts that are not selected; of most operators there are none."""
        self.cares_for_rest = not selector.requirements
        """Whether what belongs to no DispatchStart is this operator's."""

    def label(self, start: Key, labels: Mapping[str, str]) -> None:
        """Take note of the labels of a DispatchStart."""
        if self._selector.matches(labels):
            self._of_others.discard(start)
        else:
            self._of_others.add(start)

    def forget(self, start: Key) -> None:
        """Take note that a DispatchStart is gone."""
        self._of_others.discard(start)

    def serves_start(self, key: Key) -> bool:
        """Tell whether a DispatchStart is served."""
        return key not in self._of_others

    def serves_rest(self, _key: Key) -> bool:
        """Tell whether a DispatchBackend, which Starts of several shards may name, is served."""
        return self.cares_for_rest

    def serves_target(self, key: Key) -> bool:
        """Tell whether the copy and the TrainJob of a name are served."""
        made = (self._store.get(TrainJob, *key), self._store.get(TrainingRuntime, *key))
        return self._serves_owner(next((start for obj in made if (start := self._start_of(obj))), None))

    def serves_workload(self, key: Key) -> bool:
        """Tell whether a Workload is served, or the AdmissionCheck that a key without a namespace names."""
        workload = self._store.get(Workload, *key)
        owners = workload.metadata.owner_references if workload else ()
        jobs = (self._store.get(TrainJob, key.namespace, one.name) for one in owners if one.kind == Kind.TRAIN_JOB)
        return self._serves_owner(next((start for job in jobs if (start := self._start_of(job))), None))

    def _serves_owner(self, start: DispatchStart | None) -> bool:
        if start is None:
            return self.cares_for_rest
        return self.serves_start(Key(start.metadata.namespace, start.metadata.name))

    def _start_of(self, obj: TrainJob | TrainingRuntime | None) -> DispatchStart | None:
        """Return the DispatchStart that an object was made for, if it exists."""
        if obj is None:
            return None
        # No object is called "-".
        start = self._store.get(DispatchStart, obj.metadata.namespace, obj.metadata.annotations.start or "-")
        return start if start is not None and made_for(obj, start) else None


def if_served(
    serves: Callable[[Key], bool], reconcile: Callable[[Key], Awaitable[Result]]
) -> Callable[[Key], Awaitable[Result]]:
    """Return a reconcile that leaves to others what is not served when its turn comes."""

    async def reconcile_if_served(key: Key) -> Result:
        return await reconcile(key) if serves(key) else Result()

    return reconcile_if_served


class NotesLabels:
    """Handles the events of DispatchStarts: the shard learns of their labels before anybody is woken."""

    def __init__(self, shard: Shard, handler: ResourceEventHandler) -> None:
        self._shard = shard
        self._handler = handler

    def added_or_modified(self, raw: dict[str, Any], *, listed: bool) -> None:
        """Note an object's labels, and hand it on."""
        meta = raw["metadata"]
        self._shard.label(Key(meta.get("namespace") or "", meta["name"]), meta.get("labels") or {})
        self._handler.added_or_modified(raw, listed=listed)

    def deleted(self, identity: Identity) -> None:
        """Hand on that an object is gone."""
        self._shard.forget(Key(identity.namespace, identity.name))
        self._handler.deleted(identity)

    def synced(self) -> None:
        """Hand on that the first list is complete."""
        self._handler.synced()
