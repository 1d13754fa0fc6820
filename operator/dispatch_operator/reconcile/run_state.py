"""Whether a job that has not ended is closed, held, queued or runs, and what it waits for (docs/contract.md, Phases).

Nobody watches pods: what an inquiry found stays in the status until the next one.
"""

from typing import NamedTuple

from dispatch_operator.api.enums import Condition, ErrorKind, Phase
from dispatch_operator.reconcile.failure_cause import CAUSES, Cause
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.gates.gate import closed_phase, is_open, is_to_be_held, wants_open, why_not_held
from dispatch_operator.reconcile.inquiries import PERIOD
from dispatch_operator.reconcile.inquiry import trainer_counts, was_asked
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.obstacle import obstacle
from dispatch_operator.reconcile.ownership import in_kueue_mode
from dispatch_operator.reconcile.restarts import RESTARTED
from dispatch_operator.records.trainer import TrainJob

UNTOLERATED = (
    "; after a restart or a hold, pods may have the tolerations of Kueue's ResourceFlavor alone: state every one there"
    " that the jobs need"
)
NOTHING_RUNS = "the gate is open, and nothing runs: "


class State(NamedTuple):
    """Where a job is, and why."""

    phase: Phase
    message: str
    reason: str = ""
    """What keeps it from running, in one word; "" when that is not known."""


def state_of(observed: Observed, now: float) -> State:
    """Return where a job is that has not ended."""
    if not is_open(observed):
        phase = closed_phase(observed)
        closed = "held" if phase is Phase.HELD else "closed"
        return State(phase, f"the start gate is {closed}; set spec.gate to Open to run")
    if is_to_be_held(observed):
        return State(Phase.HOLDING, being_held(observed))
    if trainer_counts(observed.train_job.obj).ready and not _was_stopped(observed):
        return State(Phase.RUNNING, _running(observed, _wanted(observed)))
    if in_kueue_mode(observed) and (reason := kueue_queue.why_it_waits(observed)):
        return State(Phase.QUEUED, _told_of_queue(observed, reason) or reason)
    if was_asked(observed):
        return _asked(observed, now)
    return _recorded(observed) or _waits(observed)


def queue_is_to_be_asked(observed: Observed, now: float) -> bool:
    """Tell whether it is to be read why Kueue keeps the job back: at once, and then once a minute."""
    if in_kueue_mode(observed) and wants_open(observed) and is_open(observed):
        waits = kueue_queue.is_blocked(observed.workload.obj)
        told = _told_of_queue(observed, kueue_queue.why_it_waits(observed))
        return waits and (told is None or now >= observed.last_inquiry + PERIOD)
    return False


def _told_of_queue(observed: Observed, reason: str) -> str | None:
    """Return what status says of a queue that keeps the job back, until that is read again."""
    held = observed.start.status.condition(Condition.SUCCEEDED)
    if held is None or not kueue_queue.is_blocked(observed.workload.obj) or kueue_queue.was_asked(observed):
        return None
    said = held.message.partition(RESTARTED)[0]
    return said if said.startswith(reason) else None


def _was_stopped(observed: Observed) -> bool:
    """Tell whether Kueue has stopped the job, as when its Workload was deleted: what is ready yet is on its way out."""
    job = observed.train_job.obj
    suspended = job is not None and job.spec.suspend is True
    return suspended and in_kueue_mode(observed) and not kueue_queue.is_admitted(observed.workload.obj)


def being_held(observed: Observed) -> str:
    """Say what is missing until a job that is to be held is held."""
    return f"the start gate is being held: {why_not_held(observed)}"


def _asked(observed: Observed, now: float) -> State:
    """Return what the answers of an inquiry say."""
    cause = found_obstacle(observed, now)
    ready = observed.trainer_job.obj.status.ready if observed.trainer_job.obj else 0
    if ready:
        why = f"; {cause.reason}: {cause.message}" if cause else ""
        return State(Phase.RUNNING, _running(observed, ready) + why)
    if cause is None:
        return _waits(observed)
    told = told_obstacle(observed)
    if told and told.reason == "ErrImagePull" and cause.reason == "ImagePullBackOff":
        # The kubelet says the two in turn, and the first says why.
        cause = told
    return State(Phase.QUEUED, f"{NOTHING_RUNS}{cause.reason}: {cause.message}{_remedy(observed, cause)}", cause.reason)


def _remedy(observed: Observed, cause: Cause) -> str:
    """Say what Kueue's flavor lacks, where pods of a job may lack tolerations that its runtime has.

    Trainer's merge puts the flavor's in the place of the runtime's, and a restarted JobSet's pods have no others: seen
    with Kueue 0.19.2, see https://github.com/kubernetes-sigs/kueue/pull/15162.
    """
    is_about_taints = cause.reason == "Unschedulable" and "taint" in cause.message
    return UNTOLERATED if in_kueue_mode(observed) and is_about_taints else ""


def found_obstacle(observed: Observed, now: float) -> Cause | None:
    """Return what the answers of an inquiry say of what keeps the job from running."""
    return obstacle(observed.pods or (), observed.child_warnings or (), observed.warnings or (), now)


def _recorded(observed: Observed) -> State | None:
    """Return what the last inquiry found, until the next one; None when it found nothing of what is so now."""
    if told := told_obstacle(observed):
        return State(Phase.QUEUED, f"{NOTHING_RUNS}{told.reason}: {told.message}", told.reason)
    status, counts = observed.start.status, trainer_counts(observed.train_job.obj)
    held = status.condition(Condition.SUCCEEDED)
    if status.phase is not Phase.RUNNING or held is None or not counts.active:
        return None
    wanted, said = _wanted(observed), held.message.partition(RESTARTED)[0]
    all_run = said == _running(observed, wanted)
    return State(Phase.RUNNING, f"not all of the trainer's {wanted} pods run" if all_run else said)


def told_obstacle(observed: Observed) -> Cause | None:
    """Return what status says of what keeps the job from running."""
    status = observed.start.status
    held = status.condition(Condition.SUCCEEDED)
    if status.phase is not Phase.QUEUED or held is None:
        return None
    prefix = f"{NOTHING_RUNS}{held.reason}: "
    said = held.message.partition(RESTARTED)[0]
    if not said.startswith(prefix):
        return None
    return Cause(held.reason, said.removeprefix(prefix), CAUSES.get(held.reason, ErrorKind.UNKNOWN))


def _waits(observed: Observed) -> State:
    counts = observed.train_job.obj.status.jobs_status if observed.train_job.obj else ()
    if running := ", ".join(sorted(one.name for one in counts if one.ready)):
        return State(Phase.QUEUED, f"the gate is open; {running} runs, and the trainer's pods do not yet")
    if any(one.active for one in counts):
        return State(Phase.QUEUED, "the gate is open; the job's pods are starting")
    return State(Phase.QUEUED, "the gate is open; no pod of the job exists yet")


def _wanted(observed: Observed) -> int:
    return observed.start.request.spec.nodes


def _running(observed: Observed, ready: int) -> str:
    return f"{ready} of {_wanted(observed)} of the trainer's pods run"


def never_ran(observed: Observed, job: TrainJob) -> bool:
    """Tell whether a job's time limit ended it before it ran, and nothing is known of why."""
    ended = job.status.condition("Failed")
    too_late = ended is not None and ended.reason == "DeadlineExceeded"
    return too_late and observed.start.status.phase is Phase.QUEUED and told_obstacle(observed) is None
