"""What is to be said of a DispatchBackend: each gate, guard rail, runtime and part of Kueue's set-up. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.enums import BackendGate, BackendState, Condition, ConditionStatus
from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.api.models import Backend
from dispatch_operator.api.models.backend import BackendRuntime
from dispatch_operator.checks.compatibility import runtime_limits
from dispatch_operator.checks.runtime import runtime_problems
from dispatch_operator.plugin.advice import Step, see_operator
from dispatch_operator.plugin.session import Kubectl
from dispatch_operator.reconcile import kueue_setup
from dispatch_operator.reconcile.backend.status import NOT_PROBED
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.records.dispatch import DispatchBackend
from dispatch_operator.render.terms import terms_of

OK, PROBLEM, SKIPPED, UNKNOWN, NOTE = "ok", "problem", "skipped", "unknown", "note"
_REMEDIES: Mapping[BackendGate, str] = {
    BackendGate.FIELDS_KEPT: (
        "See what changes or drops fields: older CRDs of Trainer, JobSet or Kueue, a mutating webhook or policy, or "
        "the rules that the probe runtime breaks"
    ),
    BackendGate.START_GATE: (
        "See what lets a gated job run: Kueue's version, queues and admission check, or a controller that resumes "
        "TrainJobs"
    ),
    BackendGate.COLLECTED: "See whether kube-controller-manager's garbage collector runs",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    state: str
    """ok, problem, skipped (it was not probed), unknown (it could not be looked at), or note."""
    what: str
    text: str
    steps: tuple[Step, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        next_steps = [step.as_json() for step in self.steps]
        return {"state": self.state, "what": self.what, "text": self.text, "next": next_steps}


@dataclass(frozen=True)
class Read:
    """A runtime as it was read: its object, None when there is none, or why it can't be read."""

    reference: BackendRuntime
    found: Mapping[str, Any] | None
    unread: str = ""


def report(
    backend: DispatchBackend, runtimes: tuple[Read, ...], setup: Observed, unread: tuple[str, ...], kubectl: Kubectl
) -> Iterator[Finding]:
    """Yield what is to be said of a backend.

    Args:
        backend: The DispatchBackend.
        runtimes: Its runtimes, and the probe's.
        setup: What was read of Kueue's set-up.
        unread: What of that could not be read, and why.
        kubectl: Writes the commands.
    """
    valid = backend.valid
    if valid is None:
        edit = kubectl("edit", "dispatchbackend", backend.metadata.name)
        yield Finding(PROBLEM, "spec", backend.fault, (Step("Correct it", edit),))
        return
    yield _state(backend, valid, kubectl)
    yield from _gates(backend, valid, kubectl)
    yield from _guard_rails(valid)
    for one in runtimes:
        yield from _runtime(one, valid, kubectl)
    yield from _kueue(valid, setup, unread, kubectl)


def _state(backend: DispatchBackend, valid: Backend, kubectl: Kubectl) -> Finding:
    state = valid.spec.state
    if state is BackendState.OPEN:
        return Finding(OK, "state", "Open: it takes Starts, once its gates are proven")
    patch = kubectl("patch", "dispatchbackend", backend.metadata.name, "--type=merge", '-p={"spec":{"state":"Open"}}')
    return Finding(PROBLEM, "state", f"{state}: its admin lets it take no Starts", (Step("Open it", patch),))


