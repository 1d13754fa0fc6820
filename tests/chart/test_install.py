"""The chart on a real API server."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from controlplane import Cluster
from support.chart import CHART, Object, documents, helm, render
from support.install import apply, ensure_namespace, kubectl_apply
from support.release import Release
from support.waiting import until

SERVED = ["chart-a", "chart-b"]
OF_TEST = "--selector=app.kubernetes.io/name=dispatch-operator-test"
MONITORED = {"servicemonitors": "ServiceMonitor", "podmonitors": "PodMonitor", "prometheusrules": "PrometheusRule"}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> str:
    """A namespace that takes only pods without any privilege, and the ones to serve."""
    name = "chart"
    for one in (name, *SERVED):
        ensure_namespace(cluster, one)
    apply(cluster, [_served(plural, kind) for plural, kind in MONITORED.items()])
    for plural in MONITORED:
        cluster.kubectl(
            "wait", "--for=condition=Established", f"customresourcedefinition/{plural}.monitoring.coreos.com"
        )
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    return name


def _served(plural: str, kind: str) -> Object:
    """Return a CRD that only serves a kind of the Prometheus operator: its schemas are not to be had here."""
    group = "monitoring.coreos.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
def release(cluster: Cluster, namespace: str) -> Callable[..., str]:
    """Helm's commands on a release in that namespace."""
    made = Release(cluster, namespace, "tried")

    def run(command: str, *arguments: str, **values: Any) -> str:
        # The CRDs are here already, as those of a release that had them in its folder `crds` are.
        owner = ["--take-ownership"] if command == "install" else []
        return made.helm(command, *owner, *arguments, **values)

    return run


VALUES: dict[str, Object] = {
    "nothing": {},
    "some namespaces": {"namespaces": SERVED},
    "two replicas": {
        "replicas": 2,
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
    },
    "no Kueue": {"kueue": {"enabled": False}, "rbac": {"aggregate": False}},
    "a cluster that assigns users": {"openshift": True},
    "a private CA": {
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
        "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/etc/ca/ca.crt"}],
        "image": {"repository": "registry.example/op", "digest": f"sha256:{'a' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
    },
    "a closed network": {"networkPolicy": {"enabled": True, "from": [{"podSelector": {}}], "apiServerPorts": [6443]}},
    "logs for people": {"logLevel": "debug", "logFormat": "text"},
    "a place of its own": {
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "ClusterFirst",
    },
    "watched by Prometheus": {
        "metrics": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "30s"},
            "podMonitor": {"enabled": True, "interval": "1m"},
            "rules": {"enabled": True, "labels": {"a": "b"}},
            "dashboard": {"enabled": True},
        },
    },
    "labels and other names": {
        "commonLabels": {"team": "ml"},
        "podLabels": {"a": "b"},
        "podAnnotations": {"c": "d"},
        "fullnameOverride": "renamed",
        "serviceAccount": {"name": "mine", "annotations": {"e": "f"}},
    },
    "what is there already": {
        "crds": {"install": False},
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "theirs"},
    },
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_api_server_takes_every_object(cluster: Cluster, namespace: str, values: Object) -> None:
    helm("lint", "--strict", str(CHART), "--values=-", input=json.dumps(values))
    objects = render(namespace=namespace, values=values)
    # Strict validation turns a misspelt field from a warning into an error.
    printed = kubectl_apply(cluster, objects, "--dry-run=server", "--validate=strict")
    assert printed.count("serverside-applied (server dry run)") == len(objects)


def test_a_release_is_installed_changed_and_uninstalled(
    cluster: Cluster, namespace: str, release: Callable[..., str]
) -> None:
    release("install")
    # Helm has waited for it: the pod is allowed here, and its account exists.
    (pod,) = owned(cluster, "pods", f"--namespace={namespace}")
    assert pod["spec"]["containers"][0]["args"][:2] == ["run", "--all-namespaces"]
    assert [volume for volume in pod["spec"]["volumes"] if "projected" in volume]
    assert "dispatchstarts" in resources(cluster)

    with ThreadPoolExecutor() as beside:
        tested = beside.submit(release, "test")
        # The simulated kubelet runs it, and knows no end; what it asks and says, tests/unit/test_check_operator.py tells.
        until("the test's pod runs", lambda: "Running" in cluster.kubectl("get", "pods", f"-n={namespace}", OF_TEST))
        ends = ("--subresource=status", "--type=merge", '--patch={"status":{"phase":"Succeeded"}}')
        cluster.kubectl("patch", "pod", "tried-dispatch-operator-ready-test", f"-n={namespace}", *ends)
        assert "Succeeded" in tested.result()

    release("upgrade", namespaces=SERVED)
    args = {tuple(pod["spec"]["containers"][0]["args"][:3]) for pod in running(cluster, namespace)}
    assert args == {("run", "--namespace=chart-a", "--namespace=chart-b")}
    assert resources(cluster) == {
        "clustertrainingruntimes",
        "clusterqueues",
        "admissionchecks",
        "workloadpriorityclasses",
        "namespaces",
    }
    assert bound(cluster) == {*SERVED, namespace}

    release("uninstall")
    kinds = "deployments,serviceaccounts,roles,rolebindings"
    assert owned(cluster, kinds, "-A") == owned(cluster, "clusterroles,clusterrolebindings") == []
    assert "dispatchstarts.dispatch.phpboyscout.uk" in cluster.kubectl("get", "crds")


