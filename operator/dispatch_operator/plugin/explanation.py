"""Why a Start does not run, or how it ended, in plain words, with what to do next. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition, ConditionStatus, ErrorClass, Gate, Phase, Retry
from dispatch_operator.api.models.status import Condition as Entry
from dispatch_operator.plugin.advice import Advisor, Step, kept_back, split
from dispatch_operator.plugin.facts import MANAGED_BY_KUEUE, MAY_RUN, Facts
from dispatch_operator.plugin.session import Kubectl
from dispatch_operator.plugin.telling import CLEARED_AWAY, altered_copy, failed_step, without_not_probed
from dispatch_operator.reconcile.failure_cause import Cause
from dispatch_operator.reconcile.gates import gated_copy, kueue_queue
from dispatch_operator.reconcile.obstacle import obstacle
from dispatch_operator.reconcile.ownership import in_kueue_mode, is_ours
from dispatch_operator.reconcile.run_state import NOTHING_RUNS, state_of, told_obstacle
from dispatch_operator.records.dispatch import DispatchStart

JUST_NOW = 15.0
"""Seconds in which an operator has looked at a new object."""
REFERENCE_LOST = "ReferenceLost"
_IS_ANOTHERS = re.compile("exists and is (not of this DispatchStart|owned by)")
_GATE_IS_OPEN = "the gate is open; "


@dataclass(frozen=True)
class Explanation:
    """What a person is told of a Start."""

    name: str
    namespace: str
    phase: str
    reason: str
    """One word: the class of a refusal, the cause of a failure, what keeps it from running, or the phase."""
    summary: str
    problems: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be looked at, and what else is to be known."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "phase": self.phase or None,
            "reason": self.reason or None,
            "summary": self.summary,
            "problems": list(self.problems),
            "next": [step.as_json() for step in self.steps],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Told:
    """The parts of an explanation that a phase decides."""

    summary: str
    problems: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    reason: str = ""
    phase: str = ""
    """Where it is live, if that is not what status says."""


def explanation(facts: Facts, kubectl: Kubectl, now: float) -> Explanation:
    """Explain a Start by what was read of it.

    Args:
        facts: What was read.
        kubectl: Writes the commands.
        now: Seconds since the epoch.
    """
    start, advisor = facts.start, Advisor(facts.start, kubectl)
    status, meta = start.status, start.metadata
    ready = status.condition(Condition.READY)
    told = _told(facts, advisor, now)
    is_late = _is_behind(start) and not _was_cancelled_since(start)
    late = (advisor.see_operator("If it lasts, see whether the operator runs"),) if is_late else ()
    return Explanation(
        name=meta.name,
        namespace=meta.namespace,
        phase=told.phase or status.phase or "",
        reason=told.reason or (ready.reason if ready else ""),
        summary=told.summary,
        problems=tuple(dict.fromkeys(told.problems)),
        steps=tuple(dict.fromkeys((*told.steps, *late))),
        notes=(*_notes(facts), *(f"not looked at: {line}" for line in facts.unread)),
    )


def _told(facts: Facts, advisor: Advisor, now: float) -> Told:
    status = facts.start.status
    phase = status.phase
    if _was_cancelled_since(facts.start):
        steps = (advisor.see_operator("It is stopped by itself. If it lasts, see whether the operator runs"),)
        return Told("you have cancelled it; no operator has seen it yet", (), steps)
    if phase is None:
        return _unseen(facts, advisor, now)
    if (lost := _with_reason(facts, REFERENCE_LOST)) is not None:
        text = "the operator does not know any more which TrainJob it started, and a person must say so"
        says = lost.message[lost.message.index("kubectl patch") :] if "kubectl patch" in lost.message else ""
        steps = (Step("If it is the one, say so; otherwise delete it", says),)
        return Told(text, (lost.message,), steps, REFERENCE_LOST)
    if not phase.is_end and (kueues := _with_reason(facts, MANAGED_BY_KUEUE)) is not None:
        steps = (advisor.check_backend("Give the backend a kueue section, or let Kueue leave the namespace alone"),)
        return Told("Kueue manages the job, though its backend is in plain mode", (kueues.message,), steps)
    if phase in MAY_RUN:
        return _may_run(facts, advisor, now)
    return _PHASES[phase](facts, advisor)


def _with_reason(facts: Facts, reason: str) -> Entry | None:
    told = facts.start.status.condition(Condition.SUCCEEDED)
    return told if told is not None and told.reason == reason else None


def _unseen(facts: Facts, advisor: Advisor, now: float) -> Told:
    start = facts.start
    created = times.read(start.metadata.creation_timestamp)
    if start.lost_its_status:
        return Told(
            "its status was lost; the operator records anew what it finds", (), (advisor.ask_again("Look again"),)
        )
    if created is not None and now - created < JUST_NOW:
        return Told(
            "it was created a moment ago, and no operator has looked at it yet", (), (advisor.ask_again("Look again"),)
        )
    problems = ("no operator runs, or none serves this namespace, or none selects the labels of this DispatchStart",)
    runs = advisor.see_operator("See whether the operator runs")
    serves = "See which namespaces and labels it serves; one that you run yourself was told so by its options"
    steps = (runs, Step(serves, runs.command + " -o jsonpath='{.items[*].spec.containers[*].args}'"))
    return Told("no operator has looked at it yet", problems, steps)


def _verdict(facts: Facts, advisor: Advisor, summary: Mapping[ConditionStatus, str]) -> Told:
    """Explain a Start that waits or is refused, by the condition of its step."""
    entry = failed_step(facts.start.status)
    if entry is None:
        return Told(summary[ConditionStatus.UNKNOWN])
    problems = tuple(split(without_not_probed(entry.message)))
    text = summary[entry.status].format(reason=entry.reason, step=entry.type)
    steps: Iterable[Step]
    if entry.status is ConditionStatus.UNKNOWN:
        steps = _waits(entry, advisor)
    else:
        steps = advisor.of_problems(problems, entry.type, entry.reason)
    return Told(text, problems, tuple(steps), entry.reason)


def _waits(entry: Entry, advisor: Advisor) -> Iterator[Step]:
    match entry.reason:
        case "WaitingForProbe":
            yield advisor.check_backend("See how far the backend's probe is; then it goes on by itself")
        case "WaitingForWorkload":
            yield advisor.check_backend(
                "It goes on by itself once Kueue has made the Workload; if it lasts, see its set-up"
            )
        case "TrainJobLeaving" if "kubectl delete" in entry.message:
            yield Step(
                "Nothing deletes that TrainJob by itself", entry.message[entry.message.index("kubectl delete") :]
            )
        case _:
            yield advisor.ask_again()


def _pending(facts: Facts, advisor: Advisor) -> Told:
    again = "; it is looked at again when what it rests on changes"
    words = {
        ConditionStatus.UNKNOWN: "it waits, and nothing has been refused",
        ConditionStatus.FALSE: f"it is refused for now ({{reason}}){again}",
    }
    return _verdict(facts, advisor, words)


def _starting(facts: Facts, advisor: Advisor) -> Told:
    words = {
        ConditionStatus.UNKNOWN: "nothing is wrong so far",
        ConditionStatus.FALSE: "a request failed in passing ({reason}), and is made again",
    }
    return _verdict(facts, advisor, words)


def _in_flight(facts: Facts, advisor: Advisor) -> Told:
    entry = failed_step(facts.start.status)
    text = "a request went unanswered, and the operator reads until it knows what became of it"
    if facts.start.gate is Gate.CANCELLED:
        text = f"it is cancelled, but {text}"
    return Told(text, tuple(split(entry.message)) if entry else (), (advisor.ask_again(),))


def _refused(facts: Facts, advisor: Advisor) -> Told:
    told = _verdict(facts, advisor, dict.fromkeys(ConditionStatus, "for good ({reason}), and nothing of it is left"))
    if told.reason == ErrorClass.INVALID:
        return told
    if any(_IS_ANOTHERS.search(problem) for problem in told.problems):
        last = advisor.of_taken_submission()
    elif facts.start.retry is Retry.NEVER and told.reason != ErrorClass.REJECTED:
        last = Step("retry is Never: once that is mended, create another DispatchStart of the same submission")
    else:
        last = advisor.submit_again("This refusal is final: once that is mended, submit it again")
    return Told(told.summary, told.problems, (*told.steps, last), told.reason)


def _stopping(facts: Facts, advisor: Advisor) -> Told:
    started = facts.start.status.condition(Condition.STARTED)
    if facts.start.gate is Gate.CANCELLED:
        unknown = started is not None and started.reason == ErrorClass.OUTCOME_UNKNOWN
        problems = (started.message,) if started and unknown else ()
        made = facts.start.status.reference is not None
        what = "its job is being stopped" if made else "what was begun of it is being taken away"
        return Told(f"it is cancelled, and {what}", problems, (advisor.ask_again(),))
    told = _verdict(
        facts, advisor, dict.fromkeys(ConditionStatus, "it was refused ({reason}), and what was made is being deleted")
    )
    reconciling = facts.start.status.condition(Condition.RECONCILING)
    more = (reconciling.message,) if reconciling and "see the condition" not in reconciling.message else ()
    return Told(told.summary, (*told.problems, *more), told.steps, told.reason)


def _gated(facts: Facts, advisor: Advisor) -> Told:
    status, name = facts.start.status, advisor.name
    if copied := altered_copy(facts.start):
        return _altered(copied, facts, advisor)
    reconciling = status.condition(Condition.RECONCILING)
    if facts.start.gate is Gate.OPEN:
        problems = (reconciling.message,) if reconciling else ()
        return Told("it is started, and its gate is being opened", problems, (advisor.ask_again(),))
    opens = Step("Open it", advisor.kubectl("dispatch", "open", name))
    if status.phase is Phase.HELD:
        return Told("its job is stopped, and runs again from its beginning once it is opened", (), (opens,))
    gate = "held" if facts.start.gate is Gate.HELD else "closed"
    return Told(f"it is started, and its gate is {gate}: nothing is wrong, and nothing runs", (), (opens,))


def _altered(copied: Entry, facts: Facts, advisor: Advisor) -> Told:
    """Explain a gate that stays closed: only of a copy that is there, and whose source is what was copied, it opens."""
    text = "it is started, and its gate stays closed: the copy of its runtime"
    # How the operator says that the copy of this UID is not there any more.
    if gated_copy.CAN_NOT_RUN in copied.message:
        is_gone = " is gone; " in copied.message
        text = f"{text} {'is gone' if is_gone else 'was replaced by another'}"
        return Told(text, (copied.message,), tuple(advisor.delete_and_submit_again()), copied.reason)
    text = f"{text} is not what was submitted"
    source = facts.start.status.source
    called = f"{source.kind}/{source.name}" if source else ""
    if source is None or (facts.observed.runtime.live and not gated_copy.is_source_unchanged(facts.observed)):
        problem = f"its source {called} is gone or was changed since, so that the copy can't be restored from it"
        return Told(text, (copied.message, problem), tuple(advisor.delete_and_submit_again()), copied.reason)
    edit = advisor.kubectl("edit", "trainingruntime", facts.start.target)
    steps = (Step(f"Give the copy the spec of its source, {called}, again; then the gate may open", edit),)
    return Told(text, (copied.message,), steps, copied.reason)


def _succeeded(facts: Facts, _: Advisor) -> Told:
    outcome = facts.start.status.outcome
    return Told("nothing is to be done", (outcome.message,) if outcome and outcome.message else ())


def _failed(facts: Facts, advisor: Advisor) -> Told:
    outcome = facts.start.status.outcome
    if outcome is None:
        logs = advisor.logs("See what the trainer wrote")
        return Told("nothing tells why", (), () if facts.was_cleared_away else (logs,))
    where = f", exit code {outcome.exit_code}" if outcome.exit_code is not None else ""
    obstacle = kept_back(outcome.message or "")
    if obstacle:
        steps = tuple(advisor.of_no_run(obstacle))
    else:
        pod = None if facts.was_cleared_away else outcome.pod
        steps = tuple(advisor.of_failure(outcome.cause or "", outcome.error_kind, pod))
    return Told(f"the cause is {outcome.cause}{where}", (outcome.message or "",), steps, outcome.cause or "")


def _lost(facts: Facts, advisor: Advisor) -> Told:
    outcome = facts.start.status.outcome
    step = advisor.submit_again("If that was not meant, submit it again")
    return Told("its TrainJob was deleted after it was started", (outcome.message or "",) if outcome else (), (step,))


def _cancelled(facts: Facts, advisor: Advisor) -> Told:
    made = facts.start.status.reference is not None
    return Told(
        "its job was stopped, for good" if made else "no job of it was made, and none will be",
        (),
        (advisor.submit_again("If you want it after all, submit it again"),),
    )


_PHASES: Mapping[Phase, Callable[[Facts, Advisor], Told]] = {
    Phase.PENDING: _pending,
    Phase.STARTING: _starting,
    Phase.IN_FLIGHT: _in_flight,
    Phase.REFUSED: _refused,
    Phase.STOPPING: _stopping,
    Phase.GATED: _gated,
    Phase.HELD: _gated,
    Phase.SUCCEEDED: _succeeded,
    Phase.FAILED: _failed,
    Phase.LOST: _lost,
    Phase.CANCELLED: _cancelled,
}


def _may_run(facts: Facts, advisor: Advisor, now: float) -> Told:
    """Explain a job whose gate is open, by what the cluster says now; where that can't be read, by status."""
    observed = facts.observed
    job = observed.train_job.obj
    if job is None or not is_ours(observed, job):
        return _by_status(facts, advisor)
    state = state_of(observed, now)
    if state.phase is Phase.RUNNING:
        told = state.message.partition("; ")[0]
        cause = obstacle(observed.pods or (), observed.child_warnings or (), observed.warnings or (), now)
        return _running(told, cause, advisor)
    if state.phase is not Phase.QUEUED:
        return Told(state.message, (), (advisor.ask_again(),), phase=state.phase)
    workload = observed.workload.obj
    if in_kueue_mode(observed) and not kueue_queue.is_admitted(workload):
        said = state.message.removeprefix(_GATE_IS_OPEN)
        steps = tuple(advisor.of_queue(said, workload.metadata.name if workload else ""))
        return Told("its gate is open, and it waits in Kueue's queue", tuple(split(said)), steps, phase=state.phase)
    found = obstacle(observed.pods or (), observed.child_warnings or (), observed.warnings or (), now)
    cause = found or told_obstacle(observed)
    if cause is None:
        said = state.message.removeprefix(_GATE_IS_OPEN)
        return Told(f"its gate is open, and {said}", (), (advisor.ask_again(),), phase=state.phase)
    # Where the pods may not be looked at, status still tells.
    said = state.message if state.message.startswith(NOTHING_RUNS) else f"{cause.reason}: {cause.message}"
    return _kept_by(cause, said.removeprefix(NOTHING_RUNS), advisor)


