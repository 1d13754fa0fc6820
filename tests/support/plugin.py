"""`kubectl dispatch` over an API in memory, in a world that an operator has come to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dispatch_operator.plugin import session
from dispatch_operator.plugin.main import main
from dispatch_operator.reconcile.steps import await_workload
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, Request
from support.operator import NOW, FakeOperator

Object = dict[str, Any]
GATE = "dispatch.phpboyscout.uk/start-gate"
LABELS = {
    "dispatch.phpboyscout.uk/job-id": make_start()["spec"]["request"]["job"],
    "dispatch.phpboyscout.uk/submission": "1",
    "jobset.sigs.k8s.io/replicatedjob-name": "node",
}


class World:
    """What a cluster holds, the operator that follows it, and the person who asks."""

    def __init__(self, api: FakeApi | None = None) -> None:
        self.api = api or FakeApi()
        self.operator = FakeOperator(self.api)

    def put(self, *objects: Object) -> None:
        """Place objects as the API server stores them."""
        for obj in objects:
            status = obj.pop("status", {})
            self.api.put(obj, **status)

    def begin(self, start: Object | None = None, backend: Object | None = None, runtime: Object | None = None) -> None:
        """Place a runtime, a backend and a DispatchStart."""
        self.put(runtime or make_runtime(), backend or make_backend(), start or make_start())

    async def started(self, **start: Any) -> None:
        """Let the operator take a DispatchStart as far as it goes."""
        self.begin(make_start(**start))
        await self.operator.settle()

    async def opened(self, **start: Any) -> None:
        """The same with an open gate, as long ago as the operator's first question takes."""
        await self.started(gate="Open", **start)
        self.operator.now = NOW
        self.trainer()

    async def asked(self) -> None:
        """Let the operator ask why nothing runs."""
        self.operator.now = NOW + 60
        await self.operator.settle()

    def trainer(self, active: int = 0, ready: int = 0, *conditions: Object) -> None:
        """Write a TrainJob's status as Trainer would; the gate was opened at NOW."""
        resumed = {"type": "Suspended", "status": "False", "reason": "Resumed", "lastTransitionTime": self.api.created}
        counts = [{"name": "node", "active": active, "ready": ready}]
        status = {"conditions": [resumed, *conditions], "jobsStatus": counts}
        self.api.edit("TrainJob", lambda job: job.update(status=status))

    async def queued(self, **workload: Any) -> None:
        """Let the operator open a job of a backend in Kueue mode, and Kueue make its Workload."""
        kueue = {"queue": "team-a", "admissionCheck": "dispatch-start"}
        self.begin(make_start(gate="Open"), make_backend(kueue=kueue))
        self.api.admit = suspended
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(await_workload, "FIRST_WAIT", 0.01)
            await self.operator.reconcile()
        self.workload(**workload)
        await self.operator.settle()

    def workload(self, *, gates: str = GATE, active: bool = True, **status: Any) -> None:
        """Place the Workload of the TrainJob."""
        uid = self.api.one("TrainJob")["metadata"]["uid"]
        meta = {
            "name": "trainjob-x",
            "namespace": NAMESPACE,
            "labels": {"kueue.x-k8s.io/job-uid": uid},
            "annotations": {"kueue.x-k8s.io/admission-gated-by": gates} if gates else {},
            "ownerReferences": [{"kind": "TrainJob", "name": NAME, "uid": uid}],
        }
        check = {"name": "dispatch-start", "state": "Pending", "message": ""}
        made = {"kind": "Workload", "metadata": meta, "spec": {"active": active}}
        self.api.put(made, admissionChecks=[check], **status)

    def kueue_says(self, **status: Any) -> None:
        """Write the Workload's status as Kueue would, after the gate was opened."""

        def written(workload: Object) -> None:
            workload["metadata"]["annotations"].clear()
            workload["status"] |= status

        self.api.edit("Workload", written)

    def pod(self, name: str = f"{NAME}-node-0-0-abcde", phase: str = "Pending", **status: Any) -> None:
        """Place a pod of the trainer."""
        meta = {"name": name, "namespace": NAMESPACE, "labels": LABELS}
        self.api.put({"kind": "Pod", "metadata": meta}, phase=phase, **status)

    def waiting_pod(self, reason: str, said: str) -> None:
        """Place a pod whose container has not begun."""
        self.pod(containerStatuses=[{"name": "node", "state": {"waiting": {"reason": reason, "message": said}}}])

    def warn(self, about: str, reason: str, said: str) -> None:
        """Place a Warning; `about` is a kind and a name."""
        kind, _, name = about.partition("/")
        event = {"kind": "Event", "metadata": {"name": "e", "namespace": NAMESPACE}}
        involved = {"involvedObject": {"kind": kind, "name": name}}
        self.put({**event, **involved, "type": "Warning", "reason": reason, "message": said})

    def ask(self, *arguments: str, at: float | None = None, **extra: Any) -> Result:
        """Call the plugin."""

        @asynccontextmanager
        async def connected(kubeconfig: str | None, context: str | None = None) -> AsyncIterator[FakeApi]:
            del kubeconfig, context
            yield self.api

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "connected", connected)
            patch.setattr(session, "clock", lambda: self.operator.now if at is None else at)
            return CliRunner().invoke(main, arguments, prog_name="kubectl dispatch", **extra)


def suspended(request: Request, body: Object) -> Object:
    """Suspend TrainJobs as they are created, as Kueue's webhook does with those that it handles."""
    if (request.verb, request.kind) == ("create", "TrainJob"):
        body["spec"]["suspend"] = True
    return body


Scenario = Callable[[World], Any]


def world_of(scenario: Scenario, api: FakeApi | None = None) -> World:
    """Return a world after what a scenario makes happen."""
    world = World(api)
    asyncio.run(scenario(world))
    return world