def test_a_namespace_may_be_named_that_does_not_exist_yet_or_goes(
    cluster: Cluster, namespace: str, release: Callable[..., str]
) -> None:
    served = {"namespaces": [SERVED[0], "chart-later"]}
    told = release("install", **served)
    assert "chart-later does not exist now" in told
    assert f"{SERVED[0]} does not exist now" not in told
    assert bound(cluster) == {SERVED[0], namespace}

    ensure_namespace(cluster, "chart-later")
    assert "does not exist now" not in release("upgrade", **served)
    assert bound(cluster) == {SERVED[0], "chart-later", namespace}

    # While it can't go yet nothing can be made in it, and its binding may be gone.
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": "chart-later"}}
    apply(cluster, [{**held, "metadata": {**held["metadata"], "finalizers": ["example.com/wait"]}}])
    cluster.kubectl("delete", "namespace", "chart-later", "--wait=false")
    until("its binding is gone", lambda: bound(cluster) == {SERVED[0], namespace})
    release("upgrade", **served)
    cluster.kubectl(
        "patch", "configmap", "held", "-n=chart-later", "--type=merge", '--patch={"metadata":{"finalizers":null}}'
    )
    cluster.kubectl("wait", "namespace/chart-later", "--for=delete", "--timeout=60s")
    assert "chart-later does not exist now" in release("upgrade", **served)
    release("uninstall")


def test_what_the_notes_tell_to_apply_is_accepted(
    cluster: Cluster, namespace: str, release: Callable[..., str]
) -> None:
    assert namespace
    notes = release("install", "--dry-run=client", namespaces=SERVED).partition("NOTES:")[2]
    assert "serves chart-a, chart-b." in notes
    told = [document for text in re.findall(r"<<EOF\n(.*?)\nEOF\n", notes, re.DOTALL) for document in documents(text)]
    assert [(one["kind"], one["metadata"]["namespace"]) for one in told] == [
        ("DispatchBackend", "chart-a"),
        ("DispatchStart", "chart-a"),
    ]
    kubectl_apply(cluster, told, "--dry-run=server", "--validate=strict")


def owned(cluster: Cluster, kinds: str, *arguments: str) -> list[Object]:
    """Return the objects of the release."""
    # What Kubernetes' own roles are given is not the operator's.
    own = "!rbac.authorization.k8s.io/aggregate-to-view,!rbac.authorization.k8s.io/aggregate-to-edit"
    own += ",!rbac.authorization.k8s.io/aggregate-to-admin"
    label = f"--selector=app.kubernetes.io/instance=tried,{own}"
    found: list[Object] = json.loads(cluster.kubectl("get", kinds, label, *arguments, "--output=json"))["items"]
    return found


def bound(cluster: Cluster) -> set[str]:
    """Return the namespaces in which the release binds rights: those that it serves, and its own."""
    return {binding["metadata"]["namespace"] for binding in owned(cluster, "rolebindings", "-A")}


def resources(cluster: Cluster) -> set[str]:
    """Return what the release may use in the whole cluster."""
    role = owned(cluster, "clusterroles")[0]
    return {resource for rule in role["rules"] for resource in rule["resources"]}


def running(cluster: Cluster, namespace: str) -> list[Object]:
    """Return the release's pods that are not on their way out."""
    pods = owned(cluster, "pods", f"--namespace={namespace}")
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and not is_of_test(pod)]


def is_of_test(pod: Object) -> bool:
    return bool(pod["metadata"]["annotations"].get("helm.sh/hook") == "test")
