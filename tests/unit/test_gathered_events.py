"""What is told of the objects of a Start that is whole is gathered, in a whole operator over real HTTP."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from dispatch_operator.api.kinds import Kind
from dispatch_operator.controllers import frame
from dispatch_operator.controllers.frame import Frame
from dispatch_operator.controllers.work_queue import SOON_SECONDS
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.stored_server import StoredServer

pytestmark = pytest.mark.looptime
Object = dict[str, Any]
CHANGES = 5


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> StoredServer:
    # kopf would kill the process of the tests, when virtual time goes on after the end.
    monkeypatch.setattr(frame, "EXITING_TIMEOUT", None)
    server = StoredServer()
    for obj in (make_runtime(), make_backend(), make_start()):
        server.api.put(obj, **obj.pop("status", {}))
    return server


async def change_job(server: StoredServer, **status: Any) -> None:
    """Let Trainer write the status of the TrainJob."""
    await server.api.patch(
        Kind.TRAIN_JOB, NAMESPACE, NAME, {"metadata": {}, "status": status}, timeout=1.0, subresource="status"
    )


def reconciles(served: Frame) -> Counter[str]:
    """Return how many reconciles of each queue have ended."""
    samples = [sample for metric in served.collector.collect() for sample in metric.samples]
    told = {one.labels["queue"]: one.value for one in samples if one.name == "dispatch_queue_reconciles_total"}
    return Counter({queue: int(told[queue]) for queue in ("starts", "leftovers")})


async def phase_of(server: StoredServer) -> str:
    start = await server.api.get(Kind.DISPATCH_START, NAMESPACE, "llama-s1", timeout=1.0)
    assert start is not None
    return str(start["status"]["phase"])


async def test_what_is_told_of_a_whole_start_is_looked_at_once_and_a_wish_at_once(server: StoredServer) -> None:
    async with server.serving() as client:
        served = Frame(client, ())
        serving = asyncio.create_task(served.serve("test"))
        await asyncio.sleep(5)
        assert await phase_of(server) == "Gated"
        before = reconciles(served)
        for number in range(CHANGES):
            await change_job(server, jobsStatus=[{"name": "node", "ready": 0, "active": number}])
            await asyncio.sleep(SOON_SECONDS / 10)
        await asyncio.sleep(5)
        assert reconciles(served) - before == Counter(starts=1, leftovers=1)
        wish = {"metadata": {}, "spec": {"gate": "Open"}}
        await server.api.patch(Kind.DISPATCH_START, NAMESPACE, "llama-s1", wish, timeout=1.0)
        await asyncio.sleep(SOON_SECONDS / 2)
        job = await server.api.get(Kind.TRAIN_JOB, NAMESPACE, NAME, timeout=1.0)
        assert job is not None
        assert not job["spec"].get("suspend"), "what a person wishes never waits"
        await change_job(server, conditions=[{"type": "Complete", "status": "True", "reason": "AllJobsCompleted"}])
        await asyncio.sleep(2 * SOON_SECONDS)
        assert await phase_of(server) == "Succeeded", "an end is recorded within a second"
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
