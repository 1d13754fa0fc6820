"""Shards over one cluster in memory: each thing is handled by one of them, and nothing is left out."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dispatch_operator.api import times
from dispatch_operator.api.label_selector import LabelSelector
from support.builders import JOB, NAME, NAMESPACE, make_start
from support.faults.faulty_api import COPY, START, WORKLOAD, FaultyApi
from support.faults.running import RunningOperator
from support.faults.scenarios import FaultScenario
from support.records import at, condition
from support.rendering import target_name

pytestmark = pytest.mark.looptime
Object = dict[str, Any]
A, B = "shard=a", "shard=b"
LATE = 100.0
"""Virtual seconds in which everything comes to rest."""


class Asking:
    """A world's requests, as one operator makes them."""

    def __init__(self, world: FaultyApi, before: Callable[[], None] = lambda: None) -> None:
        self._world = world
        self._before = before
        self.asked: list[str] = []
        """Each request with the name of its object."""

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._world, verb)

        async def ask(kind: str, namespace: str, *arguments: Any, **options: Any) -> Any:
            first = arguments[0] if arguments else ""
            self._before()
            self.asked.append(f"{verb} {kind} {first['metadata']['name'] if isinstance(first, dict) else first}")
            return await method(kind, namespace, *arguments, **options)

        return ask


class Shards:
    """A world and the operators that share it; the first one cares for the rest."""

    def __init__(self, *selectors: str, kueue: bool = False, before: Callable[[], None] = lambda: None) -> None:
        self.world = FaultScenario("shards", kueue=kueue).world("OnChange")
        self.world.remove(START, NAMESPACE, "llama-s1")
        self.asking = [Asking(self.world, before) for _ in selectors]
        self.operators = [
            RunningOperator(self.world, asking, LabelSelector.parse(selector) if selector else LabelSelector())
            for asking, selector in zip(self.asking, selectors, strict=True)
        ]

    def put(self, obj: Object, **labels: str) -> Object:
        """Create an object with labels."""
        obj["metadata"] |= {"namespace": NAMESPACE, "labels": labels}
        status = obj.pop("status", {"observedGeneration": -1} if obj["kind"] == START else {})
        return self.world.put(obj, **status)

    async def run(self, seconds: float = LATE) -> list[list[str]]:
        """Let all run for a while, and return what each asked meanwhile."""
        for operator, asking in zip(self.operators, self.asking, strict=True):
            asking.asked.clear()
            if operator not in self.world.watchers:
                operator.start()
        self.operators[0].care_for_rest()
        self.world.happened()
        await asyncio.sleep(seconds)
        assert self.world.broken == []
        return [sorted(asking.asked) for asking in self.asking]

    async def end(self) -> None:
        for operator in self.operators:
            if operator in self.world.watchers:
                await operator.end()

    def relabel(self, name: str, shard: str) -> None:
        """Put a DispatchStart into another shard."""

        def change(start: Object) -> None:
            start["metadata"]["labels"] = {"shard": shard}

        self.world.change(START, name, change)
        self.world.happened()

    def started(self, name: str) -> bool:
        """Tell whether a DispatchStart has started."""
        start = next(one for one in self.world.all(START) if one["metadata"]["name"] == name)
        return condition(start, "Started").get("status") == "True"


def starts() -> list[Object]:
    """Return four DispatchStarts, two for each shard."""
    return [make_start(f"start-{number}", gate="Open", submission=number) for number in range(1, 5)]


def of_name(asked: list[str], name: str) -> list[str]:
    return [one for one in asked if one.endswith(f" {name}")]


@pytest.mark.parametrize("kueue", [False, True], ids=["plain", "kueue"])
async def test_each_start_is_handled_by_its_shard_alone_and_costs_what_it_costs_alone(*, kueue: bool) -> None:
    alone = Shards("", kueue=kueue)
    shards = Shards(A, B, kueue=kueue)
    for number, (one, other) in enumerate(zip(starts(), starts(), strict=True)):
        alone.put(one)
        shards.put(other, shard="ab"[number % 2])
    (want,) = await alone.run()
    first, second = await shards.run()
    for number, start in enumerate(starts()):
        own, others = (first, second) if number % 2 == 0 else (second, first)
        for name in (start["metadata"]["name"], str(target_name(start)), f"trainjob-{target_name(start)}"):
            assert of_name(own, name) == of_name(want, name)
            assert of_name(others, name) == []
        assert shards.started(start["metadata"]["name"])
    assert sorted(first + second) == want
    await alone.end()
    await shards.end()


def orphan() -> Object:
    """Return a copy of a DispatchStart that is gone."""
    return {
        "kind": COPY,
        "metadata": {
            "name": NAME,
            "annotations": {
                "dispatch.phpboyscout.uk/start": "gone",
                "dispatch.phpboyscout.uk/start-uid": "gone-uid",
            },
        },
        "spec": {},
    }


