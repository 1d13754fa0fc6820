"""Breadth-first search through every interleaving."""

from collections import deque
from dataclasses import dataclass

from support.model.objects import Objects
from support.model.reconciliations import Reconciliations
from support.model.rest import Rest
from support.model.scenario import Scenario, State, first
from support.model.steps import Steps

LIMIT = 400_000
"""States; a scenario that has more is not small enough."""


@dataclass
class SearchResult:
    """What a search has found."""

    states: int
    broken: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        steps = (f"  {number}. {step}" for number, step in enumerate(self.trace, 1))
        return "\n".join([f"{self.broken}, after", *steps])


def search(scenario: Scenario, wanted: str = "") -> SearchResult:
    """Visit every state of a scenario, until a rule is broken; when something is wanted, until that is what is wrong."""
    reconciliations = Reconciliations()
    steps, rest = Steps(scenario, reconciliations), Rest(scenario, reconciliations)
    beginning = first(scenario)
    parents: dict[State, tuple[State, str] | None] = {beginning: None}
    queue = deque([beginning])
    while queue:
        state = queue.popleft()
        if (broken := rest.wrong(state)) and wanted in broken:
            return SearchResult(len(parents), broken, _trace(parents, state))
        for step, following, wrong in steps.of(state):
            if wrong and wanted in (told := "; ".join(wrong)):
                return SearchResult(len(parents), told, (*_trace(parents, state), step))
            if following not in parents:
                parents[following] = (state, step)
                queue.append(following)
        if len(parents) > LIMIT:
            return SearchResult(len(parents), "the scenario is too large")
    return SearchResult(len(parents))


def comes_to_rest(scenario: Scenario) -> Objects:
    """Return what stands in the end when nothing goes wrong."""
    return Rest(scenario, Reconciliations()).come(first(scenario))[0]


def _trace(parents: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    steps: list[str] = []
    at = parents[state]
    while at:
        steps.append(at[1])
        at = parents[at[0]]
    return tuple(reversed(steps))
