"""Every safety rule (docs/contract.md, Safety rules), taken out: the search must notice."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from msgspec import structs

from dispatch_operator.api.enums import ErrorClass, Gate, Phase
from dispatch_operator.api.group import START_GATE
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.controllers import orphaned_copies
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.reconcile import cancellation, decide, expiry, ownership, started
from dispatch_operator.reconcile.actions import (
    Action,
    Get,
    PatchStatus,
    Result,
    expire_train_job,
    find_workload,
    get_backend,
    get_train_job,
    release_workload,
    set_suspend,
)
from dispatch_operator.reconcile.backend.unproven import mark_unproven
from dispatch_operator.reconcile.gates import kueue
from dispatch_operator.reconcile.gates.gate import is_open, wants_open
from dispatch_operator.reconcile.observation import Observation, Observed, Origin
from dispatch_operator.reconcile.ownership import Standing
from dispatch_operator.reconcile.step_result import Refusal
from dispatch_operator.reconcile.steps import create_train_job, read_back, set_owner
from dispatch_operator.reconcile.teardown import next_delete, stop
from dispatch_operator.records.base import Annotations, ObjectMeta
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.trainer import TrainingRuntime, TrainJob
from support.model import server
from support.model.explore import SearchResult, search
from support.model.reconciliations import quickly
from support.model.scenarios import SCENARIOS
from support.model.suspending import SuspendedRequest, suspended

Patch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Mutant:
    """The operator without one rule, and the scenario that shows why it is there."""

    rule: str
    without: str
    scenario: str
    notices: str
    """What the search must say of it."""
    patch: Patch = nullcontext
    strips: Callable[[SuspendedRequest], SuspendedRequest] = lambda request: request

    def __str__(self) -> str:
        return f"{self.rule}: {self.without}"

    def search(self) -> SearchResult:
        """Search its scenario for what goes wrong."""
        found = next(scenario for scenario in SCENARIOS if scenario.name == self.scenario)
        scenario = replace(found, strips=self.strips)
        with self.patch(), quickly():
            return search(scenario, self.notices)


def _instead(target: object, name: str, function: Any) -> Patch:
    return lambda: mock.patch.object(target, name, function)


def _without(verb: str, kind: str, *keys: str, subresource: str = "") -> Callable[[SuspendedRequest], SuspendedRequest]:
    """Leave preconditions out of the requests of a kind."""

    def strips(request: SuspendedRequest) -> SuspendedRequest:
        told = request.request
        if (told.verb, told.kind, told.subresource) != (verb, kind, subresource):
            return request
        meta = {key: value for key, value in request.body["metadata"].items() if key not in keys}
        return suspended(told, {**request.body, "metadata": meta})

    return strips


def _is_there(observation: Any) -> bool:
    return observation.obj is not None or observation.origin is not Origin.CACHED


def _absent_says_the_cache(observed: Observed) -> Any:
    return Standing.ABSENT if observed.train_job.obj is None else ownership.standing(observed)


def _as_it_stands(observed: Observed, end: Phase) -> bool:
    del observed, end
    return True


def _final(step: Any, error: Any, *, never_final: bool = False) -> Refusal:
    del never_final
    return Refusal(step, ErrorClass.REJECTED, str(error))


def _final_read(observed: Observed, get: Get, step: Any, *, never_final: bool = False) -> Get | Refusal | None:
    del never_final
    due = observed.due(get)
    return _final(step, due) if isinstance(due, ApiError) else due


def _definite(step: object) -> Patch:
    return lambda: mock.patch.multiple(step, transient=_final, read_first=_final_read)


def _refused_at_once(_seen: Observed, error: Any, _now: float) -> Refusal:
    return Refusal(create_train_job.STEP, ErrorClass.REJECTED, str(error))


def _follow_any(observed: Observed, now: float) -> Action | Result:
    job, status = observed.train_job.obj, observed.start.status
    if job is None or status.reference is None:
        return _FOLLOW(observed, now)
    reference = structs.replace(status.reference, uid=job.metadata.uid)
    return _FOLLOW(_with_status(observed, structs.replace(status, reference=reference)), now)


def _with_status(observed: Observed, status: StartStatus) -> Observed:
    return structs.replace(observed, start=replace(observed.start, status=status))


_FOLLOW = started.follow
_OPENING = kueue.opening
_CANCEL = cancellation.cancel
_START = decide._start  # noqa: SLF001
_CONCLUDE = decide._conclude  # noqa: SLF001


def _open_at_once(observed: Observed, now: float) -> Action | Result:
    decision = _START(observed, now)
    whole = isinstance(decision, PatchStatus) and decision.status.phase in {Phase.GATED, Phase.QUEUED}
    if whole and observed.train_job.obj and wants_open(observed) and not is_open(observed):
        return set_suspend(observed.train_job.obj, suspend=False)
    return decision


def _stop_at_once(observed: Observed, verdict: Any, now: float) -> Action | Result:
    decision = _CONCLUDE(observed, verdict, now)
    if isinstance(decision, PatchStatus) and decision.status.phase is Phase.STOPPING:
        action = stop(_with_status(observed, decision.status), now)
        return action if isinstance(action, Action) and not isinstance(action, PatchStatus) else decision
    return decision


def _mark_unproven_at_once(observed: Observed, verdict: Any, now: float) -> Action | Result:
    decision = _CONCLUDE(observed, verdict, now)
    if not isinstance(decision, PatchStatus):
        return decision
    doubt = mark_unproven(_with_status(observed, decision.status), verdict, now)
    return doubt if isinstance(doubt, Action) else decision


def _cancel_at_once(observed: Observed, now: float) -> Action | Result:
    decision = _CANCEL(observed, now)
    if isinstance(decision, PatchStatus) and decision.status.phase is Phase.STOPPING:
        action = next_delete(observed)
        return action if isinstance(action, Action) else decision
    return decision


async def _collect_by_the_store(self: Any, key: Key) -> Result:
    copy = self.store.get(TrainingRuntime, *key)
    if orphaned_copies.is_ownerless(copy) and orphaned_copies.is_left(copy, self._cached(copy)):
        with suppress(ApiError):
            await self._delete(copy)
    return Result()


def _releases_if(may: Callable[[Observed, Workload], bool]) -> Callable[[Observed, TrainJob], Action | None]:
    """Release an inactive Workload for another reason than its mark."""

    def opening(observed: Observed, job: TrainJob) -> Action | None:
        workload = observed.workload
        if START_GATE in job.metadata.gates:
            return _OPENING(observed, job)
        if workload.obj is None or workload.obj.spec.active or not may(observed, workload.obj):
            return None
        return release_workload(workload.obj) if workload.live else find_workload(job)

    return opening


def _expires_before_it_is_recorded(observed: Observed, job: TrainJob, now: float) -> Action | Result:
    decision = expiry.expire(observed, now)
    return decision if isinstance(decision, Action) else _ENDED(observed, job, now)


_ENDED = started._ended  # noqa: SLF001


def _lost_when_absent(observed: Observed, now: float) -> Action | Result:
    return started.after_loss(observed, now) if observed.train_job.obj is None else _FOLLOW(observed, now)


def _expires_whatever_runs(observed: Observed, now: float) -> Action | Result:
    job, unread = observed.train_job.obj, observed.due(get_train_job(observed.start))
    del now
    return unread if isinstance(unread, Get) else expire_train_job(job, "x") if job else Result()


def _expires_what_the_cache_shows(observed: Observed) -> Get | ApiError | None:
    return observed.due(get_backend(observed.start))


def _expires_by_what_the_cache_says(observed: Observed) -> Get | ApiError | None:
    return observed.due(get_train_job(observed.start))


def _annotated(meta: ObjectMeta) -> frozenset[str]:
    return frozenset({meta.annotations.start_uid} - {None, ""})  # type: ignore[arg-type]


def _forgetful(observed: Observed, *told: Any) -> Observed:
    return structs.replace(_APPLY(observed, *told), created=frozenset())


_APPLY = Observed.apply


MUTANTS = (
    Mutant(
        "Live verdicts",
        "what is cached carries verdicts",
        "the cached backend is old",
        "is Refused without a cause",
        _instead(Observation, "live", property(_is_there)),
    ),
    Mutant(
        "Live verdicts",
        "what is cached still stands",
        "the cache holds what is gone",
        "is Refused without a cause",
        _instead(Observation, "live", property(_is_there)),
    ),
    Mutant(
        "Live verdicts",
        "what the cache lacks is absent",
        "the cache lacks what stands",
        "is Refused without a cause",
        _instead(Observation, "live", property(lambda _: True)),
    ),
    Mutant(
        "Live verdicts",
        "a cached absence is Lost",
        "two operators, and stale reads",
        "was recorded as Lost though its TrainJob stands",
        _instead(started, "standing", _absent_says_the_cache),
    ),
    Mutant(
        "Live verdicts",
        "the collector trusts its cache",
        "a collector that hears nothing",
        "of a living Start was changed",
        _instead(orphaned_copies.OrphanedCopies, "reconcile", _collect_by_the_store),
    ),
    Mutant(
        "Definite failures only",
        "what fails in step 7 is definite",
        "a Start meets two faults",
        "is Refused without a cause",
        _definite(set_owner),
    ),
    Mutant(
        "Definite failures only",
        "what fails in step 8 is definite",
        "a Start meets two faults",
        "is Refused without a cause",
        _definite(read_back),
    ),
    Mutant(
        "Definite failures only",
        "an unanswered create is a denied one",
        "a Start meets two faults",
        "is Refused without a cause",
        _instead(create_train_job, "_after_failed_create", _refused_at_once),
    ),
    Mutant(
        "Record before acting",
        "the gate is opened before Started is recorded",
        "two operators",
        "was opened before it was recorded as started",
        _instead(decide, "_start", _open_at_once),
    ),
    Mutant(
        "Record before acting",
        "a TrainJob is stopped before the refusal is recorded",
        "two operators, one denied",
        "which has started, was stopped",
        _instead(decide, "_conclude", _stop_at_once),
    ),
    Mutant(
        "Record before acting",
        "a backend is doubted before the refusal is recorded",
        "humans edit and replace the TrainJob",
        "was doubted before a refusal was recorded",
        _instead(decide, "_conclude", _mark_unproven_at_once),
    ),
    Mutant(
        "Record before acting",
        "status is written whatever was written meanwhile",
        "two operators, one denied",
        "a refusal was recorded over a Start",
        strips=_without("patch", "DispatchStart", "resourceVersion", subresource="status"),
    ),
    Mutant(
        "Record before acting",
        "the steps are made again after Started",
        "the TrainJob is deleted",
        "never comes to rest",
        _instead(decide, "follow", _START),
    ),
    Mutant(
        "Only the recorded UID",
        "any TrainJob of ours is opened",
        "a create that lands late, and a slow garbage collector",
        "two TrainJobs of one DispatchStart were opened",
        _instead(decide, "follow", _follow_any),
    ),
    Mutant(
        "Late arrivals",
        "what turns up after a refusal stays",
        "a Start that is not tried again",
        "is Refused and leaves",
        _instead(decide, "clean_up", lambda _: Result()),
    ),
    Mutant(
        "Late arrivals",
        "what turns up after Lost stays",
        "a create that lands after its Start was lost",
        "is Lost and leaves",
        _instead(started, "clean_up", lambda _: Result()),
    ),
    Mutant(
        "Preconditions",
        "an owner is set on whatever stands there",
        "humans replace the copy",
        "of a human was changed",
        strips=_without("patch", "TrainingRuntime", "uid", "resourceVersion"),
    ),
    Mutant(
        "Preconditions",
        "a leftover is taken over whatever it has become",
        "a leftover copy that humans replace",
        "of a human was changed",
        strips=_without("patch", "TrainingRuntime", "uid", "resourceVersion"),
    ),
    Mutant(
        "Preconditions",
        "a copy is deleted whatever it has become",
        "a leftover copy that humans replace",
        "of a human was changed",
        strips=_without("delete", "TrainingRuntime", "uid", "resourceVersion"),
    ),
    Mutant(
        "Preconditions",
        "a copy is deleted though it was taken over",
        "a leftover copy",
        "of a living Start was changed",
        strips=_without("delete", "TrainingRuntime", "resourceVersion"),
    ),
    Mutant(
        "Preconditions",
        "whatever stands there is opened",
        "humans replace the TrainJob",
        "of another was changed",
        strips=_without("patch", "TrainJob", "uid"),
    ),
    Mutant(
        "Preconditions",
        "whatever stands there is stopped",
        "humans edit and replace the TrainJob",
        "of another was changed",
        strips=_without("delete", "TrainJob", "uid"),
    ),
    Mutant(
        "Kueue mode",
        "a release rests on the recorded phase",
        "Kueue deactivates the job",
        "what Kueue deactivated was released",
        _instead(kueue, "opening", _releases_if(lambda observed, _: observed.start.status.phase in kueue.HOLDS)),
    ),
    Mutant(
        "Kueue mode",
        "whoever wants it open releases",
        "Kueue, two operators hold and release",
        "the newest wish to hold was undone",
        _instead(kueue, "opening", _releases_if(lambda _, workload: workload.metadata.annotations.held is not None)),
    ),
    Mutant(
        "Kueue mode",
        "whatever is inactive is released",
        "Kueue deactivates the job",
        "what Kueue deactivated was released",
        _instead(kueue, "opening", _releases_if(lambda *_: True)),
    ),
    Mutant(
        "Preconditions",
        "a release is carried out whatever was wanted meanwhile",
        "Kueue, held, released and held again",
        "the newest wish to hold was undone",
        strips=_without("patch", "Workload", "resourceVersion"),
    ),
    Mutant(
        "Never start what is being deleted",
        "what is being deleted is started",
        "a deletion in the foreground",
        "that is being deleted was started",
        _instead(decide, "is_leaving", lambda _: False),
    ),
    Mutant(
        "Lost status",
        "a lost status starts anew",
        "the status of a running job is lost",
        "two TrainJobs of one DispatchStart were opened",
        _instead(DispatchStart, "lost_its_status", property(lambda _: False)),
    ),
    Mutant(
        "Lost status",
        "the mark of the opening tells nothing",
        "the status of a running job is lost",
        "is open, and is not followed",
        _instead(Annotations, "opened", None),
    ),
    Mutant(
        "Lost status",
        "a recorded end is believed",
        "parts of the status of a gated job are lost",
        "is not where it is wanted",
        _instead(started, "_stands", _as_it_stands),
    ),
    Mutant(
        "Only the recorded UID",
        "a TrainJob that was restored is opened",
        "a human opens by hand, and the TrainJob is restored",
        "two TrainJobs of one DispatchStart were opened",
        _instead(decide, "follow", _follow_any),
    ),
    Mutant(
        "Lost status",
        "a lost status of what was opened by hand starts anew",
        "a human opens by hand",
        "two TrainJobs of one DispatchStart were opened",
        _instead(DispatchStart, "lost_its_status", property(lambda _: False)),
    ),
    Mutant(
        "Lost status",
        "a lost status starts anew in Kueue mode, too",
        "Kueue, the status of a running job is lost",
        "two TrainJobs of one DispatchStart were opened",
        _instead(DispatchStart, "lost_its_status", property(lambda _: False)),
    ),
    Mutant(
        "Ended jobs",
        "what the cache shows as ended is deleted",
        "an end that only the cache holds",
        "which has started, was stopped",
        _instead(expiry, "_unread", _expires_what_the_cache_shows),
    ),
    Mutant(
        "Ended jobs",
        "what status says has ended is deleted",
        "an ended job is not kept for long",
        "which has started, was stopped",
        lambda: mock.patch.multiple(started, _stands=_as_it_stands, expire=_expires_whatever_runs),
    ),
    Mutant(
        "Ended jobs",
        "a keepEnded that only the cache holds counts",
        "an ended job, and a keepEnded that only the cache holds",
        "was deleted though its backend has always kept it",
        _instead(expiry, "_unread", _expires_by_what_the_cache_says),
    ),
    Mutant(
        "Ended jobs",
        "an ended job is deleted before its end is recorded",
        "an ended job is not kept for long, and an operator dies",
        "was deleted before its end was recorded",
        _instead(started, "_ended", _expires_before_it_is_recorded),
    ),
    Mutant(
        "Ended jobs",
        "an absence after the end is Lost",
        "an ended job is not kept for long",
        "was recorded as Lost after its end",
        _instead(decide, "follow", _lost_when_absent),
    ),
    Mutant(
        "Ended jobs",
        "a status that is lost after the delete starts anew",
        "an ended job is not kept for long, and its status is lost",
        "two TrainJobs of one DispatchStart were opened",
        _instead(DispatchStart, "lost_its_status", property(lambda _: False)),
    ),
    Mutant(
        "Ended jobs",
        "whatever has the name is deleted",
        "an ended job is not kept for long, and its TrainJob is replaced",
        "of another was changed",
        strips=_without("delete", "TrainJob", "uid"),
    ),
    Mutant(
        "Ended jobs",
        "what has ended is kept",
        "an ended job is not kept for long",
        "has ended and leaves",
        _instead(started, "expire", lambda *_: Result()),
    ),
    Mutant(
        "Ownership",
        "only the annotation tells whose a TrainJob is",
        "a webhook that drops all annotations",
        "leaves",
        _instead(ObjectMeta, "marks", property(_annotated)),
    ),
    Mutant(
        "Ownership",
        "what the create returned is not ours without marks",
        "a webhook that drops all marks",
        "is left behind without marks",
        _instead(Observed, "apply", _forgetful),
    ),
    Mutant(
        "Ownership",
        "every TrainJob of the name is ours",
        "humans replace the TrainJob in a Start",
        "of another was changed",
        _instead(ownership, "made_for", lambda obj, _start: obj is not None),
    ),
    Mutant(
        "Ownership",
        "a copy that another Start took over is still ours, for we created it",
        "two of one submission, one denied",
        "of a living Start was changed",
        _instead(ownership, "_created_here", lambda observed, obj: obj.metadata.uid in dict(observed.created)),
    ),
    Mutant(
        "Orphaned copies",
        "every copy without an owner is collected",
        "the DispatchStart is created again",
        "of a living Start was changed",
        _instead(orphaned_copies, "is_left", lambda *_: True),
    ),
    Mutant(
        "Cancelling",
        "a cancelled Start goes on",
        "a Start is cancelled",
        "that is cancelled was started",
        _instead(DispatchStart, "is_cancelled", property(lambda _: False)),
    ),
    Mutant(
        "Cancelling",
        "a cancellation is recorded over the end of a job",
        "a running job is cancelled",
        "was Succeeded, and a cancellation was recorded over it",
        _instead(DispatchStart, "is_cancelled", property(lambda start: start.gate is Gate.CANCELLED)),
    ),
    Mutant(
        "Cancelling",
        "a cancellation is recorded over a refusal",
        "a Start is denied and cancelled",
        "was Stopping, and a cancellation was recorded over it",
        _instead(DispatchStart, "is_cancelled", property(lambda start: start.gate is Gate.CANCELLED)),
    ),
    Mutant(
        "Cancelling",
        "the CRD lets a gate leave Cancelled",
        "a job is cancelled, and the gate is asked to open",
        "was cancelled, and goes on",
        _instead(server, "gate_may_become", lambda *_: True),
    ),
    Mutant(
        "Cancelling",
        "a create in flight is not waited for",
        "a Start whose create goes unanswered is cancelled",
        "was recorded while a create was in flight",
        _instead(decide, "resolve_in_flight", lambda *_: None),
    ),
    Mutant(
        "Cancelling",
        "somebody who writes Cancelled into a status cancels",
        "somebody writes Cancelled",
        "was stopped",
        _instead(DispatchStart, "is_cancelled", property(lambda start: start.status.was_cancelled)),
    ),
    Mutant(
        "Record before acting",
        "a cancelled job is stopped before that is recorded",
        "a running job is cancelled",
        "which has started, was stopped",
        _instead(decide, "cancel", _cancel_at_once),
    ),
    Mutant(
        "Live verdicts",
        "a cached absence ends what is cancelled",
        "a job is cancelled, and the cache lacks its TrainJob",
        "was recorded as Cancelled though its TrainJob stands",
        _instead(cancellation, "_unread", lambda _: None),
    ),
    Mutant(
        "Late arrivals",
        "what turns up after Cancelled stays",
        "a Start is cancelled",
        "is Cancelled and leaves",
        _instead(cancellation, "clean_up", lambda _: Result()),
    ),
)
