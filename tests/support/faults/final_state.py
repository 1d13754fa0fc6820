"""How a world is at the end, in the words of the contract."""

from dataclasses import dataclass, fields
from typing import Any

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.reconcile.backend.unproven import GATES
from support.builders import NAME
from support.faults.fault import WRITES
from support.faults.faulty_api import COPY, JOB, START, WORKLOAD, FaultyApi, is_open
from support.records import at, condition, maker_uid

Object = dict[str, Any]
QUIET = 300.0
"""Seconds before the end in which nothing may be written any more."""


@dataclass(frozen=True)
class FinalState:
    """What is left in the end."""

    starts: tuple[object, ...]
    jobs: tuple[tuple[Any, ...], ...]
    copies: tuple[tuple[Any, ...], ...]
    workloads: tuple[object, ...]
    foreign: str


def outcome(world: FaultyApi) -> FinalState:
    """Return what stands at the end, without what differs from run to run."""
    ours = [obj for obj in world.all(JOB) if obj["metadata"]["name"] == NAME]
    uids = {obj["metadata"]["uid"] for obj in ours}
    return FinalState(
        starts=tuple(_start(start, uids) for start in world.all(START)),
        jobs=tuple((_is_ours(world, job), is_open(job), at(job, "spec", "suspend")) for job in ours),
        copies=tuple(
            (
                _is_ours(world, copy),
                tuple(owner["uid"] in uids for owner in at(copy, "metadata", "ownerReferences") or ()),
            )
            for copy in world.all(COPY)
            if copy["metadata"]["name"] == NAME
        ),
        workloads=tuple(
            (at(one, "spec", "active"), tuple(entry["state"] for entry in at(one, "status", "admissionChecks") or ()))
            for one in world.all(WORKLOAD)
        ),
        foreign=repr([obj for obj in world.all(JOB) + world.all(COPY) if obj["metadata"]["name"] != NAME]),
    )


def _start(start: Object, jobs: set[str]) -> object:
    held = tuple((entry["type"], entry["status"], entry["reason"]) for entry in at(start, "status", "conditions") or ())
    return at(start, "status", "phase"), at(start, "status", "reference", "uid") in jobs, held


def _is_ours(world: FaultyApi, obj: Object) -> bool:
    uid = maker_uid(obj)
    return any(uid == start["metadata"]["uid"] for start in world.all(START))


def wrong_with(world: FaultyApi, want: FinalState | ErrorClass, until: float) -> list[str]:
    """Say what is not as it must be at the end.

    Args:
        world: The world.
        want: How it ends when all goes well, or the class of the refusal that leaves nothing behind.
        until: When it ended.
    """
    found = [*dict.fromkeys(world.broken)]
    found += [
        f"it still writes at the end: {request}"
        for when, request in world.asked
        if request.verb in WRITES and when > until - QUIET
    ][:1]
    found += _doubts_that_were_lost(world)
    have = outcome(world)
    if isinstance(want, FinalState):
        return found if have == want else [*found, *_differences(have, want)]
    start = world.one(START)
    told = (
        at(start, "status", "phase"),
        condition(start, "Started").get("status"),
        condition(start, "Started").get("reason"),
    )
    if told != ("Refused", "False", want.value):
        found.append(f"it ends as {told}, not as Refused with {want}")
    left = [held for held in (*have.jobs, *have.copies) if held[0]]
    return [*found, f"it leaves {left} behind"] if left else found


def _doubts_that_were_lost(world: FaultyApi) -> list[str]:
    """Name the gates that a refusal has shown not to hold, and that still count as proven; nothing probes here."""
    shown = {
        gate.value
        for start in world.all(START)
        for step, gate in GATES.items()
        if at(start, "status", "phase") == "Refused" and condition(start, step).get("reason") == ErrorClass.REJECTED
    }
    gates = [gate for backend in world.all("DispatchBackend") for gate in at(backend, "status", "gates") or ()]
    return [f"{gate['name']} is still proven" for gate in gates if gate["proven"] and gate["name"] in shown]


def _differences(have: FinalState, want: FinalState) -> list[str]:
    return [
        f"{part.name} end as {getattr(have, part.name)}, not as {getattr(want, part.name)}"
        for part in fields(FinalState)
        if getattr(have, part.name) != getattr(want, part.name)
    ]
