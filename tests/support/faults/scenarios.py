"""What an operator is about when a fault meets it: each scenario is a world, and what humans do to it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import Request
from support.faults.fault import FAULTS
from support.faults.faulty_api import COPY, JOB, START, FaultyApi

Object = dict[str, Any]
Change = Callable[[FaultyApi], None]
CHECK = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "AdmissionCheck",
    "metadata": {"name": "dispatch-start"},
    "spec": {"controllerName": "dispatch.phpboyscout.uk/start"},
    "status": {},
}
OF_START = "dispatch.phpboyscout.uk/start"
OUTAGE = 60.0
"""Seconds for which Kueue makes no Workload."""
FAULT = {fault.name: fault for fault in FAULTS}


def _nothing(_world: FaultyApi) -> None:
    pass


@dataclass(frozen=True)
class FaultScenario:
    """One world, and what is done to it after its operator has come to rest, once for each."""

    name: str
    kueue: bool = False
    gate: str = "Closed"
    before: Change = _nothing
    """Changes the world before any operator runs."""
    changes: tuple[Change, ...] = ()
    """What humans do; the faults are those of what follows the last change."""
    starts: bool = True
    """Whether a Start is under way, whose requests have the verdicts of docs/contract.md, API answers."""
    is_meddled_with: bool = True
    """Whether it has a TrainJob that the operator knows, whose marks somebody may take away."""

    def __str__(self) -> str:
        return self.name

    def world(self, retry: str) -> FaultyApi:
        """Return a new world of this scenario."""
        world = FaultyApi(kueue=self.kueue)
        spec: Object = {"timeouts": {"workload": "10s"}}
        if self.kueue:
            spec["kueue"] = {"queue": "team-a", "admissionCheck": "dispatch-start"}
            world.put(CHECK, **CHECK["status"])  # type: ignore[arg-type]
            world.admit = _suspends
        backend = make_backend(**spec)
        for obj in (make_runtime(), backend, make_start(gate=self.gate, retry=retry), *_foreign()):
            world.put(obj, **obj.pop("status", {}))
        self.before(world)
        return world


def _suspends(request: Request, body: Object) -> Object:
    return {**body, "spec": {**body["spec"], "suspend": True}} if request.kind == JOB else body


def _foreign() -> tuple[Object, ...]:
    """Return what is not the operator's to change, whatever happens."""
    here = {"namespace": NAMESPACE, "name": "a-human's"}
    return (
        {"kind": JOB, "metadata": {**here}, "spec": {"suspend": False}, "status": {}},
        {"kind": COPY, "metadata": {**here}, "spec": {}, "status": {}},
    )


def _gate(gate: str) -> Change:
    return lambda world: world.edit(START, lambda start: start["spec"].update(gate=gate))


def _backend(**spec: Any) -> Change:
    return lambda world: world.edit("DispatchBackend", lambda backend: backend["spec"].update(spec))


def _delete(kind: str, name: str) -> Change:
    def change(world: FaultyApi) -> None:
        del world.objects[kind, NAMESPACE, name]

    return change


def _leftover(spec: Object | None, **labels: str) -> Change:
    """Place a copy of a DispatchStart that is gone."""

    def change(world: FaultyApi) -> None:
        meta = {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {OF_START: "gone", f"{OF_START}-uid": "gone-uid"},
        }
        world.put({"kind": COPY, "metadata": meta, "spec": make_runtime()["spec"] if spec is None else spec})

    return change


def _left_alone(world: FaultyApi) -> None:
    job = make_start()["spec"]["request"]["job"]
    labels = {
        "app.kubernetes.io/managed-by": "dispatch-operator",
        "dispatch.phpboyscout.uk/job-id": job,
        "dispatch.phpboyscout.uk/submission": "1",
    }
    _leftover(None, **labels)(world)
    _delete(START, "llama-s1")(world)


def _to_be_taken_over(spec: Object | None) -> Change:
    """Place such a copy where no collector competes for it: each request is then one of the Start's."""

    def change(world: FaultyApi) -> None:
        world.has_collector = False
        _leftover(spec)(world)

    return change


def _stored_changed(kind: str) -> Change:
    def change(world: FaultyApi) -> None:
        admit = world.admit

        def webhook(request: Request, body: Object) -> Object:
            body = admit(request, body)
            if request.kind != kind:
                return body
            return {**body, "spec": {**body["spec"], "managedBy": "x", "mlPolicy": {}}}

        world.admit = webhook

    return change


def strips(kind: str, part: str, *keys: str) -> Change:
    """Let a webhook drop keys from a part of the metadata of what is created, or all of it."""

    def change(world: FaultyApi) -> None:
        admit = world.admit

        def webhook(request: Request, body: Object) -> Object:
            body = admit(request, body)
            return _stripped(body, part, keys) if (request.verb, request.kind) == ("create", kind) else body

        world.admit = webhook

    return change


