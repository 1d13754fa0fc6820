"""The operator on the embedded control plane, as the account of its chart, in a namespace of each test's own."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Cluster
from controlplane.administrator import RequestError
from support.builders import make_backend, make_runtime
from support.install import apply, ensure_namespace, install_chart
from support.kueue import make_check, make_flavor
from support.reading import path_of, read, read_all
from support.service import Service, serving
from support.waiting import until

Object = dict[str, Any]
RELEASE_NAMESPACE = "dispatch-system"
USER = f"system:serviceaccount:{RELEASE_NAMESPACE}:dispatch-operator"
TIMEOUTS = {"hold": "100ms"}
"""What a backend's probe costs each test."""
FOREVER = "until-told"
"""A runtime whose pods run until an annotation of theirs goes."""
OUTCOME = "test.kwok.x-k8s.io/outcome"
_numbers = itertools.count(1)


class Team:
    """A namespace with a backend, and what a person does in it."""

    def __init__(self, cluster: Cluster, namespace: str, backend: Object | None = None) -> None:
        self.cluster = cluster
        self.namespace = namespace
        ensure_namespace(cluster, namespace)
        self.apply(backend or make_backend(timeouts=TIMEOUTS))

    def apply(self, *objects: Object) -> None:
        """Create or update objects in this namespace."""
        for obj in objects:
            obj["metadata"]["namespace"] = self.namespace
            obj.pop("status", None)
            obj["metadata"].pop("creationTimestamp", None)
        apply(self.cluster, objects)

    def create(self, obj: Object) -> None:
        """Create one object as JSON, byte for byte: server-side apply is read as YAML, which folds U+0085."""
        obj["metadata"]["namespace"] = self.namespace
        self.cluster.kubectl("create", "--filename=-", input=json.dumps(obj))

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in this namespace."""
        return self.cluster.kubectl("--namespace", self.namespace, *arguments)

    def get(self, kind: str, name: str) -> Object:
        """Return one object."""
        return read(self.cluster, self.namespace, kind, name)

    def all(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        return read_all(self.cluster, self.namespace, kind)

    def patch(self, kind: str, name: str, change: Object) -> None:
        """Merge-patch one object.

        Raises:
            KubectlError: It is refused, which is told as `kubectl patch` tells it.
        """
        try:
            self.cluster.merge(path_of(self.namespace, kind, name), change)
        except RequestError:
            self.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}")

    def set_gate(self, name: str, gate: str) -> None:
        """Write spec.gate."""
        self.patch("dispatchstart", name, {"spec": {"gate": gate}})

    def until_proven(self, account: Path) -> None:
        """Let an operator prove the backend, and stop it: what follows begins with a proven one."""
        with serving(account, "--namespace", self.namespace):
            self.kubectl("wait", "dispatchbackend/default", "--for=condition=Ready", "--timeout=60s")

    def allow_leases(self) -> None:
        """Let the operator's account use Leases in this namespace, as the chart does in its own."""
        name = "leases"
        rule = {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "create", "update"],
        }
        api_version = "rbac.authorization.k8s.io/v1"
        subject = {"kind": "ServiceAccount", "name": "dispatch-operator", "namespace": RELEASE_NAMESPACE}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        self.apply(
            {"apiVersion": api_version, "kind": "Role", "metadata": {"name": name}, "rules": [rule]},
            {
                "apiVersion": api_version,
                "kind": "RoleBinding",
                "metadata": {"name": name},
                "roleRef": reference,
                "subjects": [subject],
            },
        )

    def until_probed(self, name: str = "default", *, proven: bool = True, seconds: float = 60.0) -> Object:
        """Wait until a probe has come to a verdict on a backend as it is now, and return the backend."""
        last: list[Object] = []

        def reached() -> bool:
            last[:] = [self.get("dispatchbackend", name)]
            status, generation = last[0]["status"], last[0]["metadata"]["generation"]
            gates = status.get("gates", [])
            is_current = status.get("proof", {}).get("backendGeneration") == generation
            return bool(gates) and is_current and all(gate["proven"] for gate in gates) is proven

        what = f"DispatchBackend {name} is {'proven' if proven else 'observe-only'}"
        try:
            until(what, reached, seconds=seconds)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {json.dumps(last[0]['status'], indent=1)}") from error
        return last[0]

    def until_phase(self, name: str, *phases: str, seconds: float = 60.0) -> Object:
        """Wait until a DispatchStart is in one of the phases, and return it."""
        last: list[Object] = []

        def reached() -> Object | None:
            last[:] = [self.get("dispatchstart", name)]
            return last[0] if last[0]["status"].get("phase") in phases else None

        try:
            return until(f"{name} is {' or '.join(phases)}", reached, seconds=seconds)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {json.dumps(last[0]['status'], indent=1)}") from error

    def requests(self) -> list[str]:
        """Return the operator's requests in this namespace and for runtimes, Events and watches aside."""
        return [
            f"{request.verb} {request.resource}{'/' if request.subresource else ''}{request.subresource}"
            for request in self.cluster.requests(USER)
            if request.namespace == self.namespace and request.resource != "events" and request.name
        ]


@pytest.fixture(scope="session")
def account(cluster: Cluster) -> Path:
    """A kubeconfig with the token of the chart's ServiceAccount, for the whole cluster."""
    kubeconfig = install_chart(cluster, RELEASE_NAMESPACE)
    apply(cluster, [make_runtime()])
    return kubeconfig


@pytest.fixture(scope="session")
def kueue_account(kueue_cluster: Cluster) -> Path:
    """The same for the cluster with Kueue, and what a queued team needs there."""
    kubeconfig = install_chart(kueue_cluster, RELEASE_NAMESPACE)
    forever = make_runtime(FOREVER, pod_annotations={OUTCOME: "run-forever"})
    apply(kueue_cluster, [make_runtime(), forever, make_flavor(), make_check()])
    return kubeconfig


@pytest.fixture
def team(cluster: Cluster, account: Path) -> Team:
    """A namespace that no operator serves yet."""
    assert account.exists()
    return Team(cluster, f"team-{next(_numbers)}")


@pytest.fixture
def operator(team: Team, account: Path) -> Iterator[Service]:
    """An operator that serves the test's namespace."""
    with serving(account, "--namespace", team.namespace, "--verbose") as service:
        team.until_probed()
        yield service