COPY_LABELS = {
    "app.kubernetes.io/managed-by": "dispatch-operator",
    "dispatch.phpboyscout.uk/job-id": JOB,
    "dispatch.phpboyscout.uk/submission": "1",
}


COLLECTED = [f"delete {COPY} {NAME}", f"get {COPY} {NAME}"]


def workload_of_others() -> Object:
    return {
        "kind": WORKLOAD,
        "metadata": {"name": "of-others", "ownerReferences": [{"kind": "Job", "name": "x", "uid": "x"}]},
        "spec": {},
        "status": {"admissionChecks": [{"name": "dispatch-start", "state": "Pending"}]},
    }


async def test_what_belongs_to_no_start_is_handled_by_one_of_them_alone_and_by_another_when_that_is_gone() -> None:
    shards = Shards(A, B, kueue=True)
    shards.put(orphan(), **COPY_LABELS)
    shards.put({"kind": "Job", "metadata": {"name": "x", "uid": "x"}})
    shards.put(workload_of_others())
    first, second = await shards.run()
    assert of_name(first, NAME) == COLLECTED
    assert of_name(first, "of-others") == ["apply_status Workload of-others"]
    assert of_name(first, "dispatch-start") == ["apply_status AdmissionCheck dispatch-start"]
    assert second == []
    assert COPY not in {kind for kind, _, name in shards.world.objects if name == NAME}
    await shards.operators.pop(0).end()
    dead = shards.asking.pop(0)
    dead.asked.clear()
    shards.put(orphan(), **COPY_LABELS)
    (second,) = await shards.run()
    assert of_name(second, NAME) == COLLECTED
    assert dead.asked == []
    await shards.end()


async def test_the_death_of_a_shard_keeps_no_start_of_another_waiting() -> None:
    shards = Shards(A, B)
    for number, start in enumerate(starts()):
        shards.put(start, shard="ab"[number % 2])
    for operator in shards.operators:
        operator.start()
    await shards.operators[0].end()
    shards.operators.pop(0)
    shards.asking.pop(0)
    await shards.run()
    assert [shards.started(f"start-{number}") for number in range(1, 5)] == [False, True, False, True]
    await shards.end()


async def test_a_start_that_no_shard_selects_is_touched_by_none() -> None:
    shards = Shards(A, B)
    shards.put(make_start("of-nobody"))
    assert await shards.run() == [[], []]
    assert at(shards.world.one(START), "status") == {"observedGeneration": -1}
    await shards.end()


@pytest.mark.parametrize("kueue", [False, True], ids=["plain", "kueue"])
async def test_a_start_that_moves_to_another_shard_between_any_two_requests_is_started_once(*, kueue: bool) -> None:
    place = 0
    while await moved_before(place, kueue=kueue):
        place += 1
    assert place > 5


async def moved_before(place: int, *, kueue: bool) -> bool:
    """Let a DispatchStart move before a request; tell whether there was such a request."""
    numbers, moved = itertools.count(), []

    def before() -> None:
        if next(numbers) == place:
            moved.append(place)
            shards.relabel("start-1", "b")

    shards = Shards(A, B, kueue=kueue, before=before)
    shards.put(make_start("start-1", gate="Open"), shard="a")
    _, second = await shards.run()
    assert sorted(kind for kind, _, name in shards.world.objects if name == NAME) == ["TrainJob", COPY]
    assert shards.started("start-1")
    if moved:
        # What comes after the move is the other's.
        shards.world.change(START, "start-1", lambda start: start["spec"].update(gate="Held"))
        first, second = await shards.run()
        assert (first, bool(second)) == ([], True)
    await shards.end()
    return bool(moved)


async def test_the_train_job_of_an_ended_job_is_deleted_by_its_shard_alone_also_after_it_went_to_another() -> None:
    shards = Shards(A, B)
    shards.world.edit("DispatchBackend", lambda backend: backend["spec"].update(keepEnded="1h"))
    for number, start in enumerate(starts()):
        shards.put(start, shard="ab"[number % 2])
    await shards.run(20)
    ended = {"type": "Complete", "status": "True", "lastTransitionTime": times.written(shards.world.clock())}
    for submission in range(1, 5):
        name = f"{NAME.removesuffix('1')}{submission}"
        shards.world.change("TrainJob", name, lambda job: job.update(status={"conditions": [ended]}))
    shards.relabel("start-1", "b")
    await shards.run(1800)
    asked = await shards.run(3600)
    deleted = [[one.rpartition("-s")[2] for one in each if one.startswith("delete TrainJob")] for each in asked]
    assert deleted == [["3"], ["1", "2", "4"]]
    assert await shards.run(3600) == [[], []]
    await shards.end()
