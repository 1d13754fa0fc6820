"""One reconcile of a DispatchBackend: is its proof still good, and if not, a probe and its verdict.

See docs/contract.md, The preflight probe.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from dispatch_operator import __version__
from dispatch_operator.api import duration, times
from dispatch_operator.api.enums import BackendGate, BackendState
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend
from dispatch_operator.api.models.status import BackendStatus
from dispatch_operator.checks.required_fields import NEEDED, needed_apis
from dispatch_operator.kube import typed
from dispatch_operator.kube.backoff import LAST_SECONDS, backoff
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.outdated_crd import OutdatedCrd
from dispatch_operator.kube.refused_statuses import RefusedStatuses
from dispatch_operator.kube.store import Store
from dispatch_operator.metrics.instruments import PROBES
from dispatch_operator.preflight.clean_up import clean_up
from dispatch_operator.preflight.discovery import Served
from dispatch_operator.preflight.probe import (
    ChangedError,
    DisturbedError,
    Probe,
    ProbeResult,
    UndecidedError,
)
from dispatch_operator.reconcile.actions import Result, after_status, patch_backend_status
from dispatch_operator.reconcile.backend import status as backend_status
from dispatch_operator.reconcile.backend.proof import (
    Basis,
    basis,
    changed_since,
    expires_in,
    is_proven,
    last_probed,
    why_again,
)
from dispatch_operator.reconcile.reconciler import RecordEvents, carry_out
from dispatch_operator.records.dispatch import DispatchBackend
from dispatch_operator.records.trainer import ClusterTrainingRuntime, TrainingRuntime

logger = logging.getLogger(__name__)

CHECK_SECONDS = 60.0
"""How often the API server is asked whether it serves other CRDs than the proof rests on."""
SLACK_SECONDS = 10.0
"""What a probe takes at most besides its waits: what is older than both was left behind."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A probe of this process that did not prove all gates: the next one of the same ground waits."""

    rested_on: Basis
    failures: int
    not_before: float
    """On the monotonic clock: the other one may be set while it waits."""


