"""Reads a DispatchBackend and what it rests on, and prints what is wrong with it."""

import asyncio
from collections.abc import Iterator

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import Backend
from dispatch_operator.api.models.backend import BackendRuntime
from dispatch_operator.api.quoting import escaped
from dispatch_operator.cli.files import BOUND
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.plugin import printing
from dispatch_operator.plugin.backend_report import PROBLEM, Finding, Read, report, takes_starts
from dispatch_operator.plugin.session import Session, in_words
from dispatch_operator.reconcile import kueue_setup
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.reconciler import carry_out
from dispatch_operator.records.reading import read_dispatch_start
from dispatch_operator.render.terms import terms_of

READS = 6
"""Of Kueue's set-up, at most."""


async def check(session: Session, name: str, *, as_json: bool) -> bool:
    """Print what is to be said of a backend; return whether nothing is wrong.

    Raises:
        UnreadableError: There is no such DispatchBackend.
        ApiError: It can't be read.
    """
    backend = await session.backend(name)
    valid = backend.valid
    runtimes = await asyncio.gather(*(_read(session, one) for one in _runtimes(valid)))
    setup, unread = await _setup(session, valid)
    found = tuple(report(backend, tuple(runtimes), setup, unread, session.kubectl))
    is_right = takes_starts(backend) and not any(one.state == PROBLEM for one in found)
    verdict = f"DispatchBackend/{name} " + ("takes Starts" if takes_starts(backend) else "takes no Starts")
    if as_json:
        told = {"name": name, "namespace": session.namespace, "takesStarts": takes_starts(backend)}
        printing.print_json({**told, "findings": [one.as_json() for one in found]})
    elif console := printing.console():
        from rich.padding import Padding  # noqa: PLC0415 - only needed on a terminal.
        from rich.text import Text  # noqa: PLC0415 - the same.

        console.print(Text(escaped(verdict), printing.GOOD if takes_starts(backend) else printing.BAD))
        for depth, text, style in _paragraphs(found):
            console.print(
                Padding(Text(escaped(text), style), (0, 0, 0, 2 * depth)), soft_wrap=style == printing.COMMAND
            )
    else:
        printing.print_lines([verdict, *("  " * depth + text for depth, text, _ in _paragraphs(found))])
    return is_right


def _runtimes(valid: Backend | None) -> tuple[BackendRuntime, ...]:
    """Return a backend's runtimes, and the one that it is probed on, each once."""
    if valid is None:
        return ()
    listed = {(one.kind, one.name): one for one in (*valid.spec.runtimes, valid.spec.probe_runtime)}
    return tuple(listed.values())


async def _read(session: Session, reference: BackendRuntime) -> Read:
    try:
        found = await session.client.get(Kind(reference.kind), session.namespace, reference.name, timeout=BOUND)
    except ApiError as error:
        return Read(reference, None, in_words(error))
    return Read(reference, found)


async def _setup(session: Session, valid: Backend | None) -> tuple[Observed, tuple[str, ...]]:
    """Read what of Kueue's set-up a backend names."""
    nobody = read_dispatch_start({"metadata": {"namespace": session.namespace}})
    observed = Observed(nobody)
    if valid is None or valid.spec.kueue is None:
        return observed, ()
    terms = terms_of(valid)
    for _ in range(READS):
        due = kueue_setup.next_read(observed, terms)
        if due is None:
            break
        try:
            answer = await carry_out(session.client, session.namespace, due, timeout=BOUND)
        except ApiError as error:
            observed = observed.apply(due, error, session.now)
        else:
            observed = observed.apply(due, answer, session.now)
    return observed, tuple(in_words(error) for error in observed.failures.values())


def _paragraphs(found: tuple[Finding, ...]) -> Iterator[tuple[int, str, str]]:
    """Yield the depth, the text and the style of each paragraph."""
    for one in found:
        yield 1, f"{one.state}: {one.what}: {one.text}", printing.style_of(one.state) if one.state != "note" else ""
        for step in one.steps:
            yield 2, step.text + (":" if step.command else ""), ""
            if step.command:
                yield 3, step.command, printing.COMMAND
