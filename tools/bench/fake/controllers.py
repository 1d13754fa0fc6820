"""What Trainer, JobSet and the garbage collector do about a TrainJob that waits behind its gate."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api import times

Object = dict[str, Any]
NOW = times.written(1_796_000_000.0)


def job_set(train_job: Object, runtime: Object) -> Object:
    """Return the JobSet of a TrainJob: its runtime's template with the patches and the trainer's command in it."""
    meta, spec = train_job["metadata"], train_job["spec"]
    template = runtime["spec"]["template"]["spec"]
    pods = [job["template"]["spec"]["template"]["spec"] for job in template["replicatedJobs"]]
    for pod in pods:
        pod["containers"][0] |= {key: spec["trainer"].get(key) for key in ("command", "env", "image")}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": meta["labels"],
            "annotations": meta["annotations"],
            "ownerReferences": [
                {
                    "apiVersion": train_job["apiVersion"],
                    "kind": "TrainJob",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {**template, "suspend": True},
    }


def suspended(kind: str) -> Object:
    """Return the status of what waits behind its gate."""
    condition = {
        "type": "Suspended",
        "status": "True",
        "reason": "Suspended" if kind == "TrainJob" else "SuspendedJobs",
        "message": f"{kind} is suspended",
        "lastTransitionTime": NOW,
    }
    counts = {"name": "node", "active": 0, "failed": 0, "ready": 0, "succeeded": 0, "suspended": 1}
    jobs = {"jobsStatus": [counts]} if kind == "TrainJob" else {"replicatedJobsStatus": [counts]}
    return {"conditions": [condition], **jobs}


def managed(obj: Object, manager: str, subresource: str = "") -> Object:
    """Return an entry of managedFields, as long as the real ones are."""
    parts = ("status",) if subresource else ("metadata", "spec")
    fields = {part: obj.get(part) for part in parts}
    fields["metadata"] = {
        key: value for key, value in (fields.get("metadata") or {}).items() if key in {"labels", "annotations"}
    }
    return {
        "apiVersion": obj["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields({key: value for key, value in fields.items() if value}),
        "manager": manager,
        "operation": "Update",
        "time": NOW,
        **({"subresource": subresource} if subresource else {}),
    }


def _fields(value: object) -> Object:
    if not isinstance(value, Mapping):
        return {}
    return {f"f:{key}": _fields(inner) for key, inner in value.items()}


def merged(target: object, patch: object) -> Any:  # noqa: ANN401 - any JSON value.
    """Return a merge-patched JSON value (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
