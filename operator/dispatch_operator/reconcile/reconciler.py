"""One reconcile of a DispatchStart: observe, decide, act, apply the answer, until there is nothing left to do."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from msgspec import structs

from dispatch_operator.api.enums import Condition, ConditionStatus, Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.outdated_crd import OutdatedCrd
from dispatch_operator.kube.refused_statuses import RefusedStatuses
from dispatch_operator.kube.shared_reads import SharedReads
from dispatch_operator.kube.store import Store
from dispatch_operator.kube.typed import record
from dispatch_operator.metrics import instruments
from dispatch_operator.reconcile.actions import (
    Action,
    AwaitWorkload,
    Create,
    Delete,
    Get,
    List,
    Patch,
    PatchStatus,
    Result,
    Slot,
    after_status,
    get_start,
    patch_start_status,
)
from dispatch_operator.reconcile.decide import decide
from dispatch_operator.reconcile.events import Event, Owned, of_expiry
from dispatch_operator.reconcile.inquiries import Inquiries, spread
from dispatch_operator.reconcile.just_created import SOON, JustCreated
from dispatch_operator.reconcile.observation import Answer, Observation, Observed
from dispatch_operator.reconcile.status import brief
from dispatch_operator.records.base import KubeObject
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.trainer import JobSet, TrainingRuntime, TrainJob

logger = logging.getLogger(__name__)

BUDGET = 100
"""Requests of one reconcile; more means that somebody undoes what we do, and that it is time to back off."""

CONTESTED = 5
"""Preconditions that may fail in one reconcile; more means that somebody else writes as fast as we do."""

FAILED_COPIES = 3
"""Creates of a copy that may fail in one reconcile; more means that it is stored each time, but changed."""

LOOK_AGAIN = 600.0
"""Seconds, at most, until what waits without an end is looked at again."""

HELD_BACK = 30.0
"""Seconds after which what waits for newer CRDs is looked at again."""
SHARED = frozenset({Slot.BACKEND, Slot.RUNTIME})
"""What many DispatchStarts read."""

RecordEvents = Callable[[Owned, Owned], None]
"""Called with a DispatchStart or a DispatchBackend before and after its status was written."""
Tell = Callable[[Owned, Event], None]
"""Called with an Event of a DispatchStart that no write of its status tells of."""


@dataclass(frozen=True)
class Reconciler:
    """Reconciles one DispatchStart at a time; all state is in the cluster and, as hints, in the store."""

    client: Client
    store: Store
    record_events: RecordEvents
    tell: Tell
    clock: Callable[[], float] = time.time
    inquiries: Inquiries = field(default_factory=Inquiries)
    shared_reads: SharedReads[Answer | ApiError] = field(default_factory=SharedReads)
    refused: RefusedStatuses = field(default_factory=lambda: RefusedStatuses(Kind.DISPATCH_START))
    just_created: JustCreated = field(default_factory=JustCreated)
    outdated: OutdatedCrd = field(default_factory=OutdatedCrd)

    async def reconcile(self, key: Key, *, woken: float | None = None) -> Result:
        """Bring one DispatchStart as far as it goes now.

        Args:
            key: Of the DispatchStart.
            woken: When this was asked for, on the event loop's clock; None when what others have read does not count.

        Returns:
            When to reconcile again, if no event does it first.
        """
        observed = self._observe(key)
        contested = failed_copies = 0
        for _ in range(BUDGET):
            if observed is None or contested > CONTESTED or failed_copies > FAILED_COPIES:
                break
            decision = decide(observed, self.clock())
            if isinstance(decision, Result):
                if not decision.requeue:
                    self.outdated.settle(Kind.DISPATCH_START, key)
                # What a precondition failed on was changed by somebody: it is looked at once more.
                if contested and decision.requeue_after is None:
                    return replace(decision, requeue=True)
                return _not_for_ever(self._until_told(key, decision), observed)
            if self.outdated.is_known and isinstance(decision, Create | Patch | PatchStatus):
                unkept = self.outdated.to_write_again(Kind.DISPATCH_START, key, observed.start.status)
                if unkept is not None:
                    # What was decided may rest on what was not kept.
                    decision = PatchStatus(unkept)
                elif self.outdated.holds_back(Kind.DISPATCH_START, key, records=isinstance(decision, PatchStatus)):
                    return Result(requeue_after=HELD_BACK)
            begun = self.clock()
            if decision.slot in {Slot.TRAINER_JOB, Slot.LOCAL_QUEUE}:
                self.inquiries.made(key, begun)
            answer = await self._answer(observed, decision, woken)
            if isinstance(answer, ApiError) and answer.too_large and isinstance(decision, PatchStatus):
                decision = PatchStatus(brief(decision.status))
                answer = await answer_to(self.client, self.store, observed, decision)
                if isinstance(answer, ApiError):
                    # Not even that has room: an Event says what the status can't.
                    self.record_events(observed.start, replace(observed.start, status=decision.status))
            instruments.step(type(decision).__name__, decision.slot, self.clock() - begun)
            if isinstance(decision, Delete) and decision.reason:
                self._tell_of_expiry(observed.start, decision, answer)
            if isinstance(answer, ApiError) or not isinstance(decision, Get):
                # From here on what others have read may be older than what is known here.
                woken = None
            if isinstance(answer, ApiError):
                contested += answer.conflict or answer.not_found
                failed_copies += decision.key == (Create, Slot.COPY)
                if isinstance(decision, PatchStatus):
                    if not (answer.conflict or answer.not_found):
                        return self._refused(key, observed, decision.status, answer)
                    # Somebody else changed the object: what was decided rests on what is no longer so.
                    again = await self._begin_again(key, observed)
                    if isinstance(again, Result):
                        return again
                    observed = again
                    continue
            else:
                self._keep_written(observed, decision, answer)
                if isinstance(decision, Create) and isinstance(answer, TrainJob):
                    self.just_created.note(key, answer, self.clock())
                elif isinstance(decision, Delete):
                    self.just_created.forget(key)
                if isinstance(decision, PatchStatus) and isinstance(answer, DispatchStart):
                    self.refused.forget(key)
                    if self.outdated.compare(Kind.DISPATCH_START, key, decision.status, answer.status):
                        # Only what the answer holds is acted on, and what it lacks would be written over and over.
                        return Result(requeue=True)
            observed = observed.apply(decision, answer, begun)
        return Result(requeue=observed is not None)

    def _refused(self, key: Key, observed: Observed, sent: StartStatus, error: ApiError) -> Result:
        """Return when a status that was not taken is written again."""
        self.refused.note(key, error)
        if self.outdated.refuse(Kind.DISPATCH_START, key, sent, observed.start.status, error):
            return Result(requeue=True)
        return after_status(error)

    async def _answer(self, observed: Observed, action: Action, woken: float | None) -> Answer | ApiError:
        """Carry out an action; a backend or a runtime is read once for all that were woken before that."""

        def make() -> Coroutine[Any, Any, Answer | ApiError]:
            return answer_to(self.client, self.store, observed, action)

        if woken is None or not isinstance(action, Get) or action.slot not in SHARED:
            return await make()
        what = (observed.start.metadata.namespace, action, observed.call_timeout)
        return await self.shared_reads.read(what, woken, make)

    async def _begin_again(self, key: Key, observed: Observed) -> Observed | Result | None:
        answer = await answer_to(self.client, self.store, observed, get_start(observed.start))
        if isinstance(answer, ApiError):
            return _try_again(key, answer)
        if not isinstance(answer, DispatchStart):
            self.store.drop_unfound(observed.start)
            return None
        self.store.refresh(answer)
        again = self._observe(key)
        same = again is not None and again.start.metadata.uid == observed.start.metadata.uid
        return structs.replace(again, created=observed.created) if again and same else again

    def _observe(self, key: Key) -> Observed | None:
        observed = observe(self.store, key, self._just_started(key))
        if observed is None:
            self.refused.forget(key)
            self.outdated.settle(Kind.DISPATCH_START, key)
        if observed is None or self.store.get(TrainJob, key.namespace, observed.start.target) is not None:
            self.just_created.forget(key)
        if observed is None or (observed.start.status.phase or Phase.PENDING).is_end:
            self.inquiries.forget(key)
            return observed
        return structs.replace(observed, last_inquiry=self.inquiries.last(key, self.clock()))

    def _just_started(self, key: Key) -> TrainJob | None:
        """Return the TrainJob of a Start that is whole, where a watch need not have told of it yet."""
        start, job = self.store.get(DispatchStart, *key), self.just_created.get(key, self.clock())
        reference = start.status.reference if start is not None and start.status.says_started else None
        return job if job is not None and reference is not None and reference.uid == job.metadata.uid else None

    def _until_told(self, key: Key, result: Result) -> Result:
        """Have a TrainJob looked for that no watch has told of: it may be gone, and its end be told already."""
        untold = result == Result() and self._just_started(key) is not None
        return Result(requeue_after=SOON) if untold else result

    def _tell_of_expiry(self, start: DispatchStart, made: Delete, answer: Answer | ApiError) -> None:
        if not isinstance(answer, ApiError):
            instruments.EXPIRED.inc()
            self.tell(start, of_expiry(made.name, made.reason))
        elif not (answer.conflict or answer.not_found):
            self.tell(start, of_expiry(made.name, made.reason, str(answer)))

    def _keep_written(self, observed: Observed, action: Action, answer: Answer) -> None:
        """Keep a status that was written, so that the watch's echo wakes nobody, and tell of it."""
        match action, answer:
            case PatchStatus(), DispatchStart():
                before: Owned = observed.start
            case Patch(slot=Slot.BACKEND), DispatchBackend() if observed.backend.obj:
                before = observed.backend.obj
            case _:
                return
        self.store.put_written(answer)
        self.record_events(before, answer)


