"""Every step that can be taken from a state: by an operator's reconciles, and by everybody else."""

from collections.abc import Iterator

from dispatch_operator.api import times
from dispatch_operator.kube.errors import ApiError
from support.fake_api import unanswered
from support.model.objects import BACKED, COPIED, FIRST, QUEUES, SECOND, SLOTS, SOURCE, START, TRAINS, Objects, replaced
from support.model.reconciliations import TICK, Reconciliation, Reconciliations
from support.model.rules import (
    is_cancelled,
    is_open,
    pairs_cancelled,
    pairs_ended,
    pairs_opened,
    pairs_started,
    wants,
    wrong_with_write,
)
from support.model.scenario import Scenario, State, has_begun, view, with_look, with_silent
from support.model.server import UNSEEN, carry_out, collectable, is_going, nature, refusal, slot_of, workload_of
from support.model.suspending import Answer, SuspendedRequest
from support.operator import NOW
from support.records import at

LOST, LATER = unanswered("write", "object"), refusal("write", "object", 429, "TooManyRequests", "later")
DENIED = refusal("write", "object", 403, "Forbidden", "exceeded quota: objects")
Found = tuple[str, State, tuple[str, ...]]
"""A step, where it leads, and which rules it breaks."""


class Steps:
    """The steps of one scenario."""

    def __init__(self, scenario: Scenario, reconciliations: Reconciliations) -> None:
        self.scenario, self.reconciliations = scenario, reconciliations

    def of(self, state: State) -> Iterator[Found]:
        if (worker := self._reads_what_never_changes(state)) is not None:
            # It makes no difference when: nothing else needs to be tried before.
            yield from self._steps_of(state, worker)
            return
        for worker in range(len(state.reconciliations)):
            yield from self._steps_of(state, worker)
        yield from self._steps_of_others(state)
        yield from self._crashes(state)

    def _reads_what_never_changes(self, state: State) -> int | None:
        for worker, reconcile in enumerate(state.reconciliations):
            if reconcile and not state.budget.faults and reconcile.next.request.verb == "get":
                slot = slot_of(reconcile.next.request.kind, reconcile.next.request.name)
                if slot == SOURCE:
                    return worker
        return None

    def _steps_of(self, state: State, worker: int) -> Iterator[Found]:
        operator, subject = self.scenario.workers[worker]
        who = f"operator {operator}"
        reconcile = state.reconciliations[worker]
        if reconcile is None:
            may_begin = state.begins[worker] or not self.scenario.reconciliations
            begun = self.reconciliations.begin(subject, view(state, operator), state.now) if may_begin else None
            if begun:
                yield f"{who} begins a {begun}", has_begun(state, worker, begun), ()
            return
        suspended = reconcile.next
        objects, made, answer = self._carry_out(state, operator, suspended)
        writer = reconcile.writer
        after, wrong = self._after_write(state, objects, made, writer)
        wrong = (*wrong, *_wrong_by_what_was_seen(reconcile, state, objects))
        after = _own_start_is_known(after, operator, suspended, subject, answer)
        after = after._replace(blind=after.blind - 1) if answer is UNSEEN and after.blind else after
        yield f"{who}: {suspended}{_told(answer)}", self._answered(after, worker, reconcile, answer), wrong
        if state.budget.faults and suspended.request.verb != "await":
            spent = state._replace(budget=state.budget._replace(faults=state.budget.faults - 1))
            yield f"{who}: {suspended} is lost", self._answered(spent, worker, reconcile, LOST), ()
            if suspended.writes:
                yield f"{who}: {suspended} is put off", self._answered(spent, worker, reconcile, LATER), ()
                if objects is not state.objects:
                    carried, wrong = self._after_write(spent, objects, made, writer)
                    yield (
                        f"{who}: {suspended} is carried out, unanswered",
                        self._answered(carried, worker, reconcile, LOST),
                        wrong,
                    )
            if suspended.writes and self.scenario.lates:
                waiting = spent._replace(late=(*spent.late, suspended), writers=(*spent.writers, writer))
                yield (
                    f"{who}: {suspended} is unanswered, and under way",
                    self._answered(waiting, worker, reconcile, LOST),
                    (),
                )
        if state.budget.denials and suspended.writes and suspended.request.subresource != "status":
            denied = state._replace(budget=state.budget._replace(denials=state.budget.denials - 1), excused=True)
            yield f"{who}: {suspended} is denied", self._answered(denied, worker, reconcile, DENIED), ()

    def _carry_out(self, state: State, operator: int, suspended: SuspendedRequest) -> tuple[Objects, int, Answer]:
        if suspended.request.verb == "await":
            workload = view(state, operator)[QUEUES]
            return state.objects, state.made, workload.value if workload else None
        return carry_out(
            state.objects,
            state.made,
            self.scenario.sent(suspended),
            blind=state.blind > 0,
            lingers=self.scenario.lingers,
        )

    def _answered(self, state: State, worker: int, reconcile: Reconciliation, answer: Answer) -> State:
        return with_look(state, worker, self.reconciliations.go_on(reconcile, answer, state.now))

    def _after_write(
        self, state: State, objects: Objects, made: int, writer: str | None
    ) -> tuple[State, tuple[str, ...]]:
        if objects is state.objects:
            return state, ()
        known = (state.started, state.opened, state.cancelled, state.ended)
        wrong = tuple(wrong_with_write(state.objects, objects, writer, *known))
        return self._changed(state, objects, made), wrong

    def _changed(self, state: State, objects: Objects, made: int) -> State:
        """Return a state after a change of what stands, and what others make of it at once."""
        blind = state.blind
        if objects[COPIED] is not None and _uid(objects, COPIED) != _uid(state.objects, COPIED):
            blind = self.scenario.blind
        if not self.scenario.lazy:
            objects, made = nature(objects, made)
        return state._replace(
            objects=objects,
            made=made,
            blind=blind,
            started=state.started | pairs_started(objects),
            opened=state.opened | pairs_opened(objects),
            cancelled=state.cancelled | pairs_cancelled(objects),
            ended=state.ended | pairs_ended(objects),
        )

    def _steps_of_others(self, state: State) -> Iterator[Found]:
        if self.scenario.lazy:
            for slot in collectable(state.objects):
                yield (
                    f"{SLOTS[slot][0]} is collected",
                    self._changed(state, replaced(state.objects, slot, None), state.made),
                    (),
                )
            if (workload := workload_of(state.objects, state.made)) is not None:
                objects = replaced(state.objects, QUEUES, workload)
                yield "Kueue makes a Workload", self._changed(state, objects, state.made + 1), ()
        for slot in (FIRST, TRAINS):
            obj = state.objects[slot]
            if obj and is_going(obj):
                gone = replaced(state.objects, slot, None)
                yield f"{SLOTS[slot][0]} {obj.uid} is gone", self._changed(state, gone, state.made), ()
        for number, suspended in enumerate(state.late):
            rest = state._replace(
                late=state.late[:number] + state.late[number + 1 :],
                writers=state.writers[:number] + state.writers[number + 1 :],
            )
            objects, made, _ = self._carry_out(state, 0, suspended)
            after, wrong = self._after_write(rest, objects, made, state.writers[number])
            yield f"{suspended} lands late", after, wrong
        if state.budget.ticks:
            spent = state._replace(budget=state.budget._replace(ticks=state.budget.ticks - 1), now=state.now + 1)
            yield "time passes", spent, ()
        yield from self._humans(state)
        yield from self._watches(state)

    def _humans(self, state: State) -> Iterator[Found]:
        for human in self.scenario.humans if state.budget.humans else ():
            made = human.action(state.objects, state.made) if human.name not in state.done else None
            if made:
                spent = state._replace(
                    budget=state.budget._replace(humans=state.budget.humans - 1),
                    done=state.done | {human.name},
                    excused=state.excused or human.excuses,
                )
                yield human.name, self._changed(spent, *made), ()

    def _watches(self, state: State) -> Iterator[Found]:
        for operator, silent in enumerate(state.silent):
            for entry in silent:
                heard = with_silent(state, operator, tuple(one for one in silent if one is not entry))
                yield f"operator {operator} hears of {SLOTS[entry[0]][0]} again", heard, ()
            for slot in range(BACKED) if state.budget.silences else ():
                if slot not in dict(silent) and _matters(self.scenario, slot):
                    falls = with_silent(state, operator, (*silent, (slot, state.objects[slot])))
                    spent = state.budget._replace(silences=state.budget.silences - 1)
                    step = f"operator {operator} hears no more of {SLOTS[slot][0]} {SLOTS[slot][1]}"
                    yield step, falls._replace(budget=spent), ()

    def _crashes(self, state: State) -> Iterator[Found]:
        for operator in range(len(state.silent)) if state.budget.crashes else ():
            reconciliations = tuple(
                None if self.scenario.workers[worker][0] == operator else reconcile
                for worker, reconcile in enumerate(state.reconciliations)
            )
            if reconciliations != state.reconciliations:
                spent = state.budget._replace(crashes=state.budget.crashes - 1)
                requeue = with_silent(state, operator, ())
                yield f"operator {operator} dies", requeue._replace(reconciliations=reconciliations, budget=spent), ()


