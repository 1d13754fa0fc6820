"""One reconcile of a DispatchStart: observe, decide, act, learn, until there is nothing left to do."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dispatch_operator.api.group import ANNOTATION_GATED_BY, LABEL_JOB, LABEL_JOB_UID, LABEL_SUBMISSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.store import Key, Store
from dispatch_operator.reconcile.actions import (
    Action,
    AdoptCopy,
    AwaitWorkload,
    CreateCopy,
    CreateTrainJob,
    DeleteCopy,
    DeleteTrainJob,
    FindWorkload,
    MarkUnproven,
    OwnCopy,
    PatchStatus,
    ReadBackend,
    ReadCheck,
    ReadClusterQueue,
    ReadCopy,
    ReadLocalQueue,
    ReadOther,
    ReadPods,
    ReadRuntime,
    ReadTrainJob,
    ReadWarnings,
    ReadWorkload,
    Result,
    SetActive,
    SetGates,
    SetSuspend,
)
from dispatch_operator.reconcile.decide import decide
from dispatch_operator.reconcile.learn import Answer, learn
from dispatch_operator.reconcile.observation import Object, Observed, at
from dispatch_operator.reconcile.ownership import owners, uid_of
from dispatch_operator.reconcile.steps.admit import call_bound
from dispatch_operator.render import target_name

logger = logging.getLogger(__name__)

BUDGET = 100
"""Requests of one reconcile; more means that somebody undoes what we do, and that it is time to back off."""

CONTESTED = 5
"""Preconditions that may fail in one reconcile; more means that somebody else writes as fast as we do."""

Announce = Callable[[Object, Object], None]
"""Called with a DispatchStart or a DispatchBackend before and after its status was written."""


@dataclass(frozen=True)
class Reconciler:
    """Reconciles one DispatchStart at a time; all state is in the cluster and, as hints, in the cache."""

    client: Client
    store: Store
    record_events: Announce
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> Result:
        """Bring one DispatchStart as far as it goes now.

        Returns:
            When to look again, if no event does it first.
        """
        observed = self.store.observe(key)
        if observed is None:
            return Result()
        contested = 0
        for _ in range(BUDGET):
            decision = decide(observed, self.clock())
            if isinstance(decision, Result):
                # What a precondition failed on was changed by somebody: it is looked at once more.
                return replace(decision, requeue=True) if contested and decision.requeue_after is None else decision
            begun = self.clock()
            answer = await self._carry_out(observed, decision)
            if isinstance(answer, ApiError) and (answer.conflict or answer.not_found):
                contested += 1
                if contested > CONTESTED:
                    break
            match decision, answer:
                case PatchStatus(), ApiError(conflict=True) | ApiError(not_found=True):
                    # Somebody else changed the object: what was decided rests on what is no longer so.
                    requeue = await self._begin_again(key, observed)
                    if isinstance(requeue, Result):
                        return requeue
                    observed = requeue
                case PatchStatus(), ApiError():
                    logger.warning("%s/%s: %s", *key, answer)
                    return Result(requeue=True, retry_after=answer.retry_after)
                case PatchStatus(), _:
                    self._recorded(Kind.DISPATCH_START, observed.start, answer)
                    observed = learn(observed, decision, answer, begun)
                case MarkUnproven(), _:
                    self._recorded(Kind.DISPATCH_BACKEND, observed.backend.obj or {}, answer)
                    observed = learn(observed, decision, answer, begun)
                case _:
                    observed = learn(observed, decision, answer, begun)
        return Result(requeue=True)

    async def _begin_again(self, key: Key, observed: Observed) -> Observed | Result:
        try:
            start = await self.client.get(Kind.DISPATCH_START, *key, timeout=call_bound(observed))
        except ApiError as error:
            logger.warning("%s/%s: %s", *key, error)
            return Result(requeue=True, retry_after=error.retry_after)
        if start is None:
            self.store.drop(Kind.DISPATCH_START, observed.start)
            return Result()
        self.store.put(Kind.DISPATCH_START, start)
        return self.store.observe(key) or Result()

    def _recorded(self, kind: Kind, before: Object, answer: Answer | ApiError) -> None:
        if isinstance(answer, Mapping):
            self.store.put_written(kind, answer)
            self.record_events(before, answer)

    async def _carry_out(self, observed: Observed, action: Action) -> Answer | ApiError:
        return await answer_to(self.client, self.store, observed, action)


async def answer_to(client: Client, store: Store, observed: Observed, action: Action) -> Answer | ApiError:
    """Carry out an act, and return what it brought or how it failed."""
    try:
        if isinstance(action, AwaitWorkload):
            return await store.workload_of(
                at(observed.start, "metadata", "namespace"), uid_of(observed.train_job.obj), action.seconds
            )
        return await carry_out(client, observed, action)
    except ApiError as error:
        logger.debug("%s", error)
        return error


async def carry_out(client: Client, observed: Observed, action: Action) -> Answer:
    """Make the request that an act stands for.

    Raises:
        ApiError: It failed, or went unanswered.
    """
    meta = at(observed.start, "metadata")
    namespace, name = meta["namespace"], target_name(observed.start) or ""
    bound = call_bound(observed)
    match action:
        case ReadBackend(name=backend):
            return await client.get(Kind.DISPATCH_BACKEND, namespace, backend, timeout=bound)
        case ReadRuntime(kind=kind, name=runtime):
            return await client.get(kind, namespace, runtime, timeout=bound)
        case ReadOther(kind=kind, name=other):
            return await client.get(kind, namespace, other, timeout=bound)
        case ReadCopy():
            return await client.get(Kind.TRAINING_RUNTIME, namespace, name, timeout=bound)
        case ReadTrainJob():
            return await client.get(Kind.TRAIN_JOB, namespace, name, timeout=bound)
        case ReadPods():
            request = at(observed.start, "spec", "request")
            selector = f"{LABEL_JOB}={request['job']},{LABEL_SUBMISSION}={request['submission']}"
            return await client.select("Pod", namespace, timeout=bound, label_selector=selector)
        case ReadWarnings():
            uid = at(observed.train_job.obj, "metadata", "uid")
            return await client.select(
                "Event", namespace, timeout=bound, field_selector=f"involvedObject.uid={uid},type=Warning"
            )
        case ReadWorkload(name=workload):
            return await client.get(Kind.WORKLOAD, namespace, workload, timeout=bound)
        case FindWorkload(owner_uid=uid):
            found = await client.select(
                Kind.WORKLOAD, namespace, timeout=bound, label_selector=f"{LABEL_JOB_UID}={uid}"
            )
            return next((one for one in found if any(at(owner, "uid") == uid for owner in owners(one))), None)
        case ReadLocalQueue(name=queue):
            return await client.get(Kind.LOCAL_QUEUE, namespace, queue, timeout=bound)
        case ReadClusterQueue(name=queue):
            return await client.get(Kind.CLUSTER_QUEUE, namespace, queue, timeout=bound)
        case ReadCheck(name=check):
            return await client.get(Kind.ADMISSION_CHECK, namespace, check, timeout=bound)
        case CreateCopy(body=body):
            return await client.create(Kind.TRAINING_RUNTIME, namespace, body, timeout=bound)
        case CreateTrainJob(body=body, pause=pause):
            await asyncio.sleep(pause)
            return await client.create(Kind.TRAIN_JOB, namespace, body, timeout=bound)
        case AdoptCopy(annotations=annotations, labels=labels, uid=uid, resource_version=version):
            marks = {"annotations": dict(annotations), "labels": dict(labels)}
            patch: dict[str, Any] = {"metadata": {"uid": uid, "resourceVersion": version, **marks}}
            return await client.patch(Kind.TRAINING_RUNTIME, namespace, name, patch, timeout=bound)
        case OwnCopy(owner=owner, uid=uid, resource_version=version):
            patch = {"metadata": {"uid": uid, "resourceVersion": version, "ownerReferences": [owner]}}
            return await client.patch(Kind.TRAINING_RUNTIME, namespace, name, patch, timeout=bound)
        case SetSuspend(suspend=suspend, uid=uid):
            patch = {"metadata": {"uid": uid}, "spec": {"suspend": suspend}}
            return await client.patch(Kind.TRAIN_JOB, namespace, name, patch, timeout=bound)
        case SetGates(names=names, uid=uid, resource_version=version):
            gates = {ANNOTATION_GATED_BY: ",".join(names) or None}
            patch = {"metadata": {"uid": uid, "resourceVersion": version, "annotations": gates}}
            return await client.patch(Kind.TRAIN_JOB, namespace, name, patch, timeout=bound)
        case SetActive(active=active, name=workload, uid=uid):
            patch = {"metadata": {"uid": uid}, "spec": {"active": active}}
            return await client.patch(Kind.WORKLOAD, namespace, workload, patch, timeout=bound)
        case DeleteCopy(uid=uid, resource_version=version):
            await client.delete(
                Kind.TRAINING_RUNTIME, namespace, name, timeout=bound, uid=uid, resource_version=version
            )
            return None
        case DeleteTrainJob(uid=uid):
            await client.delete(Kind.TRAIN_JOB, namespace, name, timeout=bound, uid=uid)
            return None
        case MarkUnproven(status=status, name=backend, uid=uid, resource_version=version):
            patch = {"metadata": {"uid": uid, "resourceVersion": version}, "status": {"proof": None, **status}}
            return await client.patch(
                Kind.DISPATCH_BACKEND, namespace, backend, patch, timeout=bound, subresource="status"
            )
        case PatchStatus(status=status):
            patch = status_patch(observed.start, status)
            return await client.patch(
                Kind.DISPATCH_START, namespace, meta["name"], patch, timeout=bound, subresource="status"
            )
    raise TypeError(f"unknown act {action!r}")


def status_patch(start: Object, status: Object) -> dict[str, Any]:
    """Return the merge patch that makes the status exactly this one, if nobody has written the object since."""
    gone: dict[str, Any] = dict.fromkeys((at(start, "status") or {}).keys() - status.keys())
    meta = at(start, "metadata")
    return {
        "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
        "status": {**gone, **status},
    }
