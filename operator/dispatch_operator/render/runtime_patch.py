"""What a Start adds to the runtime for its own pods: labels, the comment, and the podinfo volume (section 6)."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.render.identity import Identity
from dispatch_operator.vocabulary import NODE, PATCH_MANAGER, PODINFO_PATH, PODINFO_VOLUME


def runtime_patch(identity: Identity, runtime_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return dispatch's entry of ``spec.runtimePatches`` for a runtime that passed the checks of section 7."""
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
    pod = {"metadata": {"labels": identity.submission_labels(), "annotations": identity.comment_annotation()}}
    if name == NODE:
        pod["spec"] = _podinfo()
    return {"name": name, "template": {"spec": {"template": pod}}}


def _podinfo() -> dict[str, Any]:
    items = [{"path": path, "fieldRef": {"fieldPath": f"metadata.{path}"}} for path in ("labels", "annotations")]
    return {
        "volumes": [{"name": PODINFO_VOLUME, "downwardAPI": {"items": items}}],
        "containers": [{"name": NODE, "volumeMounts": [{"name": PODINFO_VOLUME, "mountPath": PODINFO_PATH}]}],
    }
