"""How long one Start takes, from the answer of its create until the operator tells that it is Gated."""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from bench.process import Process
from bench.starts import make_start
from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import connected

GATED = ": Gated:"
"""What the operator logs of each Start that is whole."""
POLL_SECONDS = 0.002
CALL_SECONDS = 30.0


def latency(kubeconfig: Path, process: Process, namespace: str, numbers: Iterable[int]) -> float:
    """Create DispatchStarts one after the other, and return the seconds at the median."""
    return asyncio.run(_median(kubeconfig, process, namespace, numbers))


async def _median(kubeconfig: Path, process: Process, namespace: str, numbers: Iterable[int]) -> float:
    seconds = []
    async with connected(str(kubeconfig)) as client:
        for number in numbers:
            start, told = make_start(number, namespace), process.log.read_text().count(GATED)
            await client.create(Kind.DISPATCH_START, namespace, start, timeout=CALL_SECONDS)
            begun = time.monotonic()
            await asyncio.to_thread(process.says, GATED, POLL_SECONDS, told + 1)
            seconds.append(time.monotonic() - begun)
    return median(seconds)
