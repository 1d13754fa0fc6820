"""The store: what it keeps, and whom a change concerns."""

from collections.abc import Sized
from typing import Any

import pytest

from dispatch_operator.api.kinds import Kind
from dispatch_operator.controllers.enqueue import starts_of
from dispatch_operator.kube.index import Index, Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.reconciler import observe
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob
from support.builders import JOB, NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.records import watched

Object = dict[str, Any]


def stored(obj: Object, version: int, uid: str = "u") -> Object:
    obj["metadata"] |= {"uid": uid, "resourceVersion": str(version)}
    return obj


@pytest.fixture
def store() -> Store:
    store = Store()
    store.put(watched(stored(make_start(), 1)))
    store.put(watched(stored(make_start("same-job"), 2, "v")))
    store.put(watched(stored(make_start("other-job", job=JOB[:-1] + "Z"), 3, "w")))
    invalid = make_start("invalid", job="no")
    invalid["spec"]["backend"] = "another"
    invalid["spec"]["request"]["spec"]["extensions"]["kubeflow/RuntimeRef"] = {
        "kind": "TrainingRuntime",
        "name": "mine",
    }
    store.put(watched(stored(invalid, 4, "x")))
    return store


def names(keys: Any) -> set[str]:
    assert all(key.namespace == NAMESPACE for key in keys)
    return {key.name for key in keys}


def named(kind: str, name: str, namespace: str | None = NAMESPACE) -> Object:
    return {"kind": kind, "metadata": {"name": name} | ({"namespace": namespace} if namespace else {})}


@pytest.mark.parametrize(
    ("what", "kind", "obj", "want"),
    [
        ("a start concerns all of its name", "DispatchStart", make_start(), {"llama-s1", "same-job"}),
        ("an invalid start concerns itself", "DispatchStart", make_start("invalid", job="no"), {"invalid"}),
        ("a backend concerns those that name it", "DispatchBackend", make_backend("another"), {"invalid"}),
        ("a TrainJob concerns those of its name", "TrainJob", named("TrainJob", NAME), {"llama-s1", "same-job"}),
        ("a JobSet does too", "JobSet", named("JobSet", NAME), {"llama-s1", "same-job"}),
        ("an unknown TrainJob concerns nobody", "TrainJob", named("TrainJob", "x"), set()),
        (
            "a copy concerns those of its name",
            "TrainingRuntime",
            named("TrainingRuntime", NAME),
            {"llama-s1", "same-job"},
        ),
        ("a TrainingRuntime those that name it", "TrainingRuntime", named("TrainingRuntime", "mine"), {"invalid"}),
        (
            "a ClusterTrainingRuntime those that name it, of any namespace",
            "ClusterTrainingRuntime",
            named("ClusterTrainingRuntime", make_runtime()["metadata"]["name"], None),
            {"llama-s1", "same-job", "other-job"},
        ),
        ("another namespace's runtime nobody", "TrainingRuntime", named("TrainingRuntime", "mine", "team-b"), set()),
    ],
)
def test_whom_a_change_concerns(store: Store, what: str, kind: str, obj: Object, want: set[str]) -> None:
    assert names(starts_of(store, watched(obj, kind))) == want, what


def test_an_older_state_never_replaces_a_newer_one(store: Store) -> None:
    newer = stored(make_start(gate="Open"), 9)
    store.put(watched(newer))
    store.put(watched(stored(make_start(), 8)))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") == watched(newer)


def test_another_object_of_the_name_replaces_it_whatever_its_version(store: Store) -> None:
    store.put(watched(stored(make_start(), 9)))
    other = stored(make_start(gate="Open"), 8, "another")
    store.put(watched(other))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") == watched(other)


def test_a_late_deletion_does_not_drop_the_next_object_of_the_name(store: Store) -> None:
    store.put(watched(stored(make_start(), 9, "next")))
    store.drop(watched(stored(make_start(), 5)))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") is not None
    store.drop(watched(stored(make_start(), 9, "next")))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") is None
    assert observe(store, Key(NAMESPACE, "llama-s1")) is None
    assert names(starts_of(store, watched(named("TrainJob", NAME)))) == {"same-job"}


def test_a_version_that_is_no_number_is_taken_as_it_comes() -> None:
    store = Store()
    for version in ("b", "a"):
        obj = named("TrainJob", NAME)
        obj["metadata"]["resourceVersion"] = version
        store.put(watched(obj))
    held = store.get(TrainJob, NAMESPACE, NAME)
    assert held
    assert held.metadata.resource_version == "a"


def test_what_is_large_and_never_read_is_not_kept() -> None:
    store = Store()
    for kind in ("TrainingRuntime", "TrainJob"):
        store.put(watched({**named(kind, NAME), "spec": {"mlPolicy": {"numNodes": 1}}}))
    copy, job = store.get(TrainingRuntime, NAMESPACE, NAME), store.get(TrainJob, NAMESPACE, NAME)
    assert copy
    assert job
    assert (copy.spec, job.stored) == (None, None)