def observe(store: Store, key: Key, just_started: TrainJob | None = None) -> Observed | None:
    """Begin a reconcile with what the watches told; None when the DispatchStart is gone.

    Args:
        store: What they told.
        key: Of the DispatchStart.
        just_started: Its TrainJob, where they need not have told of it yet.
    """
    start = store.get(DispatchStart, *key)
    if start is None:
        return None
    namespace, target = key.namespace, start.target
    job = store.get(TrainJob, namespace, target) or just_started
    return Observed(
        start=start,
        backend=Observation(store.get(DispatchBackend, namespace, start.backend)),
        copy=Observation(store.get(TrainingRuntime, namespace, target)),
        train_job=Observation(job),
        workload=Observation(store.workload(namespace, job.metadata.uid) if job else None),
        job_set=store.get(JobSet, namespace, target),
    )


def _not_for_ever(result: Result, observed: Observed) -> Result:
    """Have what waits looked at again: what it waits for may be nothing that is watched."""
    waits = observed.start.status.condition(Condition.RECONCILING)
    if result == Result() and waits and waits.status is ConditionStatus.TRUE:
        meta = observed.start.metadata
        return Result(requeue_after=LOOK_AGAIN * (1 + spread(f"{meta.namespace}/{meta.name}")) / 2)
    return result


