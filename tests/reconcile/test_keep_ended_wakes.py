"""Ended jobs cost no request at rest, and are woken at their moment: by a timer, a restart, or a change of keepEnded."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from dispatch_operator.api import times
from support.builders import NAMESPACE, make_backend, make_runtime, make_start
from support.faults.faulty_api import JOB, FaultyApi
from support.faults.running import RunningOperator

pytestmark = pytest.mark.looptime

BACKEND = "DispatchBackend"
MANY, HOUR = 12, 3600.0


async def world_of_ended_jobs(**spec: Any) -> tuple[FaultyApi, RunningOperator]:
    """Return a world of jobs that have ended a second after another, which is recorded, and the operator there."""
    world = FaultyApi()
    for obj in (make_runtime(), make_backend(**spec)):
        world.put(obj, **obj.pop("status", {}))
    for number in range(1, MANY + 1):
        start = make_start(f"llama-s{number}", gate="Open", submission=number)
        world.put(start, **start.pop("status"))
    operator = RunningOperator(world)
    operator.start()
    world.happened()
    await asyncio.sleep(5)
    for number, job in enumerate(world.all(JOB)):
        ended = {"type": "Complete", "status": "True", "lastTransitionTime": times.written(world.clock() + number)}
        world.change(
            JOB, job["metadata"]["name"], lambda held, ended=ended: held.update(status={"conditions": [ended]})
        )
    world.happened()
    await asyncio.sleep(10)
    assert len(world.all(JOB)) == MANY
    world.asked.clear()
    return world, operator


def keeps(world: FaultyApi, kept: str | None) -> None:
    """Let the admin say how long an ended job is kept."""
    world.edit(BACKEND, lambda backend: backend["spec"].update(keepEnded=kept))
    world.happened()


def asked(world: FaultyApi) -> Counter[str]:
    return Counter(str(request) for _, request in world.asked)


ONCE_EACH = Counter({f"get {BACKEND}": MANY, f"get {JOB}": MANY, f"delete {JOB}": MANY})


async def test_each_is_deleted_at_its_moment_and_costs_nothing_before_and_after() -> None:
    world, operator = await world_of_ended_jobs(keepEnded="24h")
    await asyncio.sleep(23 * HOUR)
    assert world.asked == []
    await asyncio.sleep(2 * HOUR)
    assert world.all(JOB) == []
    assert asked(world) == ONCE_EACH
    deleted = [at for at, request in world.asked if request.verb == "delete"]
    assert deleted[-1] - deleted[0] == pytest.approx(MANY - 1, abs=1)
    world.asked.clear()
    await asyncio.sleep(1000 * HOUR)
    assert world.asked == []
    await operator.end()


async def test_an_operator_that_was_away_finds_them_again() -> None:
    world, operator = await world_of_ended_jobs(keepEnded="24h")
    await operator.end()
    await asyncio.sleep(48 * HOUR)
    operator = RunningOperator(world)
    operator.start()
    await asyncio.sleep(10)
    assert asked(world) == ONCE_EACH
    await operator.end()
    world.asked.clear()
    operator = RunningOperator(world)
    operator.start()
    await asyncio.sleep(10 * HOUR)
    assert world.asked == []
    assert [at["metadata"]["namespace"] for at in world.all("DispatchStart")] == [NAMESPACE] * MANY
    await operator.end()


@pytest.mark.parametrize("first", [None, "1000h", "3h"], ids=["added", "shortened", "lengthened"])
async def test_a_change_wakes_all_and_moves_their_moment(first: str | None) -> None:
    world, operator = await world_of_ended_jobs(keepEnded=first)
    await asyncio.sleep(2 * HOUR)
    keeps(world, "24h")
    await asyncio.sleep(21 * HOUR)
    assert world.asked == []
    await asyncio.sleep(2 * HOUR)
    assert asked(world) == ONCE_EACH
    await operator.end()


async def test_once_it_is_removed_nothing_is_asked_or_deleted_any_more() -> None:
    world, operator = await world_of_ended_jobs(keepEnded="24h")
    keeps(world, None)
    await asyncio.sleep(1000 * HOUR)
    assert world.asked == []
    assert len(world.all(JOB)) == MANY
    await operator.end()