class StatusRefusedError(Exception):
    """A status that the API server refuses for good: nothing is probed that can't be recorded."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error


class StatusNotKeptError(Exception):
    """A status that a served CRD does not keep, or not allow: it is an older one, and nothing is probed until then."""


@dataclass
class BackendController:
    """Reconciles backends. A reconcile that probes takes as long as the probe; there is one at a time of a backend."""

    client: Client
    store: Store
    record_events: RecordEvents
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    version: str = __version__
    outdated: OutdatedCrd = field(default_factory=OutdatedCrd)
    _served: Served = field(init=False)
    _probe: Probe = field(init=False)
    _attempts: dict[Key, Attempt] = field(default_factory=dict)
    _refused: RefusedStatuses = field(default_factory=lambda: RefusedStatuses(Kind.DISPATCH_BACKEND))

    def __post_init__(self) -> None:
        """Share what the API server said among all backends."""
        self._served = Served(self.client, self.monotonic)
        self._probe = Probe(self.client, self.store, self.clock)

    async def reconcile(self, key: Key) -> Result:
        """Probe one backend if its proof is missing, no longer holds, or is to be tried again.

        Returns:
            When to look again, if no event does it first.
        """
        backend = self.store.get(DispatchBackend, *key)
        if backend is None or backend.metadata.is_terminating:
            # Its probe's objects go by garbage collection, and with its deletion a copy that has no owner.
            self._attempts.pop(key, None)
            self._refused.forget(key)
            self.outdated.settle(Kind.DISPATCH_BACKEND, key)
            return Result()
        if backend.valid is None:
            logger.warning("%s/%s can't be used: %s", *key, backend.fault)
            return Result()
        try:
            return await self._check(key, backend, backend.valid)
        except (ChangedError, StatusNotKeptError):
            # With backoff: who writes it each second must not have it probed each second.
            return Result(requeue=True)
        except StatusRefusedError as error:
            self._refused.note(key, error.error)
            return after_status(error.error)
        except ApiError as error:
            logger.warning("%s/%s: %s", *key, error)
            refused = await self._tell(key, backend, error)
            return refused or Result(requeue=True, retry_after=error.retry_after)

    async def _tell(self, key: Key, backend: DispatchBackend, error: ApiError) -> Result | None:
        """Let a backend without a verdict say why it has none; an old verdict needs no comment.

        Returns:
            When that is tried again, if it is refused for good.
        """
        if not backend.status.gates:
            try:
                await self._write(backend, backend_status.undecided(backend, str(error), self.clock()))
            except StatusRefusedError as refused:
                self._refused.note(key, refused.error)
                return after_status(refused.error)
            except (ApiError, ChangedError, StatusNotKeptError) as failed:
                logger.debug("%s", failed)
        return None

    async def _check(self, key: Key, backend: DispatchBackend, valid: Backend) -> Result:
        left = await self._clean_up(backend, valid)
        if self.outdated.is_known:
            return await self._write_again(key, backend, left)
        if valid.spec.state is not BackendState.OPEN:
            await self._write(backend, backend_status.not_probed(backend, valid.spec.state, self.clock()))
            return Result(requeue_after=left)
        now_rests_on = await self._basis(backend, age=CHECK_SECONDS)
        why = why_again(backend, now_rests_on, self.clock())
        wait = self._wait(key, backend, now_rests_on) if why else expires_in(backend, self.clock())
        if wait > 0:
            return Result(requeue_after=min(wait, CHECK_SECONDS, left or CHECK_SECONDS))
        return await self._prove(key)

    async def _write_again(self, key: Key, backend: DispatchBackend, left: float | None) -> Result:
        """Write again what an older CRD has not kept; a probe, which creates what a Start does, waits until it is."""
        unkept = self.outdated.to_write_again(Kind.DISPATCH_BACKEND, key, backend.status)
        if unkept is None:
            return Result(requeue_after=min(CHECK_SECONDS, left or CHECK_SECONDS))
        await self._write(backend, unkept)
        return Result(requeue=True)

    async def _clean_up(self, backend: DispatchBackend, valid: Backend) -> float | None:
        """Delete what no run can be busy with any more; return in how many seconds to look for the rest."""
        made = [times.read(left.metadata.creation_timestamp) for left in self.store.left_by_probes(backend)]
        if not made:
            return None
        left = min(time or 0.0 for time in made) + _longest_run(valid) - self.clock()
        if left > 0:
            return left
        await clean_up(self.client, self.store, backend)
        return SLACK_SECONDS

    async def _basis(self, backend: DispatchBackend, *, age: float) -> Basis:
        # Kueue's webhooks change TrainJobs in plain mode too, so that a proof rests on it in any mode.
        served = await self._served.hashes(NEEDED, timeout=backend.call_timeout, age=age)
        kind, name = backend.probe_runtime
        runtime: TrainingRuntime | None = (
            self.store.get(ClusterTrainingRuntime, "", name)
            if kind is Kind.CLUSTER_TRAINING_RUNTIME
            else self.store.get(TrainingRuntime, backend.metadata.namespace, name)
        )
        return basis(self.version, backend, runtime, served)

    def _wait(self, key: Key, backend: DispatchBackend, now_rests_on: Basis) -> float:
        """Return for how many seconds a probe that is due waits, because the last one failed on the same ground."""
        attempt = self._attempts.get(key)
        if attempt is not None:
            return attempt.not_before - self.monotonic() if attempt.rested_on == now_rests_on else 0.0
        if is_proven(backend) or changed_since(backend, now_rests_on):
            return 0.0
        # It failed before this process began, whose start alone makes no probe.
        wait = min(max(last_probed(backend, self.clock()) + LAST_SECONDS - self.clock(), 0.0), LAST_SECONDS)
        self._attempts[key] = Attempt(now_rests_on, 1, self.monotonic() + wait)
        return wait

    async def _prove(self, key: Key) -> Result:
        backend = await self._live(key)
        valid = backend.valid
        if valid is None:
            raise ChangedError
        now_rests_on = await self._basis(backend, age=0.0)
        why = why_again(backend, now_rests_on, self.clock())
        if why is None or valid.spec.state is not BackendState.OPEN:
            return Result(requeue_after=CHECK_SECONDS)
        logger.info("%s/%s: the gates are probed, because %s", *key, why)
        backend = await self._write(backend, backend_status.probing(backend, why, self.clock()))
        try:
            needed = needed_apis(valid)
            missing = await self._served.lacking(
                {api: served for api, served in now_rests_on.served if api in needed}, timeout=backend.call_timeout
            )
            result = _without_probe(missing) if missing else await self._probe.run(backend, valid)
        except (ApiError, UndecidedError) as error:
            message = str(error)
            logger.warning("%s/%s: the probe came to no verdict: %s", *key, message)
            await self._conclude(key, backend, lambda held: backend_status.undecided(held, message, self.clock()))
            PROBES.labels("undecided").inc()
            yields = _longest_run(valid) if isinstance(error, DisturbedError) else 0.0
            return self._failed(key, now_rests_on, at_least=yields)
        rested_on = now_rests_on if missing else basis(self.version, backend, result.runtime, dict(now_rests_on.served))
        await self._conclude(
            key, backend, lambda held: backend_status.concluded(held, result.found, rested_on, self.clock())
        )
        PROBES.labels("unproven" if any(result.found.values()) else "proven").inc()
        if any(result.found.values()):
            return self._failed(key, now_rests_on)
        self._attempts.pop(key, None)
        return Result(requeue_after=CHECK_SECONDS)

    def _failed(self, key: Key, rested_on: Basis, *, at_least: float = 0.0) -> Result:
        before = self._attempts.get(key)
        failures = 1 + (before.failures if before is not None and before.rested_on == rested_on else 0)
        wait = max(backoff(failures), at_least)
        self._attempts[key] = Attempt(rested_on, failures, self.monotonic() + wait)
        return Result(requeue_after=wait)

    async def _live(self, key: Key) -> DispatchBackend:
        """Read a backend, and let the cache know.

        Raises:
            ChangedError: It is gone or going.
        """
        backend = await typed.get(self.client, DispatchBackend, *key)
        if backend is None:
            if held := self.store.get(DispatchBackend, *key):
                self.store.drop_unfound(held)
            raise ChangedError
        self.store.refresh(backend)
        if backend.metadata.is_terminating:
            raise ChangedError
        return backend

    async def _conclude(
        self, key: Key, probed: DispatchBackend, status: Callable[[DispatchBackend], BackendStatus]
    ) -> None:
        """Write what a probe found, if it is about the backend as it is now."""
        try:
            await self._write(probed, status(probed))
        except ChangedError:
            # Perhaps only a label of it was changed.
            backend = await self._live(key)
            if _ground(backend) != _ground(probed):
                raise
            await self._write(backend, status(backend))

    async def _write(self, backend: DispatchBackend, status: BackendStatus) -> DispatchBackend:
        """Write a status, unless it stands there already.

        Raises:
            ChangedError: The backend has been written or deleted meanwhile.
            StatusNotKeptError: It was not kept as it was sent.
            StatusRefusedError: The API server said no, and would again.
        """
        if status == backend.status:
            return backend
        key = Key(backend.metadata.namespace, backend.metadata.name)
        try:
            patch = patch_backend_status(backend, status)
            written = await carry_out(self.client, key.namespace, patch, timeout=backend.call_timeout)
        except ApiError as error:
            if error.not_found and error.reason == "NotFound":
                self.store.drop_unfound(backend)
            if error.conflict or error.not_found:
                raise ChangedError from error
            if self.outdated.refuse(Kind.DISPATCH_BACKEND, key, status, backend.status, error):
                raise StatusNotKeptError from error
            if error.for_good:
                raise StatusRefusedError(error) from error
            raise
        after = cast("DispatchBackend", written)
        self._refused.forget(key)
        self.store.refresh(after)
        self.record_events(backend, after)
        if self.outdated.compare(Kind.DISPATCH_BACKEND, key, status, after.status):
            raise StatusNotKeptError
        return after


def _longest_run(valid: Backend) -> float:
    """Return how many seconds a probe of a backend takes, when nothing but its own waits holds it up."""
    waits = duration.seconds(valid.spec.timeouts.hold) + SLACK_SECONDS
    return waits + (duration.seconds(valid.spec.timeouts.workload) if valid.spec.kueue else 0.0)


def _without_probe(missing: tuple[str, ...]) -> ProbeResult:
    """Return what is found when the served APIs lack something: nothing is created."""
    found: dict[BackendGate, str | None] = dict.fromkeys(BackendGate, backend_status.NOT_PROBED)
    return ProbeResult({**found, BackendGate.FIELDS_KEPT: "; ".join(missing)}, None)


def _ground(backend: DispatchBackend) -> tuple[object, ...]:
    """Return what a probe's verdict is about: the object, its spec, and the verdict so far."""
    meta, status = backend.metadata, backend.status
    return meta.uid, meta.generation, status.gates, status.proof
