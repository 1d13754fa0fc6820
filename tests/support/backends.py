"""The operator's reconciles of backends over a fake API whose watch events arrive immediately, in virtual time."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from dispatch_operator.controllers.backend import BackendController
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.events import Owned
from support.builders import NAMESPACE, make_backend, make_runtime
from support.fake_api import FakeApi
from support.openapi import served
from support.operator import NOW
from support.records import watched

Object = dict[str, Any]
PROBED = ("TrainJob", "TrainingRuntime")


def unprobed(**spec: Any) -> Object:
    """Return a backend that no operator has looked at."""
    return make_backend(**spec) | {"status": {"observedGeneration": -1}}


def make_api(**spec: Any) -> FakeApi:
    """Return an API with a new backend, where garbage collection runs and every needed API version is served."""
    api = FakeApi(collects=True, documents=served())
    api.put(make_runtime())
    api.put(unprobed(**spec))
    return api


@dataclass
class FakeBackends:
    """The probing part of an operator. Its clock is the event loop's, which looptime advances."""

    api: FakeApi
    version: str = "1.0.0"
    store: Store = field(default_factory=Store)
    announced: list[tuple[Owned, Owned]] = field(default_factory=list)
    ahead: float = 0.0
    """Seconds that have passed besides those of the event loop."""
    set_by: float = 0.0
    """Seconds by which somebody has set the clock that tells the time of day."""

    def __post_init__(self) -> None:
        """Begin with what there is, as a restarted operator does."""
        for obj in list(self.api.objects.values()):
            self.store.put(watched(obj))
        self.api.watches.append(self._watch)
        self.backends = BackendController(
            self.api,  # type: ignore[arg-type]
            self.store,
            lambda *pair: self.announced.append(pair),
            self.now,
            self.monotonic,
            self.version,
        )

    def _watch(self, _kind: str, obj: Object, gone: bool) -> None:
        (self.store.drop if gone else self.store.put)(watched(obj))

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        return NOW + self.set_by + self.monotonic()

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self.ahead + asyncio.get_running_loop().time()

    async def reconcile(self, name: str = "default") -> Result:
        """Reconcile a backend once."""
        return await self.backends.reconcile(Key(NAMESPACE, name))

    def status(self) -> Object:
        """Return the backend's status."""
        status: Object = self.api.one("DispatchBackend")["status"]
        return status


def unproven(status: Object) -> dict[str, str]:
    """Return why each gate is not proven; empty when all are."""
    return {gate["name"]: gate["reason"] for gate in status["gates"] if not gate["proven"]}


def left(api: FakeApi) -> list[str]:
    """Return what a probe has left."""
    return [str(key) for key in api.objects if key[0] in PROBED]
