"""Playing one scenario with one thing going wrong."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.kinds import Kind
from support.fake_api import Request
from support.faults.fault import FAULTS, Fault, Lasts, durations
from support.faults.faulty_api import FaultPlan, FaultyApi
from support.faults.final_state import FinalState, outcome, wrong_with
from support.faults.older_crd import OLDER_CRDS
from support.faults.running import live
from support.faults.scenarios import MEDDLING, FaultScenario
from support.faults.verdict import refused_with
from support.summary import Summary

REST, REMAINS = 100.0, 600.0
"""Virtual seconds between what humans do, and after the last of it."""
INQUIRIES, MOST_OF_A_KIND = {Kind.EVENT, Kind.JOB, Kind.POD}, 2
"""What is asked of a job that may run and does not, and how often of one kind at a time."""
LONGEST_PAUSE = 240.0
"""Virtual seconds between two requests of one thing that goes on."""


async def play(scenario: FaultScenario, retry: str, plan: FaultPlan) -> FaultyApi:
    """Run a scenario to its end, with what is planned from its last change on."""
    world = scenario.world(retry)
    if not scenario.changes:
        world.plan = plan
    world.happened()
    life = asyncio.create_task(live(world, REST * len(scenario.changes) + REMAINS))
    for number, change in enumerate(scenario.changes, 1):
        await asyncio.sleep(REST)
        if number == len(scenario.changes):
            world.plan = plan
        change(world)
        world.happened()
    await life
    return world


@dataclass(frozen=True)
class Clean:
    """A scenario in which nothing goes wrong."""

    requests: tuple[Request, ...]
    end: FinalState


async def clean(scenario: FaultScenario, retry: str) -> Clean:
    """Play a scenario in which nothing goes wrong, and note its requests."""
    world = await play(scenario, retry, FaultPlan())
    wrong = wrong_with(world, outcome(world), asyncio.get_running_loop().time())
    assert not wrong, wrong
    return Clean(tuple(_before_it_is_asked_again(world.asked[-world.plan.count :])), outcome(world))


def _before_it_is_asked_again(asked: Iterable[tuple[float, Request]]) -> Iterator[Request]:
    """Yield the requests until something is asked that comes again and again: the first time stands for all.

    It is asked each minute why a job does not run, and what waits without an end is looked at again after some minutes.
    """
    inquiries: Counter[str] = Counter()
    last = None
    for at, request in asked:
        if last is not None and at - last > LONGEST_PAUSE:
            return
        last = at
        if request.kind in INQUIRIES:
            inquiries[request.kind] += 1
            if inquiries[request.kind] > MOST_OF_A_KIND:
                return
        yield request


async def every_fault(scenario: FaultScenario, retry: str, summary: Summary) -> list[str]:
    """Let every request of a scenario meet every fault, and say what is not as it must be."""
    base = await clean(scenario, retry)
    assert base.requests
    wrong = []
    for place, request in enumerate(base.requests):
        for fault in FAULTS:
            for lasts in durations(fault) if fault.can_meet(request) else ():
                summary.faults += 1
                found = await _survives(scenario, retry, base, place, fault, lasts)
                summary.survived += not found
                wrong += [f"{place} {request}: {fault}, {lasts.value}: {each}" for each in found]
    return wrong


async def _survives(
    scenario: FaultScenario, retry: str, base: Clean, place: int, fault: Fault, lasts: Lasts
) -> list[str]:
    refused = refused_with(base.requests, place, fault, lasts, retry) if scenario.starts else None
    world = await play(scenario, retry, FaultPlan(place, fault, lasts))
    return wrong_with(world, refused or base.end, asyncio.get_running_loop().time())


async def every_meddling(scenario: FaultScenario, summary: Summary) -> list[str]:
    """Let somebody take marks away before every request of a scenario, and say what is not as it must be."""
    base = await clean(scenario, "OnChange")
    wrong = []
    for place, request in enumerate(base.requests):
        for what, meddles in MEDDLING.items():
            summary.faults += 1
            world = await play(scenario, "OnChange", FaultPlan(place, meddles=meddles))
            now = asyncio.get_running_loop().time()
            # It is refused, and nothing is left; or the marks were not needed any more.
            found = wrong_with(world, ErrorClass.REJECTED, now) and wrong_with(world, base.end, now)
            summary.survived += not found
            wrong += [f"{what} before {place} {request}: {each}" for each in found]
    return wrong


async def every_older_crd(scenario: FaultScenario, summary: Summary) -> list[str]:
    """Let an older CRD be served from every request of a scenario on, for a while, and say what is not as it must be."""
    base = await clean(scenario, "OnChange")
    wrong = []
    for place, request in enumerate(base.requests):
        for older in OLDER_CRDS:
            summary.faults += 1
            world = await play(scenario, "OnChange", FaultPlan(place, older=older))
            found = wrong_with(world, base.end, asyncio.get_running_loop().time())
            summary.survived += not found
            wrong += [f"{older} from {place} {request} on: {each}" for each in found]
    return wrong


async def every_crash(scenario: FaultScenario, summary: Summary) -> list[str]:
    """Let the operator die before and after every request of a scenario, and say what is not as it must be."""
    base = await clean(scenario, "OnChange")
    wrong = []
    for place, request in enumerate(base.requests):
        for when in ("before", "after"):
            summary.faults += 1
            world = await play(scenario, "OnChange", FaultPlan(place, crash=when))
            found = wrong_with(world, base.end, asyncio.get_running_loop().time())
            summary.survived += not found
            wrong += [f"crash {when} {place} {request}: {each}" for each in found]
    return wrong
