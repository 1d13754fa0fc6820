"""A control plane that lacks what a Start counts on: the backend says so, and nothing is created or left."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Cluster, running
from support.backends import unproven
from support.builders import make_backend, make_runtime
from support.install import apply, install_chart
from support.kueue import CHECK, make_check, make_cluster_queue, make_flavor, make_local_queue
from support.service import serving
from support.waiting import until

from .conftest import RELEASE_NAMESPACE, Team

Object = dict[str, Any]
CRDS = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
TIMEOUTS = {"hold": "100ms", "call": "5s", "workload": "5s"}
TRAIN_JOBS = "trainjobs.trainer.kubeflow.org"
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def lacking() -> Iterator[Cluster]:
    """A cluster without garbage collection, whose Kueue does not know start gates."""
    with running(
        kueue=True,
        kueue_feature_gates={"AdmissionGatedBy": False},
        garbage_collection=False,
        extra_manifests=CRDS,
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def account_there(lacking: Cluster) -> Path:
    kubeconfig = install_chart(lacking, RELEASE_NAMESPACE)
    apply(lacking, [make_runtime(), make_flavor(), make_check(), make_cluster_queue("everything", checks=[CHECK])])
    return kubeconfig


def observe_only(cluster: Cluster, account: Path, namespace: str, **spec: Any) -> dict[str, str]:
    """Let an operator reconcile a new backend, and return why which of its gates is not proven; nothing is left."""
    team = Team(cluster, namespace, make_backend(timeouts=TIMEOUTS, **spec))
    apply(cluster, [make_local_queue("team", namespace, "everything")])
    with serving(account, "--all-namespaces"):
        found = unproven(team.until_probed(proven=False)["status"])
    # What Trainer and JobSet made stays where nobody collects it; a pod of it, which no node takes, too.
    assert team.all("trainjobs") == team.all("trainingruntimes") == []
    assert all("nodeName" not in pod["spec"] for pod in team.all("pods"))
    return found


def test_nothing_is_collected(lacking: Cluster, account_there: Path) -> None:
    found = observe_only(lacking, account_there, "uncollected")
    assert found.keys() == {"collected"}
    assert "was still there 5s after its TrainJob was deleted" in found["collected"]
    assert "garbage collector" in found["collected"]


def test_kueue_does_not_know_the_gate(lacking: Cluster, account_there: Path) -> None:
    found = observe_only(lacking, account_there, "ungated", kueue={"queue": "team", "admissionCheck": CHECK})
    assert found.keys() == {"start-gate", "collected"}
    assert "lacks the gate dispatch.phpboyscout.uk/start-gate" in found["start-gate"]
    assert "AdmissionGatedBy is off" in found["start-gate"]


@pytest.mark.parametrize("field", ["runtimePatches", "activeDeadlineSeconds"])
def test_trainer_does_not_serve_a_field(lacking: Cluster, account_there: Path, field: str) -> None:
    crd = json.loads(lacking.kubectl("get", "crd", TRAIN_JOBS, "--output=json"))
    versions = [version["name"] for version in crd["spec"]["versions"]]
    path = f"/spec/versions/{versions.index('v1alpha1')}/schema/openAPIV3Schema/properties/spec/properties/{field}"
    held = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][field]
    _patch(lacking, [{"op": "remove", "path": path}])
    before = len(list(lacking.requests()))
    try:
        found = observe_only(lacking, account_there, f"lacks-{field.lower()}")
    finally:
        _patch(lacking, [{"op": "add", "path": path, "value": held}])
    assert f"TrainJob of trainer.kubeflow.org/v1alpha1 lacks the field spec.{field}" in found["fields-kept"]
    assert found.keys() == {"fields-kept", "start-gate", "collected"}
    created = [
        request
        for request in list(lacking.requests())[before:]
        if request.verb == "create" and request.resource in {"trainjobs", "trainingruntimes"}
    ]
    # Of this backend; those of the other tests are probed again when the CRD changes.
    assert [request for request in created if request.namespace == f"lacks-{field.lower()}"] == []


def _patch(cluster: Cluster, operations: list[Object]) -> None:
    """Change the CRD of TrainJobs, and wait until the API server says that it serves another."""
    before = _served(cluster)
    # By a file: the schema of a field is too long for a command line.
    arguments = ("patch", "crd", TRAIN_JOBS, "--type=json", "--patch-file=/dev/stdin")
    cluster.kubectl(*arguments, input=json.dumps(operations))
    until("it is served", lambda: _served(cluster) != before)


def _served(cluster: Cluster) -> Object:
    index: Object = json.loads(cluster.kubectl("get", "--raw", "/openapi/v3"))
    found: Object = index["paths"]["apis/trainer.kubeflow.org/v1alpha1"]
    return found


def test_a_crd_that_changes_is_noticed_by_a_restarted_operator(lacking: Cluster, account_there: Path) -> None:
    team = Team(lacking, "noticed", make_backend(timeouts=TIMEOUTS))
    with serving(account_there, "--namespace", "noticed"):
        before = team.until_probed(proven=False)["status"]["proof"]["served"]
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/description"
    _patch(lacking, [{"op": "add", "path": path, "value": "another"}])
    with serving(account_there, "--namespace", "noticed"):
        until("the proof rests on it", lambda: _proof(team).get("served", before) != before)


def _proof(team: Team) -> Object:
    proof: Object = team.get("dbackend", "default")["status"].get("proof", {})
    return proof
