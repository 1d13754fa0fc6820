"""What a Start adds to the runtime for its own pods: labels, comment, podinfo (docs/contract.md, Runtime patch)."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api.group import LABEL_PROBE, NODE, PATCH_MANAGER, PODINFO_PATH, PODINFO_VOLUME
from dispatch_operator.render.identity import Identity


def runtime_patch(identity: Identity, runtime_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return dispatch's entry of ``spec.runtimePatches`` for a runtime that passed its checks."""
    jobs = [job["name"] for job in runtime_spec["template"]["spec"]["replicatedJobs"]]
    return {
        "manager": PATCH_MANAGER,
        "trainingRuntimeSpec": {
            "template": {
                "metadata": {"labels": identity.submission_labels()},
                "spec": {"replicatedJobs": [_replicated_job(identity, name) for name in jobs]},
            },
        },
    }


def _replicated_job(identity: Identity, name: str) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "metadata": {"labels": identity.submission_labels(), "annotations": identity.comment_annotation()},
    }
    spec = {**(_podinfo() if name == NODE else {}), **(_nowhere() if identity.is_probe else {})}
    if spec:
        pod["spec"] = spec
    return {"name": name, "template": {"spec": {"template": pod}}}


def _podinfo() -> dict[str, Any]:
    items = [{"path": path, "fieldRef": {"fieldPath": f"metadata.{path}"}} for path in ("labels", "annotations")]
    return {
        "volumes": [{"name": PODINFO_VOLUME, "downwardAPI": {"items": items}}],
        "containers": [{"name": NODE, "volumeMounts": [{"name": PODINFO_VOLUME, "mountPath": PODINFO_PATH}]}],
    }


def _nowhere() -> dict[str, Any]:
    """Keep a probe's pods off every node: none carries this label."""
    return {"nodeSelector": {LABEL_PROBE: "never"}}
