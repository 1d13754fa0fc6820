"""Whose probe a change concerns, what probes have left, and waiting for what a watch says."""

import asyncio
from typing import Any

import pytest

from dispatch_operator.controllers.enqueue import backends_of, targets_of
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.records.dispatch import DispatchBackend
from dispatch_operator.records.trainer import TrainingRuntime
from support.builders import NAMESPACE, make_backend, make_runtime
from support.records import watched

Object = dict[str, Any]
COPY, JOB, BACKEND = "TrainingRuntime", "TrainJob", "DispatchBackend"


def made_by_probe(name: str, uid: str = "u", *, label: str | None = "true") -> Object:
    labels = {} if label is None else {"dispatch.phpboyscout.uk/probe": label}
    annotations = {"dispatch.phpboyscout.uk/start": "default", "dispatch.phpboyscout.uk/start-uid": uid}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "resourceVersion": "1",
            "labels": labels,
            "annotations": annotations,
        },
    }


def placed(obj: Object, namespace: str, uid: str) -> Object:
    obj["metadata"] |= {"namespace": namespace, "uid": uid, "resourceVersion": "1"}
    return obj


@pytest.fixture
def store() -> Store:
    store = Store()
    mine = {"kind": COPY, "name": "mine"}
    for obj, namespace, uid in (
        (make_backend(), NAMESPACE, "u"),
        (make_backend("second", probeRuntime=mine), NAMESPACE, "v"),
        (make_backend(probeRuntime=mine), "team-b", "w"),
    ):
        store.put(watched(placed(obj, namespace, uid)))
    return store


@pytest.mark.parametrize(
    ("what", "kind", "obj", "want"),
    [
        ("a backend", BACKEND, placed(make_backend(), NAMESPACE, "u"), {(NAMESPACE, "default")}),
        ("a cluster's runtime", "ClusterTrainingRuntime", make_runtime(), {(NAMESPACE, "default")}),
        ("another one", "ClusterTrainingRuntime", make_runtime("mine"), set()),
        ("a namespace's", COPY, placed(make_runtime("mine"), "team-b", "r"), {("team-b", "default")}),
        ("a probe's copy", COPY, made_by_probe("dj-x"), {(NAMESPACE, "default")}),
        ("a probe's TrainJob", JOB, made_by_probe("dj-x"), {(NAMESPACE, "default")}),
        ("a start's TrainJob", JOB, made_by_probe("dj-x", label=None), set()),
        ("a start", "DispatchStart", made_by_probe("x"), set()),
    ],
)
def test_whose_probe_a_change_concerns(
    store: Store, what: str, kind: str, obj: Object, want: set[tuple[str, str]]
) -> None:
    assert {tuple(key) for key in backends_of(store, watched(obj, kind))} == want, what


def test_what_a_backends_probes_have_left_is_its_own(store: Store) -> None:
    for kind, obj in (
        (JOB, made_by_probe("dj-a")),
        (COPY, made_by_probe("dj-a")),
        (COPY, made_by_probe("dj-b")),
        (COPY, made_by_probe("dj-c", "another")),
        (COPY, made_by_probe("dj-d", label=None)),
        ("JobSet", made_by_probe("dj-a")),
    ):
        store.put(watched(obj, kind))
    backend = store.get(DispatchBackend, NAMESPACE, "default")
    assert backend
    assert sorted(left.metadata.name for left in store.left_by_probes(backend)) == ["dj-a", "dj-a", "dj-b"]
    assert set(targets_of(store, backend)) == {Key(NAMESPACE, "dj-a"), Key(NAMESPACE, "dj-b")}


@pytest.mark.looptime
async def test_a_wait_ends_with_the_watch_or_with_its_time(store: Store) -> None:
    copy, key = watched(made_by_probe("dj-a"), COPY), Key(NAMESPACE, "dj-a")
    store.put(copy)
    loop = asyncio.get_running_loop()
    loop.call_later(2, store.drop, copy)
    assert not await store.gone(TrainingRuntime, key, "dj-a", 1)
    assert await store.gone(TrainingRuntime, key, "dj-a", 10)
    assert loop.time() == pytest.approx(2)
    assert await store.gone(TrainingRuntime, key, "dj-a", 0)
    store.put(copy)
    # Another one of the name is not the one that was waited for.
    assert await store.gone(TrainingRuntime, key, "an-earlier-one", 0)
    assert not await store.until(lambda: False, 0)
