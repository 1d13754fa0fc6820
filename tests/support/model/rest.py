"""Where a world comes to rest once nothing goes wrong any more: the promised end, and then nothing is written."""

from typing import TYPE_CHECKING

from support.model.objects import COPIED, FIRST, QUEUES, TRAINS, Objects, replaced
from support.model.reconciliations import COLLECT, Reconciliations
from support.model.rules import wrong_in_the_end
from support.model.scenario import Scenario, State
from support.model.server import carry_out, is_going, nature

if TYPE_CHECKING:
    from support.model.suspending import SuspendedRequest

ROUNDS = 12
"""Rounds of reconciles within which everybody comes to rest."""


class Rest:
    """The ends of one scenario."""

    def __init__(self, scenario: Scenario, reconciliations: Reconciliations) -> None:
        self.scenario, self.reconciliations = scenario, reconciliations
        self._known: dict[tuple[Objects, int, int, tuple[SuspendedRequest, ...]], tuple[Objects, bool]] = {}

    def wrong(self, state: State) -> str:
        """Say what is wrong with where the world comes to rest, once nothing goes wrong any more."""
        if any(state.reconciliations):
            return ""
        key = (state.objects, state.made, state.now, state.late)
        if key not in self._known:
            self._known[key] = self.come(state)
        objects, quiet = self._known[key]
        excused = state.excused or (self.scenario.faults > 0 and _is_impatient(state))
        wrong = [] if quiet else ["it never comes to rest"]
        wrong += wrong_in_the_end(objects, excused=excused)
        if not wrong:
            return ""
        return f"once nothing goes wrong any more: {'; '.join(wrong)}; it rests at {[obj for obj in objects[:QUEUES] if obj]}"

    def come(self, state: State) -> tuple[Objects, bool]:
        """Return what stands in the end, and whether nothing is written there any more."""
        objects, made = state.objects, state.made
        for suspended in state.late:
            objects, made, _ = carry_out(objects, made, self.scenario.sent(suspended), blind=False, lingers=False)
        now, quiet = state.now, 0
        subjects = dict.fromkeys([*(subject for _, subject in self.scenario.workers), COLLECT])
        for _ in range(ROUNDS):
            before = objects
            for subject in subjects:
                objects, made = self._whole_look(subject, objects, made, now)
            quiet = quiet + 1 if objects is before else 0
            if quiet > 1:
                return objects, True
            now += 1
        return objects, False

    def _whole_look(self, subject: str, objects: Objects, made: int, now: int) -> tuple[Objects, int]:
        objects, made = nature(_without_going(objects), made)
        reconcile = self.reconciliations.begin(subject, objects, now)
        while reconcile:
            objects, made, answer = carry_out(
                objects, made, self.scenario.sent(reconcile.next), blind=False, lingers=False
            )
            objects, made = nature(objects, made)
            reconcile = self.reconciliations.go_on(reconcile, answer, now)
        return objects, made


def _is_impatient(state: State) -> bool:
    return any(start and start.value["spec"].get("retry") == "Never" for start in state.objects[:COPIED])


def _without_going(objects: Objects) -> Objects:
    for slot in (FIRST, TRAINS):
        obj = objects[slot]
        if obj and is_going(obj):
            objects = replaced(objects, slot, None)
    return objects
