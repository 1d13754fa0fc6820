"""What is live of a Start: read as far as the user may, by the operator's own questions, and nothing is written."""

import asyncio
from dataclasses import dataclass, replace

from dispatch_operator.api.enums import Condition, Phase
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.cli.files import BOUND
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.typed import get
from dispatch_operator.plugin.session import Session, in_words
from dispatch_operator.plugin.telling import altered_copy
from dispatch_operator.reconcile.actions import (
    Action,
    Get,
    find_workload,
    get_backend,
    get_copy,
    get_runtime,
    get_train_job,
    list_pods,
)
from dispatch_operator.reconcile.gates import kueue_queue
from dispatch_operator.reconcile.inquiry import may_run_and_does_not, question
from dispatch_operator.reconcile.observation import Answer, Observed
from dispatch_operator.reconcile.ownership import in_kueue_mode, is_ours
from dispatch_operator.reconcile.reconciler import carry_out
from dispatch_operator.records.core import Pod
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.trainer import JobSet

MANAGED_BY_KUEUE = "ManagedByKueue"
QUESTIONS = 12
"""The most that is asked about why a job does not run."""
MAY_RUN = frozenset({Phase.QUEUED, Phase.RUNNING, Phase.HOLDING})
RAN = frozenset({Phase.SUCCEEDED, Phase.FAILED})
"""The ends after which the TrainJob stays, until the backend's `keepEnded` has passed."""


@dataclass(frozen=True)
class Facts:
    """What was read, and what could not be."""

    observed: Observed
    job_set: JobSet | None = None
    job_set_is_known: bool = False
    """Whether it was read, so that None means that there is none."""
    pods: tuple[Pod, ...] = ()
    unread: tuple[str, ...] = ()
    """What could not be looked at, and why, a line each."""

    @property
    def start(self) -> DispatchStart:
        """The DispatchStart."""
        return self.observed.start

    @property
    def was_cleared_away(self) -> bool:
        """Whether it was read that the TrainJob of a job that ended by itself is gone."""
        job = self.observed.train_job
        return self.start.status.phase in RAN and job.live and job.obj is None


async def all_of(session: Session, start: DispatchStart) -> Facts:
    """Read all that belongs to a Start, for its tree."""
    observed = await _seen(session, Observed(start), *_by_name(start))
    job = observed.train_job.obj
    if job is None:
        return _facts(observed)
    due: list[Action] = [list_pods(start)]
    if _is_queued(observed):
        due.append(find_workload(job))
    observed = await _seen(session, observed, *due)
    facts = replace(_facts(observed), pods=observed.pods or ())
    try:
        job_set = await get(session.client, JobSet, start.metadata.namespace, start.target, timeout=BOUND)
    except ApiError as error:
        return replace(facts, unread=(*facts.unread, in_words(error)))
    return replace(facts, job_set=job_set, job_set_is_known=True)


async def why(session: Session, start: DispatchStart) -> Facts:
    """Read what may keep a job from running that may run, and what of a gated or an ended one status does not say."""
    observed = Observed(start)
    if start.status.phase in RAN and start.target:
        return _facts(await _seen(session, observed, get_train_job(start)))
    source = start.status.source
    if altered_copy(start) and source is not None and source.kind in set(RuntimeKind):
        return _facts(await _seen(session, observed, get_runtime(source.kind, source.name)))
    if start.status.phase not in MAY_RUN or not start.target:
        return _facts(observed)
    observed = await _seen(session, observed, get_train_job(start))
    job = observed.train_job.obj
    if job is None or not is_ours(observed, job):
        return _facts(observed)
    if _is_queued(observed):
        observed = await _seen(session, observed, find_workload(job))
        for _ in range(QUESTIONS):
            due = kueue_queue.next_read(observed) if kueue_queue.is_blocked(observed.workload.obj) else None
            if due is None:
                break
            observed = await _seen(session, observed, due)
    if may_run_and_does_not(observed, job):
        for _ in range(QUESTIONS):
            asks = question(observed, job)
            if asks is None:
                break
            observed = await _seen(session, observed, asks)
    return _facts(observed)


def _by_name(start: DispatchStart) -> list[Get]:
    found = [get_backend(start)] if start.backend else []
    return [*found, get_copy(start), get_train_job(start)] if start.target else found


def _is_queued(observed: Observed) -> bool:
    """Tell whether the job has a Workload of Kueue's, also where its backend is in plain mode."""
    succeeded = observed.start.status.condition(Condition.SUCCEEDED)
    return in_kueue_mode(observed) or (succeeded is not None and succeeded.reason == MANAGED_BY_KUEUE)


async def _seen(session: Session, observed: Observed, *actions: Action) -> Observed:
    """Make reads at once, and add what they brought, or how they failed."""
    namespace = observed.start.metadata.namespace
    now = session.now
    answers = await asyncio.gather(*(_answer(session.client, namespace, action) for action in actions))
    for action, answer in zip(actions, answers, strict=True):
        observed = observed.apply(action, answer, now)
    return observed


async def _answer(client: Client, namespace: str, action: Action) -> Answer | ApiError:
    try:
        return await carry_out(client, namespace, action, timeout=BOUND)
    except ApiError as error:
        return error


def _facts(observed: Observed) -> Facts:
    return Facts(observed, unread=tuple(dict.fromkeys(in_words(error) for error in observed.failures.values())))
