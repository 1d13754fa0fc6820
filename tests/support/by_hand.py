"""The objects of a Start, made by hand from a worked example: what a cluster does with them without an operator."""

import json
from pathlib import Path
from typing import Any

import yaml

from controlplane import Cluster
from controlplane.kubectl import KubectlError
from support.install import apply
from support.waiting import until

Object = dict[str, Any]
NOT_SEEN_YET = ("must be created before the TrainJob is created", "' not found")
"""What Trainer's and Kueue's webhooks say of a copy that their caches don't hold yet."""
CASES = Path(__file__).parents[1] / "data" / "cases"


def create_by_hand(
    cluster: Cluster, namespace: str, case: str, *, outcome: str = "succeed", foreign: bool = False, **changes: Any
) -> str:
    """Create the copy and the TrainJob that an example wants, in a namespace that exists, and return their name.

    Args:
        cluster: Where to.
        namespace: Of both.
        case: The example.
        outcome: How its pods end; see the control plane's stages.yaml.
        foreign: Whether both are without labels and annotations, so that no operator takes them for its own.
        changes: `labels` and `annotations` of the TrainJob to replace (None removes one), and fields of its spec.
    """
    copy, job = yaml.safe_load((CASES / case / "want.yaml").read_text())["items"]
    for obj in (copy, job):
        obj["metadata"]["namespace"] = namespace
        if foreign:
            obj["metadata"] |= {"labels": {}, "annotations": {}}
    for template in (entry["template"] for entry in copy["spec"]["template"]["spec"]["replicatedJobs"]):
        pod = template["spec"]["template"]
        pod["metadata"] = {"annotations": {"test.kwok.x-k8s.io/outcome": outcome}}
        pod["spec"]["restartPolicy"] = "Never"
    # There is no DispatchStart, and garbage collection would soon find that out.
    del job["metadata"]["ownerReferences"]
    for part in ("labels", "annotations"):
        merged = {**job["metadata"][part], **changes.pop(part, {})}
        job["metadata"][part] = {key: value for key, value in merged.items() if value is not None}
    job["spec"] |= changes
    apply(cluster, [copy])
    until("both webhooks have seen the copy", lambda: _create(cluster, job))
    name: str = job["metadata"]["name"]
    return name


def _create(cluster: Cluster, job: Object) -> bool:
    try:
        # As client libraries do it: what is not served is dropped without a word.
        cluster.kubectl("create", "--validate=false", "--filename=-", input=json.dumps(job))
    except KubectlError as error:
        if any(words in error.stderr for words in NOT_SEEN_YET):
            return False
        raise
    return True