def _gates(backend: DispatchBackend, valid: Backend, kubectl: Kubectl) -> Iterator[Finding]:
    status = backend.status
    reconciling = status.condition(Condition.RECONCILING)
    going_on = reconciling.message if reconciling else ""
    if not status.gates:
        if valid.spec.state is not BackendState.OPEN:
            return
        step = see_operator(
            "It is probed within seconds of being made; if not, see whether an operator serves this namespace", kubectl
        )
        yield Finding(PROBLEM, "gates", going_on or "no operator has probed it yet", (step,))
        return
    for gate in status.gates:
        probed = f", last probed {gate.last_probe_time}" if gate.last_probe_time else ""
        if gate.proven:
            yield Finding(OK, gate.name, f"proven{probed}")
        elif gate.reason == NOT_PROBED:
            yield Finding(SKIPPED, gate.name, NOT_PROBED)
        else:
            see = kubectl("describe", "dispatchbackend", backend.metadata.name)
            step = Step(f"{_REMEDIES[gate.name]}; it is probed again by itself", see)
            yield Finding(PROBLEM, gate.name, f"not proven{probed}: {gate.reason or 'no reason is told'}", (step,))
    if going_on:
        yield Finding(NOTE, "probe", going_on)
    seen = status.observed_generation
    if seen is not None and seen < backend.metadata.generation:
        yield Finding(
            NOTE, "probe", "the operator has not looked at the latest change yet; if that lasts, see whether it runs"
        )


def _guard_rails(valid: Backend) -> Iterator[Finding]:
    spec = valid.spec
    rails = {
        "images": ", ".join(spec.images) if spec.images is not None else None,
        "maxNodes": spec.max_nodes,
        "maxGpus": spec.max_gpus,
        "maxTimeLimit": spec.max_time_limit,
        "timeLimitRequired": "a request must state a timeLimit" if spec.time_limit_required else None,
    }
    stated = {name: value for name, value in rails.items() if value is not None}
    for name, value in stated.items():
        yield Finding(NOTE, name, str(value))
    if not stated:
        yield Finding(NOTE, "guard rails", "none: requests may name any image, and any number of nodes and GPUs")


def _runtime(read: Read, valid: Backend, kubectl: Kubectl) -> Iterator[Finding]:
    kind, name = Kind(read.reference.kind), read.reference.name
    what, namespaced = f"{kind}/{name}", RESOURCES[kind].namespaced
    if read.unread:
        yield Finding(UNKNOWN, what, read.unread)
        return
    if read.found is None:
        step = Step(
            "Create it, or take it off the backend", kubectl("get", RESOURCES[kind].plural, namespaced=namespaced)
        )
        yield Finding(PROBLEM, what, "it does not exist", (step,))
        return
    problems = tuple(runtime_problems(read.found, valid.spec.gpu_resource))
    for problem in problems:
        yield Finding(PROBLEM, what, str(problem), (Step(f"Remedy: {problem.remedy}"),))
    if problems:
        return
    limits = runtime_limits(read.found, valid.spec.gpu_resource)
    yield Finding(OK, what, "it is fit for Starts")
    for limit in limits:
        yield Finding(PROBLEM if limit.refuses_all else NOTE, what, f"{limit.name}: {limit.text}")


def _kueue(valid: Backend, setup: Observed, unread: tuple[str, ...], kubectl: Kubectl) -> Iterator[Finding]:
    kueue = valid.spec.kueue
    if kueue is None:
        yield Finding(NOTE, "kueue", "none: jobs are gated plainly, and run as soon as their gate is open")
        return
    see = Step("Mend it in Kueue's set-up; see what it says of itself", kubectl("describe", "localqueue", kueue.queue))
    reasons = tuple(reason.text for reason in kueue_setup.reasons(setup, terms_of(valid)))
    for text in reasons:
        yield Finding(PROBLEM, "kueue", text, (see,))
    for line in unread:
        yield Finding(UNKNOWN, "kueue", line)
    if not reasons and not unread:
        check = f"its ClusterQueue has the admission check {kueue.admission_check} for all flavors, and both are active"
        yield Finding(OK, "kueue", f"LocalQueue {kueue.queue}: {check}")


def takes_starts(backend: DispatchBackend) -> bool:
    """Tell whether a Start would be let through now, as far as the backend goes."""
    ready = backend.status.condition(Condition.READY)
    is_open = backend.valid is not None and backend.valid.spec.state is BackendState.OPEN
    return is_open and ready is not None and ready.status is ConditionStatus.TRUE
