"""Objects as they stand, read as `kubectl get` shows them."""

from typing import Any

from controlplane import Cluster
from dispatch_operator.api.kinds import RESOURCES

Object = dict[str, Any]
PATHS = {resource.plural: resource.path().rpartition("/")[0] for resource in RESOURCES.values()} | {
    "configmaps": "/api/v1",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "leases": "/apis/coordination.k8s.io/v1",
    "resourcequotas": "/api/v1",
}


def read(cluster: Cluster, namespace: str | None, kind: str, name: str) -> Object:
    """Return one object.

    Args:
        cluster: Where to read.
        namespace: None for an object of the whole cluster.
        kind: Its resource: the plural, or as a person says it for one.
        name: Its name.

    Raises:
        RequestError: It does not exist.
    """
    return _shown(cluster.get(path_of(namespace, kind, name)))


def read_all(cluster: Cluster, namespace: str | None, kind: str) -> list[Object]:
    """Return all objects of a kind."""
    found = cluster.get(_path(namespace, kind))
    told = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
    return [_shown({**told, **item}) for item in found["items"]]


def path_of(namespace: str | None, kind: str, name: str) -> str:
    """Return the path of one object."""
    return f"{_path(namespace, kind)}/{name}"


def _path(namespace: str | None, kind: str) -> str:
    plural = {"dstart": "dispatchstarts", "dbackend": "dispatchbackends"}.get(kind, kind)
    plural = plural if plural in PATHS else f"{plural}s"
    return PATHS[plural] + (f"/namespaces/{namespace}" if namespace else "") + f"/{plural}"


def _shown(obj: Object) -> Object:
    # Whoever wants managedFields asks kubectl for them.
    obj["metadata"].pop("managedFields", None)
    return obj
