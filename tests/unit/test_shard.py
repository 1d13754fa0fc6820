"""Whose each thing is: of all shards of a cluster exactly one serves it, whatever labels come and go."""

import itertools
from typing import Any

import pytest

from dispatch_operator.api.label_selector import LabelSelector
from dispatch_operator.controllers.shard import NotesLabels, Shard
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.known_objects import Identity
from dispatch_operator.kube.store import Store
from support.builders import JOB, NAME, NAMESPACE, make_start
from support.recorder import Recorder
from support.records import watched

Object = dict[str, Any]
START, TARGET, WORK = Key(NAMESPACE, "llama-s1"), Key(NAMESPACE, NAME), Key(NAMESPACE, "work")
SELECTORS = ("shard=a", "shard=b", "shard notin (a, b)")
KINDS = ("TrainJob", "TrainingRuntime", "Workload")


def made(kind: str, uid: str = "start-uid", *, start: str = "llama-s1") -> Object:
    """Return what a Start makes, or Kueue for it."""
    meta: Object = {"name": NAME, "namespace": NAMESPACE, "uid": f"{kind}-uid", "resourceVersion": "1"}
    if kind == "Workload":
        meta |= {"name": "work", "ownerReferences": [{"kind": "TrainJob", "name": NAME, "uid": "TrainJob-uid"}]}
    else:
        prefix = "dispatch.phpboyscout.uk"
        meta["labels"] = {f"{prefix}/job-id": JOB, f"{prefix}/submission": "1"}
        meta["annotations"] = {f"{prefix}/start": start, f"{prefix}/start-uid": uid}
    return {"kind": kind, "metadata": meta, "spec": {}}


class World:
    """Three shards of one cluster, the last of which cares for the rest, and what their watches tell them."""

    def __init__(self) -> None:
        self.stores = [Store() for _ in SELECTORS]
        self.shards = [
            Shard(store, LabelSelector.parse(selector)) for store, selector in zip(self.stores, SELECTORS, strict=True)
        ]
        assert not any(shard.cares_for_rest for shard in self.shards)
        self.shards[-1].cares_for_rest = True

    def start(self, uid: str = "start-uid", **labels: str) -> None:
        """Create the DispatchStart, or change its labels."""
        start = make_start()
        start["metadata"] |= {"uid": uid, "resourceVersion": "1", "labels": labels}
        for store, shard in zip(self.stores, self.shards, strict=True):
            shard.label(START, labels)
            store.put(watched(start))

    def put(self, obj: Object) -> None:
        """Let all be told of an object."""
        for store in self.stores:
            store.put(watched(obj))

    def serving(self) -> list[tuple[int, ...]]:
        """Return which shards serve the start, its name, its Workload and everything else, in this order."""
        return [
            tuple(number for number, serves in enumerate(served) if serves)
            for served in zip(
                *(
                    (
                        shard.serves_start(START),
                        shard.serves_target(TARGET),
                        shard.serves_workload(WORK),
                        shard.serves_rest(Key(NAMESPACE, "default")),
                        shard.serves_workload(Key("", "dispatch-start")),
                    )
                    for shard in self.shards
                ),
                strict=True,
            )
        ]


@pytest.mark.parametrize("kinds", [kinds for count in range(4) for kinds in itertools.combinations(KINDS, count)])
def test_what_belongs_to_a_start_is_its_shards_and_moves_with_it(kinds: tuple[str, ...]) -> None:
    world = World()
    for kind in kinds:
        world.put(made(kind))
    # The target is known by either object; a Workload by its TrainJob.
    named = "TrainJob" in kinds or "TrainingRuntime" in kinds
    work = {"TrainJob", "Workload"} <= set(kinds)
    for shard, labels in enumerate(({"shard": "a"}, {"shard": "b"}, {}, {"shard": "c"}, {"shard": "a"})):
        own = shard % 4 if shard < 3 or shard == 4 else 2
        world.start(**labels)
        assert world.serving() == [(own,), (own if named else 2,), (own if work else 2,), (2,), (2,)]


@pytest.mark.parametrize("uid", ["", "another"])
def test_what_belongs_to_a_start_that_is_gone_is_the_rest(uid: str) -> None:
    world = World()
    world.start(shard="a")
    for kind in KINDS:
        world.put(made(kind, uid=uid))
    assert world.serving()[1:3] == [(2,), (2,)]


def test_without_a_selector_everything_is_served() -> None:
    shard = Shard(Store(), LabelSelector())
    shard.label(START, {"shard": "a"})
    assert all(
        serves(key)
        for serves in (shard.serves_start, shard.serves_rest, shard.serves_target, shard.serves_workload)
        for key in (START, TARGET, WORK)
    )


def test_labels_are_noted_before_anybody_is_woken() -> None:
    shard, told = Shard(Store(), LabelSelector.parse("shard=a")), []

    class Handler(Recorder):
        def added_or_modified(self, obj: Object, *, listed: bool) -> None:  # noqa: ARG002 - the handlers'.
            told.append(shard.serves_start(Key(NAMESPACE, obj["metadata"]["name"])))

        def deleted(self, identity: Identity) -> None:
            told.append(identity.name)

        def synced(self) -> None:
            told.append("synced")

    handler = NotesLabels(shard, Handler())
    handler.synced()
    for labels in ({"shard": "a"}, {"shard": "b"}, None):
        handler.added_or_modified(
            {"metadata": {"name": "llama-s1", "namespace": NAMESPACE, "labels": labels}}, listed=True
        )
    handler.deleted(Identity(NAMESPACE, "llama-s1", "start-uid"))
    assert told == ["synced", True, False, False, "llama-s1"]
    # Nothing is kept of what is gone.
    assert shard.serves_start(START)
