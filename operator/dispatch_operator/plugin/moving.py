"""Writes spec.gate of a DispatchStart, and says what comes of it."""

from collections.abc import Mapping

import click

from dispatch_operator.api.enums import Gate, Phase
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.quoting import escaped
from dispatch_operator.cli.files import BOUND
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.plugin.printing import print_lines
from dispatch_operator.plugin.session import Session
from dispatch_operator.plugin.telling import altered_copy
from dispatch_operator.records.dispatch import DispatchStart

_AFTER: Mapping[Gate, str] = {
    Gate.OPEN: "the job may run; kubectl dispatch watch shows how it goes on",
    Gate.HELD: "the job is being stopped, and runs again from its beginning once it is opened",
    Gate.CANCELLED: "the job is being stopped, for good",
}
NOT_STARTED = frozenset({None, Phase.PENDING, Phase.STARTING, Phase.IN_FLIGHT})


async def move(session: Session, name: str, gate: Gate) -> None:
    """Bring the gate of a Start to where it is wanted.

    Raises:
        UnreadableError: There is no such DispatchStart.
        click.ClickException: It has ended, the API server refuses the change, or the gate stays closed all the same.
        ApiError: The request failed otherwise.
    """
    start = await session.start(name)
    called, phase = f"dispatchstart/{name}", start.status.phase
    explain = session.kubectl("dispatch", "explain", name)
    if start.gate is gate:
        _tell(start, gate, f"{called}: the gate is {gate} already", "", explain)
        return
    if phase is not None and phase.is_end:
        raise click.ClickException(f"{called} has ended ({phase}): its gate changes nothing any more")
    # Its UID, so that another one that took the name meanwhile is not meant.
    body = {"metadata": {"uid": start.metadata.uid}, "spec": {"gate": gate}}
    try:
        await session.client.patch(Kind.DISPATCH_START, session.namespace, name, body, timeout=BOUND)
    except ApiError as error:
        if error.effect is Effect.DEFINITE or error.conflict:
            raise click.ClickException(escaped(f"{called}: {error.message}")) from error
        raise
    _tell(start, gate, f"{called}: the gate was {start.gate}, and is {gate} now", f": {_after(start, gate)}", explain)


def _tell(start: DispatchStart, gate: Gate, told: str, after: str, explain: str) -> None:
    """Say where the gate is to be, and what comes of it: beside an altered copy nothing does."""
    if gate is Gate.OPEN and (altered := altered_copy(start)):
        text = f"{told} in its spec, but it stays closed: {altered.message}; {explain} says what to do"
        raise click.ClickException(escaped(text))
    print_lines([told + after])


def _after(start: DispatchStart, gate: Gate) -> str:
    phase = start.status.phase
    if gate is Gate.OPEN and phase in NOT_STARTED:
        return "the job may run as soon as it is started; kubectl dispatch explain says what it waits for"
    if gate is Gate.HELD and (start.gate is Gate.CLOSED or phase is Phase.GATED):
        return "it has not been open, so that it stays as it is"
    if gate is Gate.CANCELLED and start.status.reference is None:
        has_begun = phase in {Phase.STARTING, Phase.IN_FLIGHT, Phase.STOPPING}
        return "what was begun of it is taken away" if has_begun else "no job of it was made, and none will be"
    return _AFTER[gate]
