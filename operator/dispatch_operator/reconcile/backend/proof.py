"""What a backend's proven gates rest on, and when they are to be proven again (contract section 10)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.kinds import RuntimeKind
from dispatch_operator.checks.backend import gates_of
from dispatch_operator.reconcile.observation import Object, at

DAY = 86_400.0
"""Seconds after which a proof is made again."""


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

    def as_status(self) -> dict[str, Any]:
        """Return it as `status.proof` holds it."""
        runtime: dict[str, Any] = {"kind": self.runtime_kind, "name": self.runtime_name}
        if self.runtime_uid is not None:
            runtime |= {"uid": self.runtime_uid, "generation": self.runtime_generation or 0}
        return {
            "operatorVersion": self.operator_version,
            "backendGeneration": self.backend_generation,
            "runtime": runtime,
            "served": [{"api": api, **({"hash": value} if value else {})} for api, value in self.served],
        }


def basis(version: str, backend: Object, runtime: Object | None, served: Mapping[str, str | None]) -> Basis:
    """Return what a proof of a backend would rest on.

    Args:
        version: The operator's.
        backend: The DispatchBackend.
        runtime: Its probe runtime; None when that does not exist.
        served: The hash of each API version that it needs.
    """
    return Basis(
        operator_version=version,
        backend_generation=at(backend, "metadata", "generation") or 0,
        runtime_kind=probe_runtime(backend)[0],
        runtime_name=probe_runtime(backend)[1],
        runtime_uid=at(runtime, "metadata", "uid"),
        runtime_generation=at(runtime, "metadata", "generation"),
        served=tuple(sorted(served.items())),
    )


def probe_runtime(backend: Object) -> tuple[str, str]:
    """Return kind and name of the runtime that a backend is probed on."""
    reference = at(backend, "spec", "probeRuntime")
    return at(reference, "kind") or RuntimeKind.CLUSTER_TRAINING_RUNTIME.value, str(at(reference, "name") or "")


def is_proven(backend: Object) -> bool:
    """Tell whether a backend has been probed and every gate of it is proven."""
    gates = gates_of(backend)
    return bool(gates) and all(at(gate, "proven") is True for gate in gates)


def why_again(backend: Object, now_rests_on: Basis, now: float) -> str | None:
    """Say why a backend is to be probed; None when its proof holds."""
    if not gates_of(backend):
        return "it has not been probed yet"
    proof = at(backend, "status", "proof")
    if proof is None:
        return "a Start found a gate that does not hold"
    if changed := _changed(proof, now_rests_on):
        return f"{changed} changed"
    if not is_proven(backend):
        return "a gate is not proven"
    return "the proof is older than a day" if expires_in(backend, now) <= 0 else None


def changed_since(backend: Object, now_rests_on: Basis) -> bool:
    """Tell whether anything that the last probe rested on has changed, or there was none: nothing is waited for."""
    proof = at(backend, "status", "proof")
    return not gates_of(backend) or proof is None or _changed(proof, now_rests_on) is not None


def _changed(proof: object, now_rests_on: Basis) -> str | None:
    """Name the first part of what a proof rests on that is not as it was."""
    current = now_rests_on.as_status()
    names = {
        "operatorVersion": "the operator's version",
        "backendGeneration": "the backend's spec",
        "runtime": "the probe runtime",
        "served": "a served API",
    }
    return next((name for key, name in names.items() if at(proof, key) != current[key]), None)


def last_probed(backend: Object) -> float:
    """Return when the gates were last probed, all of them, in seconds since the epoch; 0 when never."""
    probed = [times.read(at(gate, "lastProbeTime")) or 0.0 for gate in gates_of(backend)]
    return min(probed, default=0.0)


def expires_in(backend: Object, now: float) -> float:
    """Return for how many seconds the proof is not older than a day."""
    return last_probed(backend) + DAY - now
