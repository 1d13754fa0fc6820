"""A small API server: a pure function from objects and a request to objects and an answer."""

import functools
from typing import Any

import cel

from dispatch_operator.api.models.start import StartSpec
from dispatch_operator.kube.errors import ApiError
from support.builders import NAME, NAMESPACE
from support.fake_api import _merge, written_status
from support.fake_api import refusal as _refusal
from support.model.objects import COPIED, JOB, QUEUES, SLOTS, TRAINS, Obj, Objects, replaced
from support.model.suspending import Answer, SuspendedRequest
from support.records import at, copied

Value = dict[str, Any]
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
HELD = "dispatch.phpboyscout.uk/held"
QUEUE = "kueue.x-k8s.io/queue-name"
# The same failure is the same object, so that it is the same answer.
refusal = functools.cache(_refusal)
UNSEEN = refusal("create", JOB, 403, "Forbidden", f"runtime '{NAME}' not found")


@functools.cache
def gate_may_become(old: str, new: str) -> bool:
    """Tell whether the CRD lets somebody move the gate so, by its own rules."""
    rules = StartSpec.model_json_schema()["properties"]["gate"]["x-kubernetes-validations"]
    return all(cel.evaluate(one["rule"], {"self": new, "oldSelf": old}) for one in rules)


def slot_of(kind: str, name: str) -> int | None:
    """Return where an object of this kind and name stands."""
    return SLOTS.index((kind, name)) if (kind, name) in SLOTS else None


def born(value: Value, made: int) -> Obj:
    """Return an object as it is stored when it is created; `made` numbers its kind's objects."""
    stored = copied(value)
    stored["metadata"] |= {"uid": f"{stored['kind']}-{made}", "resourceVersion": "1", "generation": 1}
    stored["metadata"].setdefault("namespace", NAMESPACE)
    stored["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    return Obj.of(stored)


def changed(held: Obj, value: Value) -> Obj:
    """Return an object after a write of it."""
    if value == held.value:
        return held
    meta = {**value["metadata"], "resourceVersion": str(int(held.value["metadata"]["resourceVersion"]) + 1)}
    if value.get("spec") != held.value.get("spec"):
        meta["generation"] = held.value["metadata"]["generation"] + 1
    return Obj.of({**value, "metadata": meta})


def carry_out(
    objects: Objects, made: int, suspended: SuspendedRequest, *, blind: bool, lingers: bool
) -> tuple[Objects, int, Answer]:
    """Return what stands after a request, how many objects were ever made, and the answer.

    Args:
        objects: What stands.
        made: How many objects were ever made.
        asked: The request.
        blind: Whether the admission webhooks have not seen the copy yet.
        lingers: Whether a TrainJob that is deleted stays for a while.
    """
    request = suspended.request
    if request.verb == "await":
        workload = objects[QUEUES]
        return objects, made, workload.value if workload else None
    if request.verb == "list":
        return objects, made, _listed(objects, request.kind, suspended.body["labels"])
    slot = slot_of(request.kind, request.name)
    held = objects[slot] if slot is not None else None
    if request.verb == "get":
        return objects, made, held.value if held else None
    assert slot is not None, f"nobody asks for {request.kind} {request.name}"
    if request.verb == "create":
        return _create(objects, made, slot, suspended, blind=blind)
    if held is None:
        return objects, made, refusal(request.verb, request.kind, 404, "NotFound", "not found")
    if conflict := _conflict(held, suspended):
        return objects, made, conflict
    if request.verb == "delete":
        return replaced(objects, slot, deleted(held, lingers=lingers and slot == TRAINS)), made, None
    body = suspended.body
    if request.subresource:
        body = {**body, "metadata": {**body["metadata"], "managedFields": written_status(held.value)}}
    after = changed(held, _merge(held.value, body))
    return replaced(objects, slot, after), made, after.value


def _create(
    objects: Objects, made: int, slot: int, suspended: SuspendedRequest, *, blind: bool
) -> tuple[Objects, int, Answer]:
    kind = suspended.request.kind
    if slot == TRAINS and (blind or objects[COPIED] is None):
        return objects, made, UNSEEN
    if objects[slot] is not None:
        return objects, made, refusal("create", kind, 409, "AlreadyExists", "already exists")
    body = suspended.body
    if at(body, "metadata", "labels", QUEUE):
        # Kueue's webhook suspends what it manages.
        body = {**body, "spec": {**body["spec"], "suspend": True}} if slot == TRAINS else body
    obj = born(body, made + 1)
    return replaced(objects, slot, obj), made + 1, obj.value


def _conflict(held: Obj, suspended: SuspendedRequest) -> ApiError | None:
    wanted, meta = suspended.body["metadata"], held.value["metadata"]
    if any(wanted.get(key) not in {None, meta[key]} for key in ("uid", "resourceVersion")):
        return refusal(suspended.request.verb, suspended.request.kind, 409, "Conflict", "a precondition failed")
    return None


def deleted(held: Obj, *, lingers: bool) -> Obj | None:
    if not lingers:
        return None
    meta = {**held.value["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return held if is_going(held) else changed(held, {**held.value, "metadata": meta})


def is_going(obj: Obj) -> bool:
    """Tell whether an object is being deleted."""
    return "deletionTimestamp" in obj.value["metadata"]


def _listed(objects: Objects, kind: str, labels: str) -> tuple[Value, ...]:
    wanted = dict(pair.split("=") for pair in labels.split(",") if pair)
    return tuple(
        obj.value
        for obj in objects
        if obj and obj.value["kind"] == kind and wanted.items() <= obj.value["metadata"].get("labels", {}).items()
    )


def collectable(objects: Objects) -> list[int]:
    """Return the slots that the garbage collector would empty."""
    uids = {obj.uid for obj in objects if obj}
    return [
        slot
        for slot, obj in enumerate(objects)
        if obj
        and (owners := obj.value["metadata"].get("ownerReferences"))
        and not uids & {one["uid"] for one in owners}
    ]


def workload_of(objects: Objects, made: int) -> Obj | None:
    """Return the Workload that Kueue makes of the TrainJob, when it is to make one."""
    job = objects[TRAINS]
    if job is None or objects[QUEUES] is not None or not at(job.value, "metadata", "labels", QUEUE) or is_going(job):
        return None
    meta = {
        "name": SLOTS[QUEUES][1],
        "labels": {"kueue.x-k8s.io/job-uid": job.uid},
        "annotations": {GATED_BY: at(job.value, "metadata", "annotations", GATED_BY) or ""},
        "ownerReferences": [{"kind": JOB, "name": NAME, "uid": job.uid}],
    }
    status = {"admissionChecks": [{"name": "dispatch-start", "state": "Pending"}]}
    return born({"kind": "Workload", "metadata": meta, "spec": {"active": True}, "status": status}, made + 1)


def nature(objects: Objects, made: int) -> tuple[Objects, int]:
    """Return what stands after the garbage collector, and Kueue where it is, have done their work."""
    while slots := collectable(objects):
        objects = replaced(objects, slots[0], None)
    workload = workload_of(objects, made)
    return (replaced(objects, QUEUES, workload), made + 1) if workload else (objects, made)
