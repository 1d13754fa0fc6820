"""Kueue's queues as an administrator sets them up, and what a test reads of a Workload."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from controlplane import Cluster
from support.install import kubectl_apply
from support.reading import read, read_all
from support.waiting import until

Object = dict[str, Any]

API_VERSION = "kueue.x-k8s.io/v1beta2"
CONTROLLER = "dispatch.phpboyscout.uk/start"
START_GATE = "dispatch.phpboyscout.uk/start-gate"
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
FLAVOR = "default"
QUOTA = {"nvidia.com/gpu": "100", "cpu": "100", "memory": "100Gi"}
CHECK = "dispatch-start"


def make_flavor(name: str = FLAVOR) -> Object:
    """Return a ResourceFlavor of any node."""
    return _make("ResourceFlavor", name, None)


def make_check(name: str = CHECK, controller: str = CONTROLLER) -> Object:
    """Return an AdmissionCheck, by default one of which dispatch is the controller."""
    return _make("AdmissionCheck", name, {"controllerName": controller})


def make_cluster_queue(
    name: str,
    *,
    quota: Mapping[str, str] = QUOTA,
    flavors: Sequence[str] = (FLAVOR,),
    checks: Mapping[str, Sequence[str]] | Sequence[str] = (),
    **spec: Any,
) -> Object:
    """Return a ClusterQueue for every namespace.

    Args:
        name: Its name.
        quota: The nominal quota of each resource, in each flavor.
        flavors: The flavors, in the order in which they are tried.
        checks: The admission checks; as a mapping, with the flavors that each is bound to, where none is all.
        spec: Further fields, as `preemption` and `stopPolicy`.
    """
    bound = checks if isinstance(checks, Mapping) else dict.fromkeys(checks, ())
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
    rules = [
        {"name": check, **({"onFlavors": list(on_flavors)} if on_flavors else {})}
        for check, on_flavors in bound.items()
    ]
    groups = [
        {
            "coveredResources": list(quota),
            "flavors": [{"name": flavor, "resources": resources} for flavor in flavors],
        }
    ]
    strategy = {"admissionChecksStrategy": {"admissionChecks": rules}} if rules else {}
    return _make("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **strategy, **spec})


def make_local_queue(name: str, namespace: str, cluster_queue: str, **spec: Any) -> Object:
    """Return a LocalQueue, through which a namespace uses a ClusterQueue."""
    queue = _make("LocalQueue", name, {"clusterQueue": cluster_queue, **spec})
    queue["metadata"]["namespace"] = namespace
    return queue


def make_priority_class(name: str, value: int) -> Object:
    """Return a WorkloadPriorityClass."""
    made = _make("WorkloadPriorityClass", name, None)
    return {**made, "value": value}


def _make(kind: str, name: str, spec: Object | None) -> Object:
    made = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}
    return made if spec is None else {**made, "spec": spec}


def activate(cluster: Cluster, check: str) -> None:
    """Mark an AdmissionCheck Active, as its controller would."""
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "marked by a test",
        "lastTransitionTime": _now(),
    }
    patch = json.dumps({"status": {"conditions": [condition]}})
    cluster.kubectl("patch", "admissioncheck", check, "--subresource=status", "--type=merge", f"--patch={patch}")


def set_check(cluster: Cluster, workload: Object, check: str, state: str) -> None:
    """Set the state of a check on a Workload, as its controller would."""
    meta = {key: workload["metadata"][key] for key in ("name", "namespace")}
    entry = {"name": check, "state": state, "message": "set by a test", "lastTransitionTime": _now()}
    body = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": meta, "status": {"admissionChecks": [entry]}}
    kubectl_apply(cluster, [body], "--subresource=status", "--force-conflicts", "--field-manager=a-check-controller")


@contextmanager
def workloads_denied(cluster: Cluster) -> Iterator[None]:
    """Let nobody create or change a Workload: Kueue's webhook for them does not answer."""
    name = "kueue-validating-webhook-configuration"
    webhooks = json.loads(cluster.kubectl("get", "validatingwebhookconfiguration", name, "--output=json"))["webhooks"]
    number = [one["name"] for one in webhooks].index("vworkload.kb.io")

    def answers_at(url: str) -> None:
        change = {"op": "replace", "path": f"/webhooks/{number}/clientConfig/url", "value": url}
        cluster.kubectl(
            "patch", "validatingwebhookconfiguration", name, "--type=json", f"--patch={json.dumps([change])}"
        )

    try:
        answers_at("https://127.0.0.1:9/nobody")
        yield
    finally:
        answers_at(webhooks[number]["clientConfig"]["url"])


def until_active(cluster: Cluster, cluster_queue: str) -> None:
    """Wait until a ClusterQueue takes Workloads."""

    def active() -> bool:
        queue = read(cluster, None, "clusterqueues", cluster_queue)
        return condition_of(queue, "Active").get("status") == "True"

    until(f"ClusterQueue {cluster_queue} is active", active)


def workload_of(cluster: Cluster, namespace: str, train_job: str) -> Object | None:
    """Return the Workload that a TrainJob owns."""
    for workload in read_all(cluster, namespace, "workloads"):
        if train_job in [owner["name"] for owner in workload["metadata"].get("ownerReferences", ())]:
            return workload
    return None


def condition_of(obj: Object | None, kind: str) -> dict[str, Any]:
    """Return a condition, empty when there is none."""
    held = (obj or {}).get("status", {}).get("conditions") or ()
    return next((entry for entry in held if entry["type"] == kind), {})


def checks_of(workload: Object) -> dict[str, str]:
    """Return the state of each admission check that a Workload lists."""
    return {entry["name"]: entry["state"] for entry in workload.get("status", {}).get("admissionChecks", ())}


def evictions_of(workload: Object) -> dict[str, int]:
    """Return how often a Workload was evicted for each reason."""
    counted = workload["status"].get("schedulingStats", {}).get("evictions", ())
    return {entry["reason"]: entry["count"] for entry in counted}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
