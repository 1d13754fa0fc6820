"""Small worlds, each about one thing that can go wrong, or about two at once."""

from collections.abc import Callable
from typing import Any

from dispatch_operator.api.models import read_backend
from dispatch_operator.render import render_copy, render_train_job
from dispatch_operator.render.terms import terms_of
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.model import server
from support.model.explore import comes_to_rest
from support.model.objects import (
    BACKED,
    COPIED,
    FIRST,
    JOB,
    QUEUES,
    SECOND,
    SLOTS,
    SOURCE,
    START,
    TRAINS,
    Obj,
    Objects,
    replaced,
)
from support.model.reconciliations import COLLECT, quickly
from support.model.rules import is_started
from support.model.scenario import Action, Human, Scenario
from support.model.server import born, changed, deleted, is_going
from support.model.suspending import SuspendedRequest, suspended
from support.records import runtime_of, start_of

Value = dict[str, Any]
ONE, OTHER = "llama-s1", "other"


def world(
    *, gate: str = "Closed", retry: str = "OnChange", second: bool = False, kueue: bool = False, **spec: Any
) -> Objects:
    """Return what stands before anything is started; keywords are of the backend."""
    if kueue:
        spec["kueue"] = {"queue": "team-a", "admissionCheck": "dispatch-start"}
    objects: Objects = (None,) * len(SLOTS)
    made = [make_start(gate=gate, retry=retry), make_backend(**spec), make_runtime()]
    made += [make_start(OTHER, gate=gate, retry=retry)] if second else []
    for number, value in enumerate(made):
        slot = SLOTS.index((value["kind"], value["metadata"]["name"]))
        objects = replaced(objects, slot, born(value, number))
    return objects


def _gate(slot: int, gate: str) -> Action:
    def action(objects: Objects, made: int) -> tuple[Objects, int] | None:
        start = objects[slot]
        held = start.value["spec"]["gate"] if start else gate
        if start is None or held == gate or not server.gate_may_become(held, gate):
            return None
        return replaced(
            objects, slot, changed(start, {**start.value, "spec": {**start.value["spec"], "gate": gate}})
        ), made

    return action


def _delete(slot: int) -> Action:
    return lambda objects, made: (replaced(objects, slot, None), made) if objects[slot] else None


def _create_again(objects: Objects, made: int) -> tuple[Objects, int] | None:
    if objects[FIRST]:
        return None
    return replaced(objects, FIRST, born(make_start(gate="Open"), made + 1)), made + 1


def _recreate(objects: Objects, made: int) -> tuple[Objects, int] | None:
    return _create_again(replaced(objects, FIRST, None), made) if objects[FIRST] else None


