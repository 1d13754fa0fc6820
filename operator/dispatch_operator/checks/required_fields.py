"""Whether the served versions of Trainer, JobSet and Kueue have the fields that a Start needs.

The API server drops what a CRD does not know, without a word. Its OpenAPI document tells before anything is written.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dispatch_operator.api.group import JOBSET_API_VERSION, KUEUE_API_VERSION, TRAINER_API_VERSION
from dispatch_operator.api.models import Backend

Schema = Mapping[str, Any]

_POD_PATCH = "spec.runtimePatches.trainingRuntimeSpec.template.spec.replicatedJobs.template.spec.template"

NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    TRAINER_API_VERSION: {
        "TrainJob": (
            "spec.runtimeRef.apiGroup",
            "spec.runtimeRef.kind",
            "spec.runtimeRef.name",
            "spec.suspend",
            "spec.activeDeadlineSeconds",
            "spec.trainer.image",
            "spec.trainer.command",
            "spec.trainer.env.name",
            "spec.trainer.env.value",
            "spec.trainer.env.valueFrom.fieldRef.fieldPath",
            "spec.trainer.numNodes",
            "spec.trainer.numProcPerNode",
            "spec.trainer.resourcesPerNode.limits",
            "spec.runtimePatches.manager",
            "spec.runtimePatches.trainingRuntimeSpec.template.metadata.labels",
            "spec.runtimePatches.trainingRuntimeSpec.template.spec.replicatedJobs.name",
            f"{_POD_PATCH}.metadata.labels",
            f"{_POD_PATCH}.metadata.annotations",
            f"{_POD_PATCH}.spec.nodeSelector",
            f"{_POD_PATCH}.spec.volumes.name",
            f"{_POD_PATCH}.spec.volumes.downwardAPI.items.path",
            f"{_POD_PATCH}.spec.volumes.downwardAPI.items.fieldRef.fieldPath",
            f"{_POD_PATCH}.spec.containers.name",
            f"{_POD_PATCH}.spec.containers.volumeMounts.name",
            f"{_POD_PATCH}.spec.containers.volumeMounts.mountPath",
            "status.conditions",
            "status.jobsStatus",
        ),
        "TrainingRuntime": ("spec.mlPolicy.numNodes", "spec.template.spec.replicatedJobs.template"),
        "ClusterTrainingRuntime": ("spec.mlPolicy.numNodes", "spec.template.spec.replicatedJobs.template"),
    },
    JOBSET_API_VERSION: {
        "JobSet": (
            "spec.suspend",
            "spec.failurePolicy.maxRestarts",
            "spec.replicatedJobs.template",
            "status.restarts",
        ),
    },
    KUEUE_API_VERSION: {
        "Workload": (
            "spec.active",
            "status.conditions",
            "status.admissionChecks.name",
            "status.admissionChecks.state",
        ),
        "LocalQueue": ("spec.clusterQueue",),
        "ClusterQueue": ("spec.admissionChecksStrategy.admissionChecks.name",),
        "AdmissionCheck": ("spec.controllerName",),
    },
}
"""By API version and kind: the fields that the operator writes or reads. Lists are written as their items."""

_INSTALL = {
    TRAINER_API_VERSION: "Kubeflow Trainer 2.3 or newer",
    JOBSET_API_VERSION: "JobSet 0.12 or newer",
    KUEUE_API_VERSION: "Kueue 0.19 or newer",
}


def needed_apis(backend: Backend) -> tuple[str, ...]:
    """Return the API versions that Starts on a backend rest on."""
    return tuple(api for api in NEEDED if backend.spec.kueue or api != KUEUE_API_VERSION)


def lacking(api: str, document: Mapping[str, Any] | None) -> Iterator[str]:
    """Say what an API version lacks: kind, version and field.

    Args:
        api: One of `NEEDED`.
        document: Its OpenAPI v3 document; None when the API server does not serve it.
    """
    if document is None:
        yield f"{api} is not served; install {_INSTALL[api]}"
        return
    schemas: Mapping[str, Any] = (document.get("components") or {}).get("schemas") or {}
    for kind, paths in NEEDED[api].items():
        schema = _of_kind(schemas, api, kind)
        if schema is None:
            yield f"{kind} of {api} is not served; install {_INSTALL[api]}"
            continue
        missing = dict.fromkeys(_missing(schema, path.split("."), schemas) for path in paths)
        for field in missing:
            if field:
                yield f"{kind} of {api} lacks the field {field}; install {_INSTALL[api]}"


def _of_kind(schemas: Mapping[str, Any], api: str, kind: str) -> Schema | None:
    group, version = api.split("/")
    wanted = {"group": group, "version": version, "kind": kind}
    for schema in schemas.values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            found: Schema = schema
            return found
    return None


def _missing(schema: Schema, path: list[str], schemas: Mapping[str, Any]) -> str:
    """Return the part of a path that leads to the first field which is missing; "" when none is."""
    for depth, step in enumerate(path, start=1):
        schema = _content(schema, schemas)
        if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties"):
            return ""
        if step not in (schema.get("properties") or {}):
            return ".".join(path[:depth])
        schema = schema["properties"][step]
    return ""


def _content(schema: Schema, schemas: Mapping[str, Any]) -> Schema:
    """Return the schema of an object, or of a list's items, that a schema stands for."""
    while True:
        if "items" in schema:
            schema = schema["items"]
        elif len(schema.get("allOf") or ()) == 1:
            schema = schema["allOf"][0]
        elif "$ref" in schema:
            schema = schemas.get(str(schema["$ref"]).rpartition("/")[2]) or {}
        else:
            return schema