def workload(
    version: int, *, gate: str = "dispatch.phpboyscout.uk/start-gate", reason: str = "x", active: bool = True
) -> Object:
    made = named("Workload", "work")
    made["metadata"] |= {
        "uid": "workload",
        "resourceVersion": str(version),
        "annotations": {"kueue.x-k8s.io/admission-gated-by": gate} if gate else {},
        "ownerReferences": [{"kind": "TrainJob", "name": NAME, "uid": "job"}],
    }
    made["spec"] = {"active": active}
    made["status"] = {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": reason}]}
    return made


@pytest.mark.parametrize(
    ("what", "change", "wakes"),
    [
        ("a gated Workload's reason, which Kueue flips all the time", {"reason": "y"}, False),
        ("its gate", {"gate": ""}, True),
        ("whether it is active", {"active": False}, True),
        ("an open Workload's reason", {"gate": "", "reason": "y"}, True),
    ],
)
def test_which_changes_of_a_workload_wake_a_reconcile(
    store: Store, what: str, change: dict[str, Any], wakes: bool
) -> None:
    store.put(watched(workload(1)))
    assert names(starts_of(store, watched(workload(1)))) == {"llama-s1", "same-job"}
    store.put(watched(workload(2, **change)))
    assert bool(names(starts_of(store, watched(workload(2, **change))))) is wakes, what
    if change.get("gate") == "":
        store.put(watched(workload(3, gate="", reason="z")))
        assert names(starts_of(store, watched(workload(3, gate="", reason="z")))) == {"llama-s1", "same-job"}


def test_a_workload_of_another_namespace_is_nobodys(store: Store) -> None:
    # An owner reference reaches no further than its namespace; a tenant may write any UID there.
    owner = [{"kind": "TrainJob", "name": NAME, "uid": "job"}]
    ours = {**named("Workload", "ours"), "metadata": {"name": "ours", "namespace": NAMESPACE, "ownerReferences": owner}}
    theirs = {"kind": "Workload", "metadata": {"name": "theirs", "namespace": "team-b", "ownerReferences": owner}}
    store.put(watched(stored(ours, 5, "w1")))
    store.put(watched(stored(theirs, 6, "w2")))
    found = store.workload(NAMESPACE, "job")
    assert found
    assert found.metadata.name == "ours"
    store.drop(watched(theirs))
    assert store.workload(NAMESPACE, "job") == found


def test_a_list_is_right_also_where_it_is_older_than_what_was_held(store: Store) -> None:
    """Etcd was restored from a backup."""
    store.put(watched(stored(make_start(gate="Open"), 900)))
    restored = watched(stored(make_start(), 8))
    store.put(restored, listed=True)
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") == restored


@pytest.mark.parametrize("keep", [Store.refresh, Store.put_written])
def test_what_a_request_brings_after_the_watch_told_of_the_end_is_not_kept(store: Store, keep: Any) -> None:
    start = watched(stored(make_start(), 9))
    store.put(start)
    store.drop(start)
    keep(store, watched(stored(make_start(), 10)))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") is None
    another = watched(stored(make_start(), 8, "another"))
    store.put(another)
    keep(store, watched(stored(make_start(), 10)))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") == another


def test_what_a_request_brings_of_what_is_there_is_kept_unless_it_is_older(store: Store) -> None:
    store.put(watched(stored(make_start(), 9)))
    newer = watched(stored(make_start(gate="Open"), 10))
    store.refresh(newer)
    store.refresh(watched(stored(make_start(), 9)))
    assert store.get(DispatchStart, NAMESPACE, "llama-s1") == newer


def test_nothing_is_kept_of_objects_that_are_gone() -> None:
    store = Store()
    objects = [
        *(watched(stored(obj, 5)) for obj in (make_start(), make_backend(), named("TrainJob", NAME), workload(5))),
        *(watched(stored(named(kind, NAME), 5)) for kind in ("TrainingRuntime", "JobSet")),
    ]
    for obj in objects:
        store.put(obj)
        store.put_written(obj)
        store.put(obj)
    for obj in objects:
        store.drop_unfound(obj)
    for obj in objects:
        store.drop(obj)
        store.put_written(obj)
    by_kind = [kept for held in vars(store).values() for kept in (held.values() if isinstance(held, dict) else [held])]
    assert [kept for kept in by_kind if isinstance(kept, Sized) and len(kept) and not isinstance(kept, list)] == []
    for index in store._indexes[Kind.DISPATCH_START]:  # noqa: SLF001 - what is left.
        assert not (index._keys if isinstance(index, Index) else any(index.counts.values()))  # noqa: SLF001


def probed(version: int, *, at: str, **gate: Any) -> Object:
    backend = stored(make_backend(), version, "b")
    for held in backend["status"]["gates"]:
        held |= {"lastProbeTime": at, **gate}
    return backend


def test_a_probe_that_says_what_the_last_one_said_wakes_nobody(store: Store) -> None:
    """A backend whose probe fails is written at each try, and thousands may wait for it."""
    first, again = (watched(probed(number, at=f"2026-01-01T00:0{number}:00Z")) for number in (1, 2))
    failed = watched(probed(3, at="2026-01-01T00:03:00Z", proven=False, reason="why"))
    store.put(first)
    assert names(starts_of(store, first))
    # The operator keeps what it writes before the watch tells of it.
    store.refresh(again)
    store.put(again)
    assert names(starts_of(store, again)) == set()
    store.refresh(failed)
    store.put(failed)
    assert names(starts_of(store, failed))
    proven = watched(probed(4, at="2026-01-01T00:04:00Z"))
    store.put_written(proven)
    store.put(proven)
    assert names(starts_of(store, proven))


def test_the_end_of_a_backend_is_news_although_its_last_state_was_none(store: Store) -> None:
    for number in (1, 2):
        store.put(watched(probed(number, at=f"2026-01-01T00:0{number}:00Z")))
    last = store.get(DispatchBackend, NAMESPACE, "default")
    assert last
    assert names(starts_of(store, last)) == set()
    store.note_end(last)
    assert names(starts_of(store, last))