def _create_job(objects: Objects, made: int) -> tuple[Objects, int] | None:
    if objects[TRAINS]:
        return None
    value = {"kind": JOB, "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"suspend": True}}
    return replaced(objects, TRAINS, born(value, made + 1)), made + 1


def _create_copy(objects: Objects, made: int) -> tuple[Objects, int] | None:
    if objects[COPIED]:
        return None
    value = {"kind": SLOTS[COPIED][0], "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {}}
    return replaced(objects, COPIED, born(value, made + 1)), made + 1


def _edit(slot: int, **spec: Any) -> Action:
    def action(objects: Objects, made: int) -> tuple[Objects, int] | None:
        obj = objects[slot]
        if obj is None:
            return None
        return replaced(objects, slot, changed(obj, {**obj.value, "spec": {**obj.value["spec"], **spec}})), made

    return action


def _delete_in_the_foreground(objects: Objects, made: int) -> tuple[Objects, int] | None:
    start = objects[FIRST]
    return (replaced(objects, FIRST, deleted(start, lingers=True)), made) if start and not is_going(start) else None


def _status(change: Callable[[Value], Value]) -> Action:
    def action(objects: Objects, made: int) -> tuple[Objects, int] | None:
        start = objects[FIRST]
        held = start.value.get("status", {}) if start else {}
        if start is None or "phase" not in held:
            return None
        return replaced(objects, FIRST, changed(start, {**start.value, "status": change(held)})), made

    return action


def _without(*fields: str) -> Action:
    return _status(lambda held: {key: value for key, value in held.items() if key not in fields})


def _job_ends(objects: Objects, made: int) -> tuple[Objects, int] | None:
    job = objects[TRAINS]
    if job is None or job.value["spec"].get("suspend") is True or "status" in job.value:
        return None
    ended = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    return replaced(objects, TRAINS, changed(job, {**job.value, "status": ended})), made


def _open_by_hand(objects: Objects, made: int) -> tuple[Objects, int] | None:
    return _edit(TRAINS, suspend=False)(objects, made) if is_started(objects[FIRST]) else None


def _restore_job(of: Objects) -> Action:
    """Create a TrainJob again as it was, with all its marks, as from a backup."""
    body = {key: value for key, value in of[TRAINS].value.items() if key != "status"}  # type: ignore[union-attr]

    def action(objects: Objects, made: int) -> tuple[Objects, int] | None:
        if objects[TRAINS]:
            return None
        return replaced(objects, TRAINS, born(body, made + 1)), made + 1

    return action


LOSES_STATUS = Human("the status is lost", _status(lambda _: {"observedGeneration": -1}))
LOSES_CONDITIONS = Human("the conditions are lost", _without("conditions"), excuses=False)
LOSES_PHASE = Human("the phase and the conditions are lost", _without("phase", "conditions"))
LOSES_REFERENCE = Human("the reference is lost", _without("reference"), excuses=False)
LOSES_COPY = Human("the copy and the source are lost", _without("copy", "source"), excuses=False)
WRITES_REFERENCE = Human(
    "somebody writes another reference",
    _status(lambda held: {**held, "reference": {"name": "x", "uid": "x"}}),
    excuses=False,
)
SAYS_SUCCEEDED = Human("somebody writes Succeeded", _status(lambda held: {**held, "phase": "Succeeded"}), excuses=False)
SAYS_LOST = Human("somebody writes Lost", _status(lambda held: {**held, "phase": "Lost"}), excuses=False)
SAYS_CANCELLED = Human("somebody writes Cancelled", _status(lambda held: {**held, "phase": "Cancelled"}), excuses=False)
JOB_ENDS = Human("the job ends", _job_ends, excuses=False)
# Only what was recorded as started: that a human opens and deletes a TrainJob before is a known residue.
OPENS_BY_HAND = Human("a human opens the TrainJob by hand", _open_by_hand, excuses=False)
KEPT = "30s"
"""Less than the time that passes at once."""
KEEPS = Human("the admin sets keepEnded", _edit(BACKED, keepEnded=KEPT), excuses=False)
KEEPS_FOR_EVER = Human("the admin takes keepEnded away", _edit(BACKED, keepEnded=None), excuses=False)
DELETES_BACKEND = Human("the admin deletes the backend", _delete(BACKED), excuses=False)
OPENS = Human("a human opens the gate", _gate(FIRST, "Open"), excuses=False)
HOLDS = Human("a human holds the gate", _gate(FIRST, "Held"), excuses=False)
RELEASES = Human("a human releases the gate", _gate(FIRST, "Open"), excuses=False)
HOLDS_AGAIN = Human("a human holds the gate again", _gate(FIRST, "Held"), excuses=False)
CANCELS = Human("a human cancels it", _gate(FIRST, "Cancelled"), excuses=False)
DELETES_WORKLOAD = Human("a human deletes the Workload", _delete(QUEUES), excuses=False)
DEACTIVATES = Human("Kueue deactivates the job", _edit(QUEUES, active=False), excuses=False)
DELETES = Human("a human deletes the DispatchStart", _delete(FIRST))
DELETES_IN_THE_FOREGROUND = Human("a human deletes the DispatchStart in the foreground", _delete_in_the_foreground)
CREATES_AGAIN = Human("a human creates the DispatchStart again, open", _create_again)
RECREATES = Human("a human deletes the DispatchStart and creates it again, open", _recreate)
DELETES_JOB = Human("a human deletes the TrainJob", _delete(TRAINS))
DELETES_COPY = Human("a human deletes the copy", _delete(COPIED))
EDITS_COPY = Human("a human edits the copy", _edit(COPIED, mlPolicy={"numNodes": 9, "torch": {}}))
EDITS_JOB = Human("a human edits the TrainJob", _edit(TRAINS, managedBy="x"))
CREATES_JOB = Human("a human creates a TrainJob of the name", _create_job)
CREATES_COPY = Human("a human creates a runtime of the name", _create_copy)


def drops(*parts: str) -> Callable[[SuspendedRequest], SuspendedRequest]:
    """Return a webhook that drops parts of the metadata of each TrainJob that is created."""

    def webhook(request: SuspendedRequest) -> SuspendedRequest:
        told = request.request
        if (told.verb, told.kind) != ("create", JOB):
            return request
        meta = {key: value for key, value in request.body["metadata"].items() if key not in parts}
        return suspended(told, {**request.body, "metadata": meta})

    return webhook


ALONE = ((0, ONE),)
WITH_COLLECTOR = ((0, ONE), (0, COLLECT))
TWO_OPERATORS = ((0, ONE), (1, ONE))
TWO_STARTS = ((0, ONE), (0, OTHER))


def _left(*slots: int) -> Objects:
    """Return a world with what a DispatchStart that is gone has left behind."""
    gone = {"kind": START, **world()[FIRST].value}  # type: ignore[union-attr]
    gone["metadata"] = {**gone["metadata"], "name": "gone", "uid": "gone-uid"}
    backend, runtime = world()[BACKED], world()[SOURCE]
    assert backend
    assert runtime
    start = start_of(gone)
    copy = render_copy(start, runtime_of(runtime.value))
    job = render_train_job(start, terms_of(read_backend(backend.value)), runtime.value["spec"])
    objects = world(gate="Open")
    for slot, value in ((COPIED, copy), (TRAINS, job)):
        objects = replaced(objects, slot, born(value, 50 + slot)) if slot in slots else objects
    return objects


def started(*, gate: str = "Closed", kueue: bool = False, second: bool = False, **spec: Any) -> Objects:
    """Return a world whose first DispatchStart has started, and come to rest; keywords are of the backend."""
    with quickly():
        objects = comes_to_rest(Scenario("", world(gate=gate, kueue=kueue, **spec), ALONE))
    if second:
        objects = replaced(objects, SECOND, born(make_start(OTHER, gate=gate), 10))
    return objects


def ended(**spec: Any) -> Objects:
    """Return a world whose job has ended, which is recorded; keywords are then written to its backend."""
    ending = _job_ends(started(gate="Open"), 0)
    assert ending
    with quickly():
        objects = comes_to_rest(Scenario("", ending[0], ALONE))
    kept = _edit(BACKED, **spec)(objects, 0) if spec else None
    return kept[0] if kept else objects


def _unproven(objects: Objects) -> Obj:
    """Return an older state of the backend: it had no proof yet."""
    backend = objects[BACKED]
    assert backend
    gates = [{**one, "proven": False, "reason": "old"} for one in backend.value["status"]["gates"]]
    return Obj.of({**backend.value, "status": {**backend.value["status"], "gates": gates}})


def _of_a_human(slot: int) -> Obj:
    """Return what stood in a place of ours, before it was deleted."""
    made = _left(slot)[slot]
    assert made
    return born({**made.value, "metadata": {**made.value["metadata"], "annotations": {}}}, 60)


OLD = tuple((slot, _of_a_human(slot)) for slot in (COPIED, TRAINS))
UNPROVEN = ((BACKED, _unproven(world())),)
LACKING: tuple[tuple[int, Obj | None], ...] = ((BACKED, None), (SOURCE, None))

RESTORES_JOB = Human("the TrainJob is restored", _restore_job(started()))
GATE = (OPENS, HOLDS, RELEASES)
SCENARIOS = (
    Scenario("a Start meets two faults", world(gate="Open"), ALONE, faults=2, ticks=1),
    Scenario("a Start that is not tried again", world(gate="Open", retry="Never"), ALONE, faults=2, ticks=1),
    Scenario("a Start is denied", world(gate="Open"), ALONE, faults=1, denials=1, ticks=1),
    Scenario("an operator dies twice", world(gate="Open"), ALONE, crashes=2, faults=1, silences=1),
    Scenario("webhooks that have not seen the copy", world(gate="Open"), ALONE, blind=2, faults=1),
    Scenario("webhooks that never see it", world(gate="Open"), ALONE, blind=4, ticks=1, excused=True),
    Scenario("the cached backend is old", world(gate="Open", retry="Never"), ALONE, cached=UNPROVEN, silences=1),
    Scenario("the cache holds what is gone", world(gate="Open"), ALONE, cached=OLD, silences=1),
    Scenario("the cache lacks what stands", world(gate="Open", retry="Never"), ALONE, cached=LACKING, silences=1),
    Scenario(
        "a collector that hears nothing",
        world(gate="Open"),
        ((1, ONE), (0, COLLECT)),
        cached=((FIRST, None),),
        faults=1,
    ),
    Scenario("two operators", world(gate="Open"), TWO_OPERATORS, faults=1, reconciliations=1),
    Scenario("two operators, and stale reads", world(gate="Open"), TWO_OPERATORS, silences=1),
    Scenario("two operators, one denied", world(gate="Open"), TWO_OPERATORS, denials=1),
    Scenario("two operators, and a DispatchStart that goes", world(gate="Open"), TWO_OPERATORS, humans=(DELETES,)),
    Scenario(
        "two operators, and the DispatchStart is created again",
        started(gate="Open"),
        TWO_OPERATORS,
        humans=(RECREATES,),
        reconciliations=1,
    ),
    Scenario(
        "two operators, and the TrainJob of a Start is deleted",
        started(),
        TWO_OPERATORS,
        humans=(OPENS, DELETES_JOB),
        silences=1,
        reconciliations=2,
    ),
    Scenario(
        "two operators move the gate", started(), TWO_OPERATORS, humans=GATE, most_humans=3, faults=1, reconciliations=2
    ),
    Scenario("stale reads", world(), ALONE, silences=2, humans=GATE, most_humans=3),
    Scenario("the TrainJob is deleted", world(gate="Open"), ALONE, silences=1, faults=1, humans=(DELETES_JOB,)),
    Scenario(
        "a create that lands after its Start was lost",
        world(),
        ALONE,
        faults=1,
        humans=(DELETES_JOB, OPENS),
    ),
    Scenario(
        "a create that lands late, and a slow garbage collector",
        world(gate="Open"),
        ALONE,
        faults=1,
        ticks=1,
        humans=(DELETES_JOB,),
        lazy=True,
    ),
    Scenario(
        "the DispatchStart is created again",
        world(gate="Open"),
        WITH_COLLECTOR,
        silences=1,
        humans=(DELETES, CREATES_AGAIN),
    ),
    Scenario(
        "the DispatchStart is created again, and a fault",
        world(gate="Open"),
        ALONE,
        faults=1,
        humans=(RECREATES,),
    ),
    Scenario("a deletion in the foreground", world(gate="Open"), ALONE, faults=1, humans=(DELETES_IN_THE_FOREGROUND,)),
    Scenario(
        "the copy changes behind the gate",
        started(),
        ALONE,
        silences=1,
        humans=(EDITS_COPY, DELETES_COPY, OPENS),
        most_humans=3,
        faults=1,
    ),
    Scenario("humans take the name", world(gate="Open"), WITH_COLLECTOR, faults=1, humans=(CREATES_JOB, CREATES_COPY)),
    Scenario(
        "a human edits the copy in a Start", world(gate="Open"), ALONE, faults=1, humans=(EDITS_COPY, DELETES_COPY)
    ),
    Scenario(
        "the TrainJob is edited",
        world(),
        WITH_COLLECTOR,
        faults=1,
        crashes=1,
        lingers=True,
        humans=(EDITS_JOB,),
    ),
    Scenario(
        "a webhook that drops all annotations",
        world(gate="Open"),
        ALONE,
        faults=1,
        crashes=1,
        webhook=drops("annotations"),
        excused=True,
    ),
    Scenario(
        "a webhook that drops the owner, and a fault",
        world(gate="Open"),
        ALONE,
        faults=1,
        crashes=1,
        webhook=drops("ownerReferences"),
        excused=True,
    ),
    Scenario(
        "a webhook that drops all marks",
        world(gate="Open"),
        ALONE,
        humans=(HOLDS,),
        webhook=drops("annotations", "labels", "ownerReferences"),
        excused=True,
    ),
    Scenario(
        "the status of a running job is lost",
        started(gate="Open"),
        ALONE,
        faults=1,
        silences=1,
        humans=(LOSES_STATUS, DELETES_JOB, JOB_ENDS),
        most_humans=3,
    ),
    Scenario(
        "the status of a gated job is lost", started(), ALONE, faults=1, humans=(LOSES_STATUS, OPENS, LOSES_PHASE)
    ),
    Scenario(
        "parts of the status of a running job are lost",
        started(gate="Open"),
        ALONE,
        silences=1,
        humans=(LOSES_CONDITIONS, LOSES_REFERENCE, LOSES_COPY, WRITES_REFERENCE, SAYS_SUCCEEDED, SAYS_LOST),
    ),
    Scenario(
        "parts of the status of a gated job are lost",
        started(),
        ALONE,
        faults=1,
        # With the copy lost, too, another reference can't be told from the right one.
        humans=(LOSES_CONDITIONS, LOSES_REFERENCE, WRITES_REFERENCE, SAYS_SUCCEEDED, SAYS_LOST, OPENS),
    ),
    Scenario(
        "the copy and the conditions of a gated job are lost",
        started(),
        ALONE,
        faults=1,
        humans=(LOSES_CONDITIONS, LOSES_COPY, SAYS_LOST, OPENS),
        most_humans=3,
    ),
    Scenario(
        "a status is lost in the middle of a Start",
        world(gate="Open"),
        ALONE,
        crashes=1,
        humans=(LOSES_STATUS, LOSES_PHASE, DELETES_JOB),
    ),
    Scenario(
        "an ended job is not kept for long",
        started(gate="Open", keepEnded=KEPT),
        WITH_COLLECTOR,
        faults=1,
        silences=1,
        ticks=1,
        humans=(JOB_ENDS, SAYS_SUCCEEDED),
    ),
    Scenario(
        "an ended job is not kept for long, and an operator dies",
        started(gate="Open", keepEnded=KEPT),
        ALONE,
        crashes=2,
        faults=1,
        ticks=1,
        humans=(JOB_ENDS,),
    ),
    Scenario(
        "an ended job is not kept for long, and its status is lost",
        ended(keepEnded=KEPT),
        WITH_COLLECTOR,
        faults=1,
        silences=1,
        ticks=1,
        humans=(LOSES_STATUS, LOSES_PHASE, LOSES_CONDITIONS, OPENS),
    ),
    Scenario(
        "an ended job is not kept for long, and its TrainJob is replaced",
        ended(keepEnded=KEPT),
        ALONE,
        faults=1,
        silences=1,
        ticks=1,
        humans=(DELETES_JOB, CREATES_JOB, RESTORES_JOB),
        excused=True,
    ),
    Scenario(
        "an ended job is not kept for long, and its DispatchStart is created again",
        ended(keepEnded=KEPT),
        ALONE,
        faults=1,
        ticks=1,
        humans=(RECREATES,),
    ),
    Scenario(
        "an ended job is not kept for long, by two operators",
        started(gate="Open", keepEnded=KEPT),
        TWO_OPERATORS,
        ticks=1,
        humans=(JOB_ENDS, SAYS_SUCCEEDED),
        reconciliations=2,
    ),
    Scenario(
        "an ended job, and what its backend says of it changes",
        ended(),
        ALONE,
        faults=1,
        silences=1,
        ticks=1,
        humans=(KEEPS, KEEPS_FOR_EVER, DELETES_BACKEND),
        most_humans=3,
    ),
    Scenario(
        "an end that only the cache holds",
        started(gate="Open", keepEnded=KEPT),
        ALONE,
        cached=((TRAINS, ended()[TRAINS]),),
        faults=1,
        # No write of a status is under way for as long as an ended job is kept.
        lates=False,
        ticks=1,
        humans=(JOB_ENDS,),
        reconciliations=2,
    ),
    Scenario(
        "an ended job, and a keepEnded that only the cache holds",
        ended(),
        ALONE,
        cached=((BACKED, ended(keepEnded=KEPT)[BACKED]),),
        faults=1,
        ticks=1,
    ),
    Scenario("two of one submission", world(gate="Open", second=True), TWO_STARTS, silences=1, excused=True),
    Scenario("two of one submission, and a fault", world(gate="Open", second=True), TWO_STARTS, faults=1, excused=True),
    Scenario("two of one submission, one denied", world(gate="Open", second=True), TWO_STARTS, denials=1, excused=True),
    Scenario(
        "two of one submission, one after the other",
        started(gate="Open", second=True),
        TWO_STARTS,
        humans=(DELETES,),
        silences=1,
        faults=1,
        excused=True,
    ),
    Scenario("humans replace the copy", world(gate="Open"), ALONE, humans=(DELETES_COPY, CREATES_COPY)),
    Scenario("humans replace the TrainJob in a Start", world(gate="Open"), ALONE, humans=(DELETES_JOB, CREATES_JOB)),
    Scenario(
        "humans replace the TrainJob",
        started(),
        ALONE,
        humans=(OPENS, DELETES_JOB, CREATES_JOB),
        most_humans=3,
        faults=1,
    ),
    Scenario(
        "humans edit and replace the TrainJob",
        world(),
        ALONE,
        humans=(EDITS_JOB, DELETES_JOB, CREATES_JOB),
        most_humans=3,
    ),
    Scenario(
        "a leftover copy that humans replace",
        _left(COPIED),
        WITH_COLLECTOR,
        humans=(DELETES_COPY, CREATES_COPY),
    ),
    Scenario("a leftover copy", _left(COPIED), WITH_COLLECTOR, faults=1, silences=1),
    Scenario("a leftover TrainJob", _left(COPIED, TRAINS), ALONE, lazy=True, faults=1),
    Scenario(
        "a human opens by hand",
        started(),
        ALONE,
        faults=1,
        humans=(OPENS_BY_HAND, DELETES_JOB, LOSES_STATUS, OPENS),
        most_humans=4,
    ),
    Scenario(
        "a human opens by hand, and the TrainJob is restored",
        started(),
        ALONE,
        faults=1,
        humans=(OPENS_BY_HAND, DELETES_JOB, RESTORES_JOB, OPENS),
        most_humans=4,
    ),
    Scenario(
        "a human opens by hand, and the DispatchStart is created again",
        started(),
        ALONE,
        faults=1,
        humans=(OPENS_BY_HAND, RECREATES, DELETES_JOB),
        most_humans=3,
    ),
    Scenario(
        "the TrainJob of an open Start is restored",
        started(gate="Open"),
        ALONE,
        silences=1,
        humans=(DELETES_JOB, RESTORES_JOB, LOSES_STATUS, LOSES_REFERENCE),
        most_humans=3,
    ),
    Scenario(
        "Kueue, the status of a running job is lost",
        started(gate="Open", kueue=True),
        ALONE,
        faults=1,
        silences=1,
        humans=(LOSES_STATUS, DELETES_JOB, LOSES_CONDITIONS),
    ),
    Scenario(
        "Kueue, the status of a gated job is lost",
        started(kueue=True),
        ALONE,
        faults=1,
        humans=(LOSES_STATUS, OPENS, LOSES_PHASE, LOSES_CONDITIONS),
    ),
    Scenario(
        "Kueue, the status of a held job is lost",
        started(gate="Open", kueue=True),
        ALONE,
        faults=1,
        humans=(HOLDS, LOSES_STATUS, RELEASES),
        most_humans=3,
    ),
    Scenario(
        "Kueue, a status is lost in the middle of a Start",
        world(gate="Open", kueue=True),
        ALONE,
        crashes=1,
        humans=(LOSES_STATUS, LOSES_PHASE, DELETES_JOB),
    ),
    Scenario("Kueue", world(gate="Open", kueue=True), ALONE, faults=1, silences=1, ticks=1, lazy=True),
    Scenario(
        "Kueue without a Workload",
        # A tick is longer than Kueue is waited for.
        world(gate="Open", kueue=True, timeouts={"workload": "3s"}),
        ALONE,
        faults=1,
        ticks=2,
        lazy=True,
        excused=True,
    ),
    Scenario(
        "Kueue, held and released",
        started(kueue=True),
        ALONE,
        faults=1,
        silences=1,
        humans=GATE,
        most_humans=3,
    ),
    Scenario(
        "Kueue, held before Queued is recorded",
        started(kueue=True),
        TWO_OPERATORS,
        humans=(OPENS, HOLDS),
        faults=1,
        reconciliations=1,
    ),
    Scenario(
        "Kueue, two operators hold and release",
        started(gate="Open", kueue=True),
        TWO_OPERATORS,
        humans=(HOLDS, RELEASES, HOLDS_AGAIN),
        most_humans=3,
        reconciliations=2,
    ),
    Scenario(
        "Kueue, held, released and held again",
        started(gate="Open", kueue=True),
        ALONE,
        humans=(HOLDS, RELEASES, HOLDS_AGAIN),
        most_humans=3,
        faults=1,
    ),
    Scenario(
        "Kueue, held while its Workload is made anew",
        started(gate="Open", kueue=True),
        ALONE,
        faults=1,
        silences=1,
        lazy=True,
        humans=(HOLDS, RELEASES, DELETES_WORKLOAD),
        most_humans=3,
    ),
    Scenario(
        "Kueue deactivates the job",
        started(gate="Open", kueue=True),
        ALONE,
        faults=1,
        silences=1,
        humans=(DEACTIVATES, HOLDS, RELEASES),
        most_humans=3,
    ),
    Scenario("a Start is cancelled", world(gate="Open"), ALONE, faults=1, crashes=1, humans=(CANCELS,)),
    Scenario(
        "a Start whose create goes unanswered is cancelled",
        world(),
        ALONE,
        faults=1,
        ticks=1,
        lates=False,
        humans=(CANCELS,),
    ),
    Scenario("a Start is denied and cancelled", world(), ALONE, denials=1, crashes=1, humans=(CANCELS,)),
    Scenario(
        "a running job is cancelled",
        started(gate="Open"),
        WITH_COLLECTOR,
        faults=1,
        silences=1,
        lingers=True,
        humans=(CANCELS, JOB_ENDS, DELETES_JOB),
        most_humans=3,
    ),
    Scenario(
        "two operators, and a job is opened and cancelled",
        started(),
        TWO_OPERATORS,
        humans=(OPENS, CANCELS),
        reconciliations=2,
    ),
    Scenario(
        "the status of a cancelled Start is lost",
        started(gate="Open"),
        ALONE,
        crashes=1,
        humans=(CANCELS, LOSES_STATUS, LOSES_CONDITIONS, LOSES_PHASE, LOSES_REFERENCE, SAYS_SUCCEEDED),
    ),
    Scenario(
        "a job is cancelled, and the cache lacks its TrainJob",
        started(gate="Open"),
        ALONE,
        cached=((TRAINS, None),),
        humans=(CANCELS,),
    ),
    Scenario(
        "a cancelled Start is created again",
        started(gate="Open"),
        WITH_COLLECTOR,
        lazy=True,
        lingers=True,
        humans=(CANCELS, RECREATES),
    ),
    Scenario(
        "a job is cancelled, and the gate is asked to open",
        started(),
        ALONE,
        crashes=1,
        humans=(CANCELS, OPENS),
    ),
    Scenario(
        "one of two of one submission is cancelled",
        world(second=True),
        (*TWO_STARTS, (0, COLLECT)),
        humans=(CANCELS,),
        excused=True,
    ),
    Scenario(
        "Kueue, a job is held and cancelled",
        started(gate="Open", kueue=True),
        ALONE,
        faults=1,
        lazy=True,
        humans=(HOLDS, CANCELS),
    ),
    Scenario("Kueue, a Start is cancelled", world(gate="Open", kueue=True), ALONE, crashes=1, humans=(CANCELS,)),
    Scenario("somebody writes Cancelled", started(gate="Open"), ALONE, faults=1, humans=(SAYS_CANCELLED, HOLDS)),
)
