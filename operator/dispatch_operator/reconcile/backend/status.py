"""The status of a DispatchBackend: which gates are proven, and what that rests on.

See docs/contract.md, Status of a backend.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from dispatch_operator.api import times
from dispatch_operator.api.enums import BackendGate, BackendState, Condition, ConditionStatus
from dispatch_operator.api.models.status import BackendCondition, BackendStatus, GateState, Proof
from dispatch_operator.api.quoting import one_line
from dispatch_operator.checks.problems import fitting
from dispatch_operator.reconcile.backend.proof import Basis
from dispatch_operator.reconcile.conditions import Wanted, conditions
from dispatch_operator.records.dispatch import DispatchBackend

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
Found = Mapping[BackendGate, str | None]
"""Of each gate why it is not proven; None when it is."""

NOT_PROBED = f"not probed, because {BackendGate.FIELDS_KEPT} is not proven"
"""The reason of a gate that could not be tried."""
PROVEN, OBSERVE_ONLY, PROBING = "Proven", "ObserveOnly", "Probing"
REASON_LIMIT = 8_192


def probing(backend: DispatchBackend, why: str, now: float) -> BackendStatus:
    """Return the status while a probe runs: the old verdict stands."""
    return _kept(backend, f"the gates are being probed: {why}", now)


def undecided(backend: DispatchBackend, message: str, now: float) -> BackendStatus:
    """Return the status after a probe that came to no verdict: the old one stands, and it is tried again."""
    return _kept(backend, f"the gates will be probed again; the last probe came to no verdict: {message}", now)


def not_probed(backend: DispatchBackend, state: BackendState, now: float) -> BackendStatus:
    """Return the status of a backend that takes no Starts: nothing is created in it, and the old verdict stands.

    It is what its admin wants, and nothing goes on: Ready, lest GitOps tools wait for it for ever.
    """
    ready = Wanted(Condition.READY, TRUE, state, f"it is {state}, as its spec says, and not probed meanwhile")
    return _status(backend, backend.status.gates, backend.status.proof, [ready], now)


def concluded(backend: DispatchBackend, found: Found, rests_on: Basis, now: float) -> BackendStatus:
    """Return the status after a probe that came to a verdict."""
    before = {held.name: held.last_probe_time for held in backend.status.gates}
    gates = tuple(
        _gate(gate, reason, before.get(gate) if reason == NOT_PROBED else times.written(now))
        for gate, reason in found.items()
    )
    return _judged(backend, gates, rests_on.as_proof(), now)


def marked_unproven(backend: DispatchBackend, gate: BackendGate, reason: str, now: float) -> BackendStatus:
    """Return the status after a Start found a gate that does not hold: there is no proof any more."""
    gates = tuple(
        _gate(gate, reason, held.last_probe_time) if held.name is gate else held for held in backend.status.gates
    )
    return _judged(backend, gates, None, now)


def _gate(gate: BackendGate, reason: str | None, probed: str | None) -> GateState:
    return GateState(gate, reason is None, probed, None if reason is None else fitting(one_line(reason), REASON_LIMIT))


def _kept(backend: DispatchBackend, progress: str, now: float) -> BackendStatus:
    gates = backend.status.gates
    ready = _ready(gates) if gates else Wanted(Condition.READY, UNKNOWN, PROBING, progress)
    reconciling = Wanted(Condition.RECONCILING, TRUE, PROBING, progress)
    return _status(backend, gates, backend.status.proof, [ready, reconciling], now)


def _judged(backend: DispatchBackend, gates: tuple[GateState, ...], proof: Proof | None, now: float) -> BackendStatus:
    ready = _ready(gates)
    wanted = [ready]
    if ready.status is not TRUE:
        wanted.append(Wanted(Condition.RECONCILING, TRUE, OBSERVE_ONLY, "the gates will be probed again"))
    return _status(backend, gates, proof, wanted, now)


def _ready(gates: tuple[GateState, ...]) -> Wanted:
    unproven = [f"{gate.name} is not proven: {gate.reason}" for gate in gates if not gate.proven]
    if unproven:
        return Wanted(Condition.READY, FALSE, OBSERVE_ONLY, "; ".join(unproven))
    return Wanted(Condition.READY, TRUE, PROVEN, "every gate is proven")


def _status(
    backend: DispatchBackend, gates: tuple[GateState, ...], proof: Proof | None, wanted: Iterable[Wanted], now: float
) -> BackendStatus:
    generation, current = backend.metadata.generation, backend.status
    return structs.replace(
        current,
        observed_generation=generation,
        conditions=conditions(wanted, current.conditions, generation, now, BackendCondition),
        gates=gates,
        proof=proof,
    )
