"""The operator's reconciles over a fake API, one after the other, with a store as fresh or as stale as a test wants it."""

from dataclasses import dataclass, field
from typing import Any

from dispatch_operator.api.kinds import Kind
from dispatch_operator.controllers.watches import is_relevant
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.outdated_crd import OutdatedCrd
from dispatch_operator.kube.refused_statuses import RefusedStatuses
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.reconcile.events import Event, Owned
from dispatch_operator.reconcile.inquiries import Inquiries
from dispatch_operator.reconcile.just_created import JustCreated
from dispatch_operator.reconcile.reconciler import Reconciler
from dispatch_operator.reconcile.status import POINTER
from support.builders import NAMESPACE
from support.fake_api import FakeApi
from support.invariants import broken_invariants
from support.records import watched

Object = dict[str, Any]
CACHED = (
    "DispatchStart",
    "DispatchBackend",
    "TrainJob",
    "TrainingRuntime",
    "ClusterTrainingRuntime",
    "JobSet",
    "Workload",
)
NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z, when these tests take place."""


@dataclass
class FakeOperator:
    """One operator: `reconcile` makes one with what the store holds, `settle` as many as are asked for at once."""

    api: FakeApi
    now: float = NOW
    store: Store = field(default_factory=Store)
    announced: list[tuple[Owned, Owned]] = field(default_factory=list)
    told: list[Event] = field(default_factory=list)
    """Events that no write of a status tells of."""
    checks_invariants: bool = True
    inquiries: Inquiries = field(default_factory=Inquiries)
    refused: RefusedStatuses = field(default_factory=lambda: RefusedStatuses("DispatchStart"))
    just_created: JustCreated = field(default_factory=JustCreated)
    outdated: OutdatedCrd = field(default_factory=OutdatedCrd)

    def watch(self) -> None:
        """Let the cache catch up with the API server."""
        self.store = Store()
        for kind in CACHED:
            for obj in self.api.all(kind):
                if is_relevant(Kind(kind), obj):
                    self.store.put(watched(obj))

    async def reconcile(self, name: str = "llama-s1", *, stale: bool = False) -> Result:
        """Reconcile once; every status that is written keeps the invariants."""
        if not stale:
            self.watch()
        reconciler = Reconciler(
            self.api,  # type: ignore[arg-type]
            self.store,
            lambda *pair: self.announced.append(pair),
            lambda _, event: self.told.append(event),
            lambda: self.now,
            self.inquiries,
            refused=self.refused,
            just_created=self.just_created,
            outdated=self.outdated,
        )
        result = await reconciler.reconcile(Key(NAMESPACE, name))
        for start in self.api.all("DispatchStart") if self.checks_invariants else ():
            if start["metadata"]["name"] == name and start["status"].get("phase"):
                assert broken_invariants(start["status"]) == []
        return result

    async def settle(self, name: str = "llama-s1", reconciles: int = 10) -> Object:
        """Reconcile until two in a row write nothing; return the DispatchStart."""
        for _ in range(reconciles):
            written = len(self.api.writes())
            await self.reconcile(name)
            if len(self.api.writes()) == written:
                return self.start(name)
            self.now += 1
        raise AssertionError(f"still writing after {reconciles} reconciles: {self.api.writes()}")

    def start(self, name: str = "llama-s1") -> Object:
        """Return a DispatchStart as it stands."""
        return next(start for start in self.api.all("DispatchStart") if start["metadata"]["name"] == name)


def conditions(start: Object) -> dict[str, tuple[str, str]]:
    """Return the status and reason of each condition by its type."""
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in start["status"]["conditions"]}


def message(start: Object, kind: str) -> str:
    """Return the message of a condition, or of the one that it points to."""
    messages = {entry["type"]: str(entry["message"]) for entry in start["status"]["conditions"]}
    told = messages[kind]
    while f"{POINTER} " in told:
        told = messages[told.split(f"{POINTER} ")[1]]
    return told