def _running(said: str, cause: Cause | None, advisor: Advisor) -> Told:
    if cause is None:
        return Told(said, (), (advisor.logs("See what the trainer writes"),), phase=Phase.RUNNING)
    text = f"in part; {said}"
    return Told(
        text, (f"{cause.reason}: {cause.message}",), tuple(advisor.of_obstacle(cause)), cause.reason, Phase.RUNNING
    )


def _kept_by(cause: Cause, said: str, advisor: Advisor) -> Told:
    text = NOTHING_RUNS.removeprefix("the ").rstrip(": ")
    return Told(f"its {text}", (said,), tuple(advisor.of_obstacle(cause)), cause.reason, Phase.QUEUED)


def _by_status(facts: Facts, advisor: Advisor) -> Told:
    if cause := told_obstacle(facts.observed):
        return _kept_by(cause, f"{cause.reason}: {cause.message}", advisor)
    succeeded = facts.start.status.condition(Condition.SUCCEEDED)
    said = succeeded.message if succeeded else ""
    return Told(said.replace("the gate", "its gate", 1) or "it goes on", (), (advisor.ask_again(),))


def _is_behind(start: DispatchStart) -> bool:
    """Tell whether the object was changed since the operator looked at it."""
    seen = start.status.observed_generation
    return start.status.phase is not None and seen is not None and seen < start.metadata.generation


def _was_cancelled_since(start: DispatchStart) -> bool:
    """Tell whether the gate was cancelled, and no operator has looked at that yet."""
    phase = start.status.phase
    has_ended = phase is not None and phase.is_end
    is_new = phase is None and not start.lost_its_status
    return start.gate is Gate.CANCELLED and not has_ended and (is_new or _is_behind(start))


def _notes(facts: Facts) -> Iterator[str]:
    start = facts.start
    meta = start.metadata
    if meta.is_terminating:
        held = f", held by {', '.join(meta.finalizers)}" if meta.finalizers else ""
        yield f"it is being deleted{held}"
    if _is_behind(start):
        yield "the operator has not looked at the latest change yet: what is told may be of before"
    if facts.was_cleared_away:
        yield f"its TrainJob is gone: {CLEARED_AWAY}"
    if restarts := start.status.restarts:
        last = start.status.last_restart
        why = f", last because of {last.cause}: {last.message}" if last else ""
        yield f"the JobSet restarted it {'once' if restarts == 1 else f'{restarts} times'}{why}"
    if evictions := start.status.evictions:
        yield f"Kueue put it back into its queue {'once' if evictions == 1 else f'{evictions} times'}"
