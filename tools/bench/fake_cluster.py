"""A fake cluster: the fake API server as a process of its own, and what a bench asks of it."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml
from msgspec import json

from bench.fake.server import CONTROL
from bench.process import running
from bench.starts import NAMESPACE, load
from dispatch_operator.api.kinds import RESOURCES, Kind

Object = dict[str, Any]
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 300.0


class FakeCluster:
    """A running fake API server."""

    def __init__(self, port: int, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(self.url)))

    def create(self, obj: Object, namespace: str = NAMESPACE) -> None:
        """Create an object."""
        self._ask(RESOURCES[Kind(obj["kind"])].path(namespace), json.encode(obj))

    def control(self, path: str) -> Object:
        """Ask for what only a fake one can do."""
        return self._ask(CONTROL + path)

    def settled(self) -> int:
        """Return how many Starts, those of the crowd aside, were Gated."""
        return int(self.control("settled")["count"])

    def wait_until_settled(self, count: int) -> None:
        """Wait until so many were.

        Raises:
            TimeoutError: They are not in time.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while (settled := self.settled()) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{settled} of {count} Starts were Gated in time")
            time.sleep(POLL_SECONDS)

    def requests(self) -> Object:
        """Return what the operator asked since this was asked last, Events aside."""
        told = self.control("requests")
        return {
            request: count
            for request, count in told.items()
            if request.startswith("dispatch-operator ") and not request.endswith(" events")
        }

    def _ask(self, path: str, body: bytes = b"{}") -> Object:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        with urlopen(Request(self.url + path, body, headers, method="POST")) as answer:  # noqa: S310 - it is our own.
            decoded: Object = json.decode(answer.read())
        return decoded


@contextmanager
def fake_cluster() -> Iterator[FakeCluster]:
    """Serve for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="dispatch-bench-") as folder, running("-m", "bench.fake.server") as server:
        cluster = FakeCluster(int(server.says("\n")), Path(folder))
        cluster.create(load("runtimes/torch-dispatch.yaml"), "")
        cluster.create(load("samples/backend.yaml"))
        yield cluster


def _kubeconfig(server: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        "clusters": [{"name": "fake", "cluster": {"server": server}}],
        "users": [{"name": "fake", "user": {"token": "none"}}],
    }
