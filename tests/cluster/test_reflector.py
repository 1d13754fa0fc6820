"""What the real API server says to a reflector: pages, metadata alone, bookmarks, versions that are too old."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controlplane import Cluster as ControlPlane
from dispatch_operator.kube import reflector
from dispatch_operator.kube.client import Client, connected
from dispatch_operator.kube.decoding import WatchEventType
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from support.builders import make_backend
from support.install import apply, ensure_namespace
from support.recorder import Recorder

NAMESPACE = "reflected"
KIND = "DispatchBackend"
SECONDS = 60.0


def backend(name: str, **labels: str) -> dict[str, Any]:
    obj = make_backend(name)
    obj["metadata"] |= {"namespace": NAMESPACE, "labels": labels}
    del obj["status"]
    return obj


@asynccontextmanager
async def reflecting(cluster: Client, told: Recorder, **which: Any) -> AsyncIterator[Reflector]:
    made = Reflector(ListWatch(cluster, **which), told, asyncio.get_running_loop().time)
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - another process brings it about.
            await asyncio.sleep(0.05)


def names(told: Recorder) -> set[str]:
    return {name for _, name in told.objects}


async def test_pages_events_bookmarks_selectors_and_metadata(
    cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "PAGE_LIMIT", 2)
    monkeypatch.setattr(reflector, "WATCH_SECONDS", (6, 6))
    ensure_namespace(cluster, NAMESPACE)
    apply(cluster, [backend(name, part="all") for name in "abcde"])
    whole, selected, metadata = Recorder(), Recorder(), Recorder()
    async with (
        connected(str(cluster.kubeconfig)) as api,
        reflecting(api, whole, kind=KIND, namespace=NAMESPACE) as made,
        reflecting(api, selected, kind=KIND, label_selector="part=some"),
        reflecting(api, metadata, kind=KIND, namespace=NAMESPACE, metadata_only=True) as of_metadata,
    ):
        await until(lambda: made.state.since is None and of_metadata.state.since is None)
        assert names(whole) == names(metadata) == set("abcde")
        await asyncio.to_thread(apply, cluster, [backend("f", part="some"), backend("a", part="some")])
        await until(lambda: names(whole) == set("abcdef") and names(selected) == {"a", "f"})
        await asyncio.to_thread(apply, cluster, [backend("a", part="all")])
        await until(lambda: names(selected) == {"f"})
        await asyncio.to_thread(cluster.kubectl, "delete", KIND, "b", "--namespace", NAMESPACE)
        await until(lambda: names(whole) == names(metadata) == set("acdef"))
        last_event = made.state.last_event
        # Nothing happens any more: what comes is the bookmark that the API server sends before it ends a watch.
        await until(lambda: made.state.last_event != last_event)
        for told in (whole, selected, metadata):
            assert told.wrongs == []
        assert (made.state.restarts, of_metadata.state.restarts) == (0, 0)
        assert all("spec" in obj for obj in whole.objects.values())
        assert all(set(obj) <= {"kind", "apiVersion", "metadata"} for obj in metadata.objects.values())


async def test_a_version_that_is_too_old_is_gone(cluster: ControlPlane) -> None:
    async with connected(str(cluster.kubeconfig)) as api:
        async with api.watch(KIND, None, timeout=10, resource_version="1", seconds=5, grace=5, silent_for=60) as events:
            (told,) = [event async for event in events]
        assert (told.type, told.object["code"]) == (WatchEventType.ERROR, 410)


async def test_a_kind_that_is_not_served_says_so(cluster: ControlPlane) -> None:
    async with connected(str(cluster.kubeconfig)) as api, reflecting(api, Recorder(), kind="Workload") as made:
        await until(lambda: bool(made.state.last_fault))
        assert "does not serve this kind" in made.state.last_fault
