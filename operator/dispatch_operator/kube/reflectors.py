"""Runs the reflectors of a process together, and says which of them keep it from being ready."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple, NoReturn

from dispatch_operator.kube.presence import Presence
from dispatch_operator.kube.reflector import Reflector


class ReflectorEndedError(Exception):
    """A reflector ended, which it never does by itself: the process would be blind in part, and must end."""


class UnfitError(Exception):
    """What is needed could not be watched for long: another operator may be able to, and this one is in its way."""


UNFIT_SECONDS = 300.0
"""For which a required watch may be down, or never listed, before what holds a Lease gives it up."""
LOOK_SECONDS = 10.0


class Supervised(NamedTuple):
    """A reflector, and whether the process is of no use where its kind is not served."""

    reflector: Reflector
    required: bool


class Reflectors:
    """Runs reflectors side by side; a fault of one's stream is that one's alone."""

    def __init__(self, clock: Callable[[], float], *supervised: Supervised) -> None:
        self._clock = clock
        self._supervised = supervised

    def __iter__(self) -> Iterator[Reflector]:
        """Iterate over all, for their metrics."""
        return (each.reflector for each in self._supervised)

    def unready(self, patience: float) -> list[str]:
        """Say of each reflector that has not synced, or has been down, what is wrong with it.

        What is not served is none of it, unless the process needs it; nor is what is in a namespace that is not there.

        Args:
            patience: Seconds for which one that has synced may be down.
        """
        return [
            problem
            for reflector, required in self._supervised
            if (required or reflector.state.served)
            and reflector.state.presence is Presence.EXISTS
            and (problem := self._problem(reflector, patience))
        ]

    def presences(self) -> Mapping[str, Presence]:
        """Say of each namespace that is to be served whether it exists, as far as any reflector knows."""
        found: dict[str, Presence] = {}
        for each in self:
            if each.namespace and found.get(each.namespace, Presence.EXISTS) is Presence.EXISTS:
                found[each.namespace] = each.state.presence
        return found

    def absences(self) -> list[str]:
        """Say which namespaces are not there, a sentence each."""
        known = self.presences().items()
        return [f"namespace {name} {presence.value}" for name, presence in known if presence is not Presence.EXISTS]

    def _problem(self, reflector: Reflector, patience: float) -> str:
        state = reflector.state
        down = 0.0 if state.since is None else self._clock() - state.since
        fault = f": {state.last_fault} (failed {state.failures} times in a row)" if state.failures else ""
        if not state.synced:
            return f"{reflector} has not been listed yet{fault}"
        if down > patience:
            return f"{reflector} has not been watched for {down:.0f} s{fault}"
        return ""

    async def while_fit(self, work: Awaitable[None]) -> None:
        """Await some work that needs what is watched; it is cancelled when that has been down for too long.

        Raises:
            UnfitError: It was.
        """
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_SECONDS)
                if not task.done() and (unfit := self._unfit()):
                    raise UnfitError(f"given up after {UNFIT_SECONDS:.0f} s: {'; '.join(unfit)}")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        task.result()

    def _unfit(self) -> list[str]:
        now = self._clock()
        return [
            self._problem(reflector, UNFIT_SECONDS)
            for reflector, required in self._supervised
            if required
            and not _is_ones_own(reflector)
            and (since := reflector.state.since) is not None
            and now - since > UNFIT_SECONDS
        ]

    async def listed(self) -> None:
        """Wait until each has told its first list, or has failed: a kind that is not served keeps no other waiting."""
        await asyncio.gather(*(each.answered.wait() for each in self))

    async def run(self) -> NoReturn:
        """Run all until cancelled, and let none go on when one has ended.

        Raises:
            ReflectorEndedError: One ended by itself.
        """
        tasks = {asyncio.create_task(each.run(), name=f"reflector of {each}"): each for each in self}
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        names = ", ".join(sorted(str(tasks[task]) for task in ended))
        causes = [error for task in ended if not task.cancelled() and (error := task.exception())]
        raise ReflectorEndedError(f"the reflector of {names} has ended") from next(iter(causes), None)


def _is_ones_own(reflector: Reflector) -> bool:
    """Tell whether a namespace is not there, or gives no rights: another operator could do no more there."""
    return reflector.namespace is not None and (
        reflector.state.forbidden or reflector.state.presence is not Presence.EXISTS
    )
