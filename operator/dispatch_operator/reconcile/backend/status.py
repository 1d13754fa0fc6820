"""The status of a DispatchBackend: which gates are proven, and what that rests on (contract section 10)."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api import times
from dispatch_operator.api.enums import BackendGate, Condition
from dispatch_operator.api.quoting import shortened
from dispatch_operator.checks.backend import gates_of
from dispatch_operator.reconcile.backend.proof import Basis
from dispatch_operator.reconcile.conditions import FALSE, TRUE, UNKNOWN, Wanted, conditions
from dispatch_operator.reconcile.observation import Object, at

Status = dict[str, Any]
Found = Mapping[BackendGate, str | None]
"""Of each gate why it is not proven; None when it is."""

PROVEN, OBSERVE_ONLY, PROBING = "Proven", "ObserveOnly", "Probing"
REASON_LIMIT = 8_192


def probing(backend: Object, why: str, now: float) -> Status:
    """Return the status while a probe runs: the old verdict stands."""
    return _kept(backend, f"the gates are being probed: {why}", now)


def undecided(backend: Object, message: str, now: float) -> Status:
    """Return the status after a probe that came to no verdict: the old one stands, and it is tried again."""
    return _kept(backend, f"the gates will be probed again; the last probe came to no verdict: {message}", now)


def not_probed(backend: Object, now: float) -> Status:
    """Return the status of a backend that takes no Starts: nothing is created in it, and the old verdict stands."""
    gates = gates_of(backend)
    state = str(at(backend, "spec", "state"))
    ready = _ready(gates) if gates else Wanted(Condition.READY, UNKNOWN, state, f"not probed while it is {state}")
    return _status(backend, gates, at(backend, "status", "proof"), [ready], now)


def concluded(backend: Object, found: Found, rests_on: Basis, now: float) -> Status:
    """Return the status after a probe that came to a verdict."""
    gates = [_gate(gate, reason, times.written(now)) for gate, reason in found.items()]
    return _judged(backend, gates, rests_on.as_status(), now)


def marked_unproven(backend: Object, gate: BackendGate, reason: str, now: float) -> Status:
    """Return the status after a Start found a gate that does not hold: there is no proof any more."""
    gates = [
        _gate(gate, reason, str(at(held, "lastProbeTime"))) if at(held, "name") == gate else dict(held)
        for held in gates_of(backend)
    ]
    return _judged(backend, gates, None, now)


def _gate(gate: BackendGate, reason: str | None, probed: str) -> dict[str, Any]:
    told = {} if reason is None else {"reason": shortened(reason, REASON_LIMIT)}
    return {"name": gate.value, "proven": reason is None, **told, "lastProbeTime": probed}


def _kept(backend: Object, progress: str, now: float) -> Status:
    gates = gates_of(backend)
    ready = _ready(gates) if gates else Wanted(Condition.READY, UNKNOWN, PROBING, progress)
    reconciling = Wanted(Condition.RECONCILING, TRUE, PROBING, progress)
    return _status(backend, gates, at(backend, "status", "proof"), [ready, reconciling], now)


def _judged(backend: Object, gates: list[dict[str, Any]], proof: object, now: float) -> Status:
    ready = _ready(tuple(gates))
    wanted = [ready]
    if ready.status != TRUE:
        wanted.append(
            Wanted(Condition.RECONCILING, TRUE, OBSERVE_ONLY, f"the gates will be probed again: {ready.message}")
        )
    return _status(backend, gates, proof, wanted, now)


def _ready(gates: tuple[Mapping[str, Any], ...]) -> Wanted:
    unproven = [f"{at(gate, 'name')} is not proven: {at(gate, 'reason')}" for gate in gates if not at(gate, "proven")]
    if unproven:
        return Wanted(Condition.READY, FALSE, OBSERVE_ONLY, "; ".join(unproven))
    return Wanted(Condition.READY, TRUE, PROVEN, "every gate is proven")


def _status(backend: Object, gates: object, proof: object, wanted: list[Wanted], now: float) -> Status:
    generation = at(backend, "metadata", "generation") or 0
    listed = [dict(gate) for gate in gates] if isinstance(gates, list | tuple) else []
    return {
        "observedGeneration": generation,
        "conditions": conditions(wanted, at(backend, "status", "conditions") or (), generation, now),
        **({"gates": listed} if listed else {}),
        **({"proof": proof} if proof is not None else {}),
    }
