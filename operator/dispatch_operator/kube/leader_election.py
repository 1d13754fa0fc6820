"""One active operator at a time, by a Lease; it lowers contention, and no safety rests on it.

A second operator waits. A leader that stops gives the Lease back; one that crashed blocks for at most its lifetime.
"""

import asyncio
import hashlib
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

import aiohttp
from kubernetes_asyncio import client
from kubernetes_asyncio.client import rest
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

from dispatch_operator.kube.log_subject import about

logger = logging.getLogger(__name__)

LIFETIME, RENEW_WITHIN, RENEW_EVERY = 15, 10, 2
"""Seconds, client-go's defaults: a leader that can't renew for the second stops, before the first have passed."""
CALL_SECONDS = 5.0
FIT_SECONDS = 1.0
"""How often a leader looks whether it still can do its work."""
GIVE_BACK_SECONDS = 3.0
"""Together with what is waited for before, the process ends within ten seconds of a signal."""
SUFFIX_LENGTH = 10
"""Characters of a shard's Lease after its -; the chart cuts the same hash, to name it in a Role."""


class Lease(NamedTuple):
    """Where the Lease is, and who holds it."""

    namespace: str
    name: str
    holder: str

    def of_shard(self, selector: str) -> Self:
        """Return the Lease of the operators that serve what a selector selects; each selector has one of its own."""
        return self._replace(name=f"{self.name}-{hashlib.sha256(selector.encode()).hexdigest()[:SUFFIX_LENGTH]}")


class LeaseLostError(Exception):
    """Another operator may be active from now on; this one must end."""


class _BoundedLock(LeaseLock):
    """A Lease whose requests end in time, and fail as the library expects them to: as answers."""

    def __init__(self, api: client.ApiClient, lease: Lease) -> None:
        super().__init__(lease.name, lease.namespace, lease.holder, api)
        self._api = api
        self.expiry: asyncio.Timeout | None = None
        """Ends the work when the Lease was not written for too long, however long the library still tries."""

    async def get(self, name: str, namespace: str) -> Any:  # noqa: ANN401 - the library's own union.
        try:
            async with asyncio.timeout(CALL_SECONDS):
                found, told = await super().get(name, namespace)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            await self._renew_after(error)
            failure = client.ApiException(status=0, reason=str(error) or type(error).__name__)
            failure.body = json.dumps({"code": 0}).encode()
            return False, failure
        if not found and isinstance(told, client.ApiException):
            # The library reads the code from the body, which is no JSON when a throttling server or a proxy wrote it.
            told.body = json.dumps({"code": told.status}).encode()
        return found, told

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:  # noqa: ANN401 - the library's.
        return await self._written(super().create(name, namespace, election_record))

    async def update(self, name: str, namespace: str, updated_record: Any) -> bool:  # noqa: ANN401 - the library's.
        return await self._written(super().update(name, namespace, updated_record))

    async def _written(self, write: Awaitable[bool]) -> bool:
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                written = await write
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            await self._renew_after(error)
            told = error or type(error).__name__
            logger.warning("the Lease can't be written: %s", told, extra=about(self.namespace, self.name))
            return False
        if written and self.expiry:
            self.expiry.reschedule(begun + RENEW_WITHIN)
        return written

    async def _renew_after(self, error: Exception) -> None:
        """Connect anew when a certificate is not accepted: the files of the certificates may have been rotated."""
        if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError):
            old, self._api.rest_client = self._api.rest_client, rest.RESTClientObject(self._api.configuration)
            await old.close()


async def lead(
    api: client.ApiClient,
    lease: Lease,
    serve: Callable[[], Awaitable[None]],
    is_fit: Callable[[], bool] = lambda: True,
) -> None:
    """Wait for the Lease, and serve while holding it; give it back in the end.

    Who is not fit to hold it gives it back at once, and serves on for what it still can do. When it is fit again it
    ends: another may lead by then.

    Args:
        api: A client of the cluster.
        lease: The Lease, and our name as its holder.
        serve: Serves until it is told to stop.
        is_fit: Tells whether this operator can do the work that the Lease is for.

    Raises:
        LeaseLostError: The Lease could not be renewed in time, or was given back and this operator is fit again.
    """
    leading = asyncio.Event()

    async def started() -> None:
        leading.set()

    lock = _BoundedLock(api, lease)
    election = asyncio.create_task(
        LeaderElection(Config(lock, LIFETIME, RENEW_WITHIN, RENEW_EVERY, started, None)).run()  # type: ignore[arg-type]
    )
    whose = about(lease.namespace, lease.name)
    logger.info("waiting for Lease %s/%s", lease.namespace, lease.name, extra=whose)
    try:
        await _while_led(asyncio.ensure_future(leading.wait()), election)
        logger.info("leading by Lease %s/%s as %s", lease.namespace, lease.name, lease.holder, extra=whose)
        async with asyncio.timeout(RENEW_WITHIN) as lock.expiry:
            serving = asyncio.ensure_future(serve())
            await _while_led(serving, election, is_fit)
    except TimeoutError as error:
        if lock.expiry is None or not lock.expiry.expired():
            raise
        raise LeaseLostError(f"the Lease was lost: it was not renewed for {RENEW_WITHIN} s") from error
    finally:
        expired = lock.expiry is not None and lock.expiry.expired()
        held = leading.is_set() and not election.done() and not expired
        election.cancel()
        await asyncio.gather(election, return_exceptions=True)
        if held:
            await _give_back(api, lease)
    if not serving.done():
        logger.warning("Lease %s/%s was given back: this operator can't do its work", *lease[:2], extra=whose)
        await _while_unfit(serving, is_fit)
    serving.result()


async def _while_led(
    work: asyncio.Future[Any], election: asyncio.Task[None], is_fit: Callable[[], bool] = lambda: True
) -> None:
    """Wait for some work, and leave it to itself when not fit; it is ended when the election ends, or the wait is."""
    try:
        while is_fit() and not (work.done() or election.done()):
            await asyncio.wait({work, election}, timeout=FIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await _end(work)
        raise
    if is_fit() and not work.done():
        await _end(work)
        error = election.exception()
        raise LeaseLostError(f"the Lease was lost: {error or 'it could not be renewed in time'}") from error


async def _while_unfit(serving: asyncio.Future[None], is_fit: Callable[[], bool]) -> None:
    """Let an operator without its Lease serve on until it is fit to lead.

    Raises:
        LeaseLostError: It is.
    """
    try:
        while not serving.done():
            if is_fit():
                raise LeaseLostError(
                    "the Lease was given back, and this operator can do its work again: it begins anew"
                )
            await asyncio.wait({serving}, timeout=FIT_SECONDS)
    finally:
        await _end(serving)


async def _end(work: asyncio.Future[Any]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def _give_back(api: client.ApiClient, lease: Lease) -> None:
    """Clear the holder, so that the next operator need not wait for the Lease to expire."""
    leases = client.CoordinationV1Api(api)
    try:
        async with asyncio.timeout(GIVE_BACK_SECONDS):
            held = await leases.read_namespaced_lease(lease.name, lease.namespace)
            if held.spec.holder_identity == lease.holder:
                held.spec.holder_identity = None  # type: ignore[assignment]
                await leases.replace_namespaced_lease(lease.name, lease.namespace, held)
    except (client.ApiException, aiohttp.ClientError, TimeoutError, OSError) as error:
        whose = about(lease.namespace, lease.name)
        logger.warning("the Lease could not be given back, and expires by itself: %s", error, extra=whose)