def _stripped(obj: Object, part: str, keys: tuple[str, ...]) -> Object:
    if part not in obj["metadata"]:
        return obj
    held = obj["metadata"][part]
    kept = {key: value for key, value in held.items() if key not in keys} if keys else type(held)()
    return {**obj, "metadata": {**obj["metadata"], part: kept}}


def takes_away(kind: str, part: str, *keys: str) -> Change:
    """Take keys away from a part of the metadata of the operator's object, or all of it."""

    def change(world: FaultyApi) -> None:
        if (kind, NAMESPACE, NAME) in world.objects:
            world.change(kind, NAME, lambda obj: obj.update(_stripped(obj, part, keys)))

    return change


LABELS = (
    "app.kubernetes.io/managed-by",
    "dispatch.phpboyscout.uk/job-id",
    "dispatch.phpboyscout.uk/submission",
)
MEDDLING: dict[str, Change] = {
    "start-uid": takes_away(JOB, "annotations", f"{OF_START}-uid"),
    "start": takes_away(JOB, "annotations", OF_START),
    "what was taken from the backend": takes_away(JOB, "annotations", "dispatch.phpboyscout.uk/backend"),
    "the labels of dispatch": takes_away(JOB, "labels", *LABELS),
    "the owner": takes_away(JOB, "ownerReferences"),
    "the labels of the copy": takes_away(COPY, "labels"),
}
"""What somebody takes away at any moment."""


def _first(verb: str, kind: str, fault: str) -> Change:
    """Let the first request of a kind meet a fault, besides the one that is looked at."""

    def change(world: FaultyApi) -> None:
        world.base = (verb, kind, FAULT[fault])

    return change


def _no_workload(world: FaultyApi) -> None:
    _kueue_is_down(world, onFlavors=["gpu"])


