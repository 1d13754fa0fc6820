"""The API server changes what is created: MutatingAdmissionPolicies, as a platform's other tools bring them."""

import json
from collections.abc import Sequence
from typing import Any

from controlplane import Cluster
from support.install import apply
from support.waiting import until

Object = dict[str, Any]
API_VERSION = "admissionregistration.k8s.io/v1"
PROBE = "dispatch.phpboyscout.uk/probe"
INJECTED = (
    'Object{spec: Object.spec{trainer: Object.spec.trainer{env: [Object.spec.trainer.env{name: "INJECTED", '
    'value: "1"}]}}}'
)
"""An environment variable that nobody asked for."""


TRAIN_JOB: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "tried"},
    "spec": {"runtimeRef": {"name": "torch-dispatch"}},
}


def configuration(expression: str) -> Object:
    """Return a mutation that applies a configuration, a CEL expression of an object."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def mutate(
    cluster: Cluster,
    namespace: str,
    mutation: Object,
    *,
    resources: Sequence[str] = ("trainjobs",),
    but_probes: bool = False,
    condition: str = "",
    tried: Object | None = None,
) -> None:
    """Let the API server change every such object that is created in a namespace, from the end of this call on.

    Args:
        cluster: Where.
        namespace: In which namespace; the policy bears its name.
        mutation: One of the policy's `mutations`.
        resources: What is changed.
        but_probes: Whether probes are kept as they are written.
        condition: A CEL expression of what is changed; empty for everything.
        tried: An object that is changed; a TrainJob when there is none.
    """
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": list(resources)}
    match: Object = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "resourceRules": [rule],
    }
    if but_probes:
        match["objectSelector"] = {"matchExpressions": [{"key": PROBE, "operator": "DoesNotExist"}]}
    spec = {
        "matchConstraints": match,
        "matchConditions": [{"name": "chosen", "expression": condition}] if condition else [],
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
        "mutations": [mutation],
    }
    named = {"apiVersion": API_VERSION, "metadata": {"name": namespace}}
    policy = {**named, "kind": "MutatingAdmissionPolicy", "spec": spec}
    binding = {**named, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": namespace}}
    tried = {**(tried or TRAIN_JOB), "metadata": {**(tried or TRAIN_JOB)["metadata"], "namespace": namespace}}
    before = _stored(cluster, tried)
    apply(cluster, [policy, binding])
    until("the policy is in force", lambda: _stored(cluster, tried) != before)


def _stored(cluster: Cluster, tried: Object) -> Object:
    """Return what would be stored of an object, without what differs each time."""
    create = ("create", "--dry-run=server", "--output=json", "--filename=-")
    stored: Object = json.loads(cluster.kubectl(*create, input=json.dumps(tried)))
    labels, annotations = (stored["metadata"].get(key) for key in ("labels", "annotations"))
    return {"labels": labels, "annotations": annotations, "spec": stored.get("spec")}
