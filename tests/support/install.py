"""The chart on a cluster, for an operator that runs here as the chart's account."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from controlplane import Cluster
from controlplane.administrator import RequestError
from controlplane.kubectl import KubectlError
from support.chart import RELEASE, Object, of_kind, render
from support.waiting import until


def install_chart(
    cluster: Cluster,
    namespace: str,
    namespaces: Sequence[str] = (),
    *,
    release: str = RELEASE,
    absent: Sequence[str] = (),
) -> Path:
    """Install all of the chart but its Deployment, and return a kubeconfig with a token of its ServiceAccount.

    It may be called again, with other namespaces too; those that are missing are created.

    Args:
        cluster: Where to.
        namespace: The release's own, in which the account is.
        namespaces: The namespaces to serve: the chart's value of that name, empty for the whole cluster.
        release: The release's name, and the account's.
        absent: Those of the namespaces to serve that are not created.
    """
    present = [one for one in namespaces if one not in absent]
    for name in {namespace, *present}:
        ensure_namespace(cluster, name)
    objects = render(namespace=namespace, release=release, values={"namespaces": list(namespaces)})
    apply(
        cluster,
        (one for one in objects if one["kind"] != "Deployment" and one["metadata"].get("namespace") not in absent),
    )
    (account,) = of_kind(objects, "ServiceAccount")
    name = account["metadata"]["name"]
    # The API server sees a new binding a moment after it is written.
    user = f"system:serviceaccount:{namespace}:{name}"
    places = [f"--namespace={served}" for served in present] or ["--all-namespaces"]
    until(f"{user} has its rights", lambda: all(_may_work(cluster, user, place) for place in places))
    return cluster.kubeconfig_for(namespace, name)


def ensure_namespace(cluster: Cluster, name: str) -> None:
    """Create a namespace unless it exists."""
    apply(cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])


def apply(cluster: Cluster, objects: Iterable[Object]) -> None:
    """Apply objects, server-side, as the administrator.

    Raises:
        KubectlError: One is refused, which is told as `kubectl apply` tells it.
    """
    wanted = list(objects)
    try:
        for obj in wanted:
            cluster.apply(obj)
    except RequestError:
        kubectl_apply(cluster, wanted)


def kubectl_apply(cluster: Cluster, objects: Iterable[Object], *arguments: str) -> str:
    """Apply objects by kubectl, server-side, as the administrator, and return what it printed.

    Raises:
        KubectlError: One is refused.
    """
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return cluster.kubectl("apply", "--server-side", *arguments, "--filename=-", input=body)


def _may_work(cluster: Cluster, user: str, place: str) -> bool:
    return _may(cluster, user, "list", "clustertrainingruntimes") and _may(cluster, user, "list", "pods", place)


def _may(cluster: Cluster, user: str, *right: str) -> bool:
    try:
        cluster.kubectl("auth", "can-i", *right, f"--as={user}", "--quiet")
    except KubectlError as error:
        if error.status == 1:
            return False
        raise
    return True
