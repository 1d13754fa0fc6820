"""What may go wrong in a scenario, and the states that it has."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from support.model.objects import Obj, Objects, replaced
from support.model.reconciliations import Reconciliation
from support.model.rules import Pair, pairs_cancelled, pairs_ended, pairs_opened, pairs_started
from support.model.suspending import SuspendedRequest

Action = Callable[[Objects, int], tuple[Objects, int] | None]


@dataclass(frozen=True)
class Human:
    """What a human, or another controller, may do once."""

    name: str
    action: Action
    excuses: bool = True
    """Whether a Start may be refused because of it."""


@dataclass(frozen=True)
class Scenario:
    """A small world, and how much may go wrong in it."""

    name: str
    objects: Objects
    workers: tuple[tuple[int, str], ...]
    """Who reconciles what: the number of an operator, and the name of a DispatchStart or `collect`."""
    reconciliations: int = 0
    """How many reconciles each worker may begin before the faults stop; 0 for any number."""
    faults: int = 0
    denials: int = 0
    crashes: int = 0
    silences: int = 0
    """How often a watch falls silent about one object."""
    ticks: int = 0
    humans: tuple[Human, ...] = ()
    most_humans: int = 2
    cached: tuple[tuple[int, Obj | None], ...] = ()
    """What the first operator's cache holds of some objects in the beginning, instead of what stands."""
    blind: int = 0
    """How many creates of a TrainJob the admission webhooks deny before they have seen its copy."""
    lates: bool = True
    """Whether a request whose answer was lost may land late."""
    lingers: bool = False
    """Whether a TrainJob that is deleted stays for a while."""
    lazy: bool = False
    """Whether the garbage collector and Kueue take their time."""
    excused: bool = False
    """Whether a refusal is a right end from the beginning."""
    strips: Callable[[SuspendedRequest], SuspendedRequest] = field(default=lambda suspended: suspended)
    """What a mutant leaves out of a request."""
    webhook: Callable[[SuspendedRequest], SuspendedRequest] = field(default=lambda suspended: suspended)
    """What a mutating webhook makes of a request."""

    def sent(self, suspended: SuspendedRequest) -> SuspendedRequest:
        """Return a request as the API server carries it out."""
        return self.strips(self.webhook(suspended))

    def __str__(self) -> str:
        return self.name


class Budget(NamedTuple):
    """What may still go wrong."""

    faults: int
    denials: int
    crashes: int
    silences: int
    ticks: int
    humans: int


class State(NamedTuple):
    """All that the future depends on."""

    objects: Objects
    made: int
    reconciliations: tuple[Reconciliation | None, ...]
    begins: tuple[int, ...]
    """How many reconciles each worker may still begin."""
    silent: tuple[tuple[tuple[int, Obj | None], ...], ...]
    """For each operator, what its cache still holds of the objects that its watches are silent about."""
    late: tuple[SuspendedRequest, ...]
    writers: tuple[str | None, ...]
    """Who has sent each late request."""
    blind: int
    now: int
    budget: Budget
    done: frozenset[str]
    started: frozenset[Pair]
    opened: frozenset[Pair]
    cancelled: frozenset[Pair]
    ended: frozenset[Pair]
    excused: bool


def first(scenario: Scenario) -> State:
    """Return the state in which a scenario begins."""
    operators = max(operator for operator, _ in scenario.workers) + 1
    return State(
        objects=scenario.objects,
        made=max(int(obj.uid.rpartition("-")[2]) for obj in scenario.objects if obj),
        reconciliations=(None,) * len(scenario.workers),
        begins=(scenario.reconciliations,) * len(scenario.workers),
        silent=(scenario.cached, *((),) * (operators - 1)),
        late=(),
        writers=(),
        blind=0,
        now=0,
        budget=Budget(
            faults=scenario.faults,
            denials=scenario.denials,
            crashes=scenario.crashes,
            silences=scenario.silences,
            ticks=scenario.ticks,
            humans=scenario.most_humans if scenario.humans else 0,
        ),
        done=frozenset(),
        started=pairs_started(scenario.objects),
        opened=pairs_opened(scenario.objects),
        cancelled=pairs_cancelled(scenario.objects),
        ended=pairs_ended(scenario.objects),
        excused=scenario.excused,
    )


def view(state: State, operator: int) -> Objects:
    """Return what an operator's cache holds."""
    objects = state.objects
    for slot, obj in state.silent[operator]:
        objects = replaced(objects, slot, obj)
    return objects


def with_look(state: State, worker: int, reconcile: Reconciliation | None) -> State:
    """Return a state in which a worker's reconcile is another one."""
    return state._replace(
        reconciliations=(*state.reconciliations[:worker], reconcile, *state.reconciliations[worker + 1 :])
    )


def with_silent(state: State, operator: int, entries: tuple[tuple[int, Obj | None], ...]) -> State:
    """Return a state in which an operator's cache is stale in just these places."""
    told = tuple(sorted(entries, key=lambda entry: entry[0]))
    return state._replace(silent=(*state.silent[:operator], told, *state.silent[operator + 1 :]))


def has_begun(state: State, worker: int, begun: Reconciliation) -> State:
    """Return a state in which a worker begins a reconcile."""
    left = (*state.begins[:worker], max(state.begins[worker] - 1, 0), *state.begins[worker + 1 :])
    return with_look(state._replace(begins=left), worker, begun)
