"""Killing the operator between any two requests of something that it does, on the real control plane."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from support.fault_proxy import FaultProxy, ProxiedRequest, ProxyFault
from support.service import Service
from support.summary import Summary

WRITES = {"create", "patch", "delete", "update"}
SECONDS = 60


@dataclass(frozen=True)
class Operation:
    """Something that the operator does; each time it is begun with another number, and so with other objects."""

    begin: Callable[[int], None]
    """Let the operator do it."""
    end: Callable[[int], None]
    """Wait until it is done, and see that it was done once and rightly."""
    concerns: Callable[[int, ProxiedRequest], bool]
    """Tell whether a request is a part of it."""
    prepare: Callable[[int], None] = lambda _: None
    """Bring about what must be there before, such as the end of the one before; the operator runs meanwhile."""
    contested: bool = False
    """Whether others write the same objects, so that a request may have to be repeated, or not: once is then enough."""


class Moment(NamedTuple):
    """When the operator dies: at a request, so often made before, which is carried out or not."""

    request: str
    before: int
    carried_out: bool

    def __str__(self) -> str:
        return f"{'after' if self.carried_out else 'before'} {self.request} ({self.before + 1})"


def killed_at_every_request(
    proxy: FaultProxy, arguments: Sequence[str], operation: Operation, summary: Summary
) -> None:
    """Do something once and note its requests; then do it again for every moment, with the operator dying in it."""
    services = [Service(proxy.kubeconfig, *arguments)]
    try:
        requests = _requests_of(proxy, operation)
        killed: list[tuple[int, Moment]] = []
        for number, moment in enumerate(_moments(requests, repeated=not operation.contested), 1):
            operation.prepare(number)
            proxy.rule = death = _Death(moment, operation, number)
            operation.begin(number)
            assert death.came.wait(SECONDS), f"the request never came: {moment} of {requests}"
            summary.faults += 1
            killed.append((number, moment))
            services[-1].kill()
            proxy.rule = lambda _asked: None
            services.append(Service(proxy.kubeconfig, *arguments))
        assert killed
        for number, moment in killed:
            try:
                operation.end(number)
            except (AssertionError, TimeoutError) as error:
                raise AssertionError(f"killed {moment}: {error}") from error
            summary.survived += 1
    except BaseException:
        sys.stderr.writelines(service.log.read_text() for service in services)
        raise
    finally:
        for service in services:
            service.kill()
            service.log.unlink()


def _requests_of(proxy: FaultProxy, operation: Operation) -> list[str]:
    operation.prepare(0)
    begun = len(proxy.asked)
    operation.begin(0)
    operation.end(0)
    return [str(asked) for asked in proxy.asked[begun:] if operation.concerns(0, asked)]


def _moments(requests: Sequence[str], *, repeated: bool) -> Iterator[Moment]:
    observed: Counter[str] = Counter()
    for request in requests if repeated else dict.fromkeys(requests):
        yield Moment(request, observed[request], carried_out=False)
        if request.split()[0] in WRITES:
            # To die after a read is to die before the next request.
            yield Moment(request, observed[request], carried_out=True)
        observed[request] += 1


class _Death:
    """The rule that leaves the request of a moment unanswered, until the operator is killed."""

    def __init__(self, moment: Moment, operation: Operation, number: int) -> None:
        self.came = threading.Event()
        self._moment, self._operation, self._number = moment, operation, number
        self._left = moment.before

    def __call__(self, asked: ProxiedRequest) -> ProxyFault | None:
        if (
            self.came.is_set()
            or str(asked) != self._moment.request
            or not self._operation.concerns(self._number, asked)
        ):
            return None
        if self._left:
            self._left -= 1
            return None
        self.came.set()
        return ProxyFault("killed", silent=True, carried_out=self._moment.carried_out)
