"""Running the bare client, and what it tells of itself."""

from pathlib import Path

from msgspec import Struct, json

from bench.process import running

TOLD = "latencies"


class Bare(Struct):
    """What the bare client did."""

    starts: int
    seconds: float
    cpu: float
    """Seconds, of all."""
    latencies: list[float]
    """Seconds of each, in order of their length."""

    @property
    def median(self) -> float:
        """The median of the latencies."""
        return self.latencies[len(self.latencies) // 2]


def bare_client(kubeconfig: Path, namespace: str, *, at_once: int = 20) -> Bare:
    """Let it start all DispatchStarts of a namespace that have no phase."""
    with running("-m", "bench.bare_client", kubeconfig, namespace, f"--at-once={at_once}") as process:
        return json.decode(process.says(TOLD), type=Bare)
