"""What a backend's proven gates rest on, and when they are to be proven again (docs/contract.md, Basis of a proof)."""

from collections.abc import Mapping
from dataclasses import dataclass

from dispatch_operator.api import times
from dispatch_operator.api.models.status import GateState, ProbedRuntime, Proof, ServedApi
from dispatch_operator.records.dispatch import DispatchBackend
from dispatch_operator.records.trainer import TrainingRuntime

DAY = 86_400.0
"""Seconds after which a proof is made again."""
CLOCK_SKEW = 60.0
"""Seconds by which the clocks of two operators may differ."""


@dataclass(frozen=True, slots=True)
class Basis:
    """All that a proof rests on, as it stands at one time."""

    operator_version: str
    backend_generation: int
    runtime_kind: str
    runtime_name: str
    runtime_uid: str | None
    """None when no runtime of that name exists."""
    runtime_generation: int | None
    served: tuple[tuple[str, str | None], ...]
    """API versions and the hash of what the API server serves as each; None when it does not."""

    def as_proof(self) -> Proof:
        """Return it as `status.proof` holds it."""
        generation = None if self.runtime_uid is None else self.runtime_generation or 0
        return Proof(
            operator_version=self.operator_version,
            backend_generation=self.backend_generation,
            runtime=ProbedRuntime(self.runtime_kind, self.runtime_name, self.runtime_uid, generation),
            served=tuple(ServedApi(api, value or None) for api, value in self.served),
        )


def basis(
    version: str, backend: DispatchBackend, runtime: TrainingRuntime | None, served: Mapping[str, str | None]
) -> Basis:
    """Return what a proof of a backend would rest on.

    Args:
        version: The operator's.
        backend: The DispatchBackend.
        runtime: Its probe runtime; None when that does not exist.
        served: The hash of each API version that it needs.
    """
    kind, name = backend.probe_runtime
    return Basis(
        operator_version=version,
        backend_generation=backend.metadata.generation,
        runtime_kind=kind,
        runtime_name=name,
        runtime_uid=runtime.metadata.uid if runtime else None,
        runtime_generation=runtime.metadata.generation if runtime else None,
        served=tuple(sorted(served.items())),
    )


def is_proven(backend: DispatchBackend) -> bool:
    """Tell whether a backend has been probed and every gate of it is proven."""
    return bool(backend.status.gates) and all(gate.proven for gate in backend.status.gates)


def why_again(backend: DispatchBackend, now_rests_on: Basis, now: float) -> str | None:
    """Say why a backend is to be probed; None when its proof holds."""
    if not backend.status.gates:
        return "it has not been probed yet"
    if backend.status.proof is None:
        return "a Start found a gate that does not hold"
    if changed := _changed(backend.status.proof, now_rests_on):
        return f"{changed} changed"
    if not is_proven(backend):
        return "a gate is not proven"
    return "the proof is older than a day" if expires_in(backend, now) <= 0 else None


def changed_since(backend: DispatchBackend, now_rests_on: Basis) -> bool:
    """Tell whether anything that the last probe rested on has changed, or there was none: nothing is waited for."""
    proof = backend.status.proof
    return not backend.status.gates or proof is None or _changed(proof, now_rests_on) is not None


def _changed(proof: Proof, now_rests_on: Basis) -> str | None:
    """Name the first part of what a proof rests on that is not as it was."""
    current = now_rests_on.as_proof()
    parts = {
        "the operator's version": proof.operator_version == current.operator_version,
        "the backend's spec": proof.backend_generation == current.backend_generation,
        "the probe runtime": proof.runtime == current.runtime,
        "a served API": proof.served == current.served,
    }
    return next((part for part, same in parts.items() if not same), None)


def probed_at(gate: GateState, now: float) -> float:
    """Return when a gate was probed, in seconds since the epoch; 0 when that is not known.

    A time that lies ahead of now was written by a wrong clock, and says nothing: by it a gate would be proven for good.
    """
    time = times.read(gate.last_probe_time)
    return time if time is not None and time <= now + CLOCK_SKEW else 0.0


def last_probed(backend: DispatchBackend, now: float) -> float:
    """Return when a gate was last probed, in seconds since the epoch; 0 when never."""
    return max((probed_at(gate, now) for gate in backend.status.gates), default=0.0)


def expires_in(backend: DispatchBackend, now: float) -> float:
    """Return for how many seconds the proof, which is as old as its oldest gate, is not older than a day."""
    return min((probed_at(gate, now) for gate in backend.status.gates), default=0.0) + DAY - now