def _try_again(key: Key, error: ApiError) -> Result:
    logger.warning("%s/%s: %s", *key, error)
    return Result(requeue=True, retry_after=error.retry_after)


async def answer_to(client: Client, store: Store, observed: Observed, action: Action) -> Answer | ApiError:
    """Carry out an action, and return what it brought or how it failed."""
    namespace = observed.start.metadata.namespace
    try:
        match action:
            case AwaitWorkload(owner=owner, seconds=seconds):
                return await store.workload_of(namespace, owner, seconds)
            case PatchStatus(status=status):
                action = patch_start_status(observed.start, status)
        return await carry_out(client, namespace, action, timeout=observed.call_timeout)
    except ApiError as error:
        logger.debug("%s", error)
        return error


async def carry_out(client: Client, namespace: str, action: Action, *, timeout: float) -> Answer:
    """Make the request that an action stands for.

    Raises:
        ApiError: It failed, went unanswered, or its answer is not what the kind promises.
    """
    match action:
        case Get(kind=kind, name=name):
            raw = await client.get(kind, namespace, name, timeout=timeout)
            return None if raw is None else record("get", kind, raw)
        case List(kind=kind, owner=owner):
            found = await client.select(
                kind,
                namespace,
                timeout=timeout,
                read=partial(record, "list", kind),
                label_selector=action.label_selector,
                field_selector=action.field_selector,
                most=action.most,
            )
            return next((one for one in found if _owns(owner, one)), None) if owner else found
        case Create(kind=kind, body=body, pause=pause):
            await asyncio.sleep(pause)
            return record("create", kind, await client.create(kind, namespace, body, timeout=timeout))
        case Patch(kind=kind, name=name, body=body, subresource=part):
            patched = await client.patch(kind, namespace, name, body, timeout=timeout, subresource=part)
            return record("patch", kind, patched)
        case Delete(kind=kind, name=name, uid=uid, resource_version=version):
            await client.delete(kind, namespace, name, timeout=timeout, uid=uid, resource_version=version)
            return None
    raise TypeError(f"unknown action {action!r}")


def _owns(owner: str, obj: object) -> bool:
    return isinstance(obj, KubeObject) and any(one.uid == owner for one in obj.metadata.owner_references)