def _wrong_by_what_was_seen(reconcile: Reconciliation, state: State, after: Objects) -> Iterator[str]:
    """Say what a reconcile should not have done, by what it began with, and by the time."""
    seen = next((obj for obj in reconcile.view if obj and obj.uid == reconcile.writer), None)
    creates = reconcile.next.request.verb == "create"
    if seen and creates and is_going(seen):
        yield "a DispatchStart that is being deleted was started"
    old, new = state.objects[TRAINS], after[TRAINS]
    opens = new is not None and is_open(new) and not (old is not None and is_open(old))
    if seen and (creates or opens) and wants(seen) == "Cancelled":
        yield "a DispatchStart that is cancelled was started"
    for was, start in zip(state.objects[: SECOND + 1], after[: SECOND + 1], strict=True):
        since = at(was.value, "status", "inFlightSince") if was else None
        is_known = since != times.written(NOW + state.now * TICK)
        if start and is_cancelled(start) and not at(start.value, "status", "reference") and not is_known:
            yield "a cancellation was recorded while a create was in flight"


def _own_start_is_known(
    state: State, operator: int, suspended: SuspendedRequest, subject: str, answer: Answer
) -> State:
    """Return a state in which an operator's cache holds the DispatchStart that it has itself written, or read again."""
    if suspended.request.kind != START or suspended.request.name != subject or isinstance(answer, ApiError):
        return state
    known = tuple(
        (slot, state.objects[slot] if SLOTS[slot][1] == subject else obj) for slot, obj in state.silent[operator]
    )
    return with_silent(state, operator, known)


def _uid(objects: Objects, slot: int) -> str | None:
    obj = objects[slot]
    return obj.uid if obj else None


def _matters(scenario: Scenario, slot: int) -> bool:
    return scenario.objects[slot] is not None or slot in {COPIED, TRAINS}


def _told(answer: Answer) -> str:
    return f" -> {answer.status} {answer.reason}" if isinstance(answer, ApiError) else ""