def _kueue_is_down(world: FaultyApi, **bound: Any) -> None:
    world.kueue = False
    queue = {"kind": "LocalQueue", "metadata": {"name": "team-a", "namespace": NAMESPACE}}
    world.put({**queue, "spec": {"clusterQueue": "all"}})
    strategy = {"admissionChecks": [{"name": "dispatch-start", **bound}]}
    world.put(
        {"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {"admissionChecksStrategy": strategy}},
        conditions=[{"type": "Active", "status": "True", "reason": "Ready", "message": ""}],
    )


def _kueue_comes_back(world: FaultyApi) -> None:
    """Let Kueue make Workloads only after what may pass is waited for."""
    _kueue_is_down(world)

    def comes_back() -> None:
        world.kueue = True
        world.happened()

    asyncio.get_running_loop().call_later(OUTAGE, comes_back)


def _ours(kind: str, change: Callable[[Object], None]) -> Change:
    """Change the operator's TrainJob, or its copy."""
    return lambda world: world.change(kind, NAME, change)


def _fails(job: Object) -> None:
    failed = {"type": "Failed", "status": "True", "reason": "NonZeroExitCode", "message": "it failed"}
    job["status"] = {"conditions": [failed]}


def _completes(job: Object) -> None:
    ended = {"type": "Complete", "status": "True", "reason": "JobsCompleted", "message": "it is done"}
    job["status"] = {"conditions": [{**ended, "lastTransitionTime": "2026-01-01T00:02:00Z"}]}


def _is_edited(copy: Object) -> None:
    copy["spec"]["mlPolicy"] = {"numNodes": 2, "torch": {}}


def _leaves_in_the_foreground(world: FaultyApi) -> None:
    """Delete the TrainJob in the foreground: it goes once its copy was there again."""
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    world.change(JOB, NAME, lambda job: job["metadata"].update(gone))
    world.objects.pop((COPY, NAMESPACE, NAME))

    def collector(held: FaultyApi) -> None:
        if (COPY, NAMESPACE, NAME) in held.objects:
            held.objects.pop((JOB, NAMESPACE, NAME), None)

    world.reacts = collector


def _turns_up_late(world: FaultyApi) -> None:
    """Let a create of a Start that is finally refused land after all."""
    start = world.one(START)
    signed = {OF_START: start["metadata"]["name"], f"{OF_START}-uid": start["metadata"]["uid"]}
    labels = {
        "app.kubernetes.io/managed-by": "dispatch-operator",
        "dispatch.phpboyscout.uk/job-id": start["spec"]["request"]["job"],
        "dispatch.phpboyscout.uk/submission": "1",
    }
    meta = {"name": NAME, "namespace": NAMESPACE, "labels": labels, "annotations": signed}
    world.put({"kind": JOB, "metadata": meta, "spec": {"suspend": True}})
    world.put({"kind": COPY, "metadata": meta, "spec": {}})


SCENARIOS = (
    FaultScenario("a plain Start"),
    FaultScenario("a plain Start that opens at once", gate="Open"),
    FaultScenario("a plain Start that takes over a leftover copy", before=_to_be_taken_over(None)),
    FaultScenario("a plain Start that finds another copy left over", before=_to_be_taken_over({"mlPolicy": {}})),
    FaultScenario(
        "a plain Start whose create was carried out unanswered", before=_first("create", JOB, "no answer, carried out")
    ),
    FaultScenario("a Start in Kueue mode", kueue=True),
    FaultScenario("a Start in Kueue mode that opens at once", kueue=True, gate="Open"),
    FaultScenario("an opening in plain mode", changes=(_gate("Open"),), starts=False),
    FaultScenario("a hold in plain mode", gate="Open", changes=(_gate("Held"),), starts=False),
    FaultScenario("a release in plain mode", gate="Open", changes=(_gate("Held"), _gate("Open")), starts=False),
    FaultScenario("an opening in Kueue mode", kueue=True, changes=(_gate("Open"),), starts=False),
    FaultScenario("a hold in Kueue mode", kueue=True, gate="Open", changes=(_gate("Held"),), starts=False),
    FaultScenario(
        "a release in Kueue mode", kueue=True, gate="Open", changes=(_gate("Held"), _gate("Open")), starts=False
    ),
    FaultScenario("a refusal by the backend", before=_backend(state="ReadOnly")),
    FaultScenario("a refusal of a copy that was stored changed", before=_stored_changed(COPY)),
    FaultScenario("a stop of a TrainJob that was stored changed", before=_stored_changed(JOB)),
    FaultScenario(
        "a stop of a TrainJob whose start-uid was dropped", before=strips(JOB, "annotations", f"{OF_START}-uid")
    ),
    FaultScenario("a stop of a TrainJob whose annotations were dropped", before=strips(JOB, "annotations")),
    FaultScenario("a stop of a TrainJob whose labels were dropped", before=strips(JOB, "labels")),
    FaultScenario("a stop of a TrainJob whose owner was dropped", before=strips(JOB, "ownerReferences")),
    FaultScenario("a plain Start whose copy lost its labels", before=strips(COPY, "labels")),
    FaultScenario("a stop in Kueue mode, without a Workload", kueue=True, before=_no_workload),
    FaultScenario("a Start in Kueue mode that meets an outage of Kueue", kueue=True, before=_kueue_comes_back),
    FaultScenario(
        "what turns up late after a refusal",
        before=_stored_changed(COPY),
        changes=(_turns_up_late,),
        starts=False,
    ),
    FaultScenario("a copy that nobody needs", before=_left_alone, starts=False, is_meddled_with=False),
    FaultScenario("a TrainJob that vanishes", changes=(_delete(JOB, NAME),), starts=False),
    FaultScenario("a TrainJob that leaves in the foreground", changes=(_leaves_in_the_foreground,), starts=False),
    FaultScenario("a job that fails", gate="Open", changes=(_ours(JOB, _fails),), starts=False),
    FaultScenario(
        "an ended job that is not kept for long",
        gate="Open",
        before=_backend(keepEnded="1m"),
        changes=(_ours(JOB, _completes),),
        starts=False,
        is_meddled_with=False,
    ),
    FaultScenario(
        "an ended job that is kept no longer",
        gate="Open",
        changes=(_ours(JOB, _completes), _backend(keepEnded="1s")),
        starts=False,
    ),
    FaultScenario(
        "a copy that was changed behind the gate", changes=(_ours(COPY, _is_edited), _gate("Open")), starts=False
    ),
    FaultScenario("a cancellation before anything was created", gate="Cancelled", starts=False, is_meddled_with=False),
    FaultScenario(
        "a cancellation of a Start that waits",
        before=_backend(state="ReadOnly"),
        changes=(_gate("Cancelled"),),
        starts=False,
        is_meddled_with=False,
    ),
    FaultScenario("a cancellation of a gated job", changes=(_gate("Cancelled"),), starts=False),
    FaultScenario("a cancellation of an open job", gate="Open", changes=(_gate("Cancelled"),), starts=False),
    FaultScenario(
        "a cancellation of a held job", gate="Open", changes=(_gate("Held"), _gate("Cancelled")), starts=False
    ),
    FaultScenario(
        "a cancellation behind the gate in Kueue mode", kueue=True, changes=(_gate("Cancelled"),), starts=False
    ),
    FaultScenario(
        "a cancellation of a held job in Kueue mode",
        kueue=True,
        gate="Open",
        changes=(_gate("Held"), _gate("Cancelled")),
        starts=False,
    ),
)
