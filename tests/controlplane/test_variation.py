"""A control plane is made to lack what an operator counts on, and really lacks it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import Cluster, running
from controlplane.variation import merged
from support.by_hand import create_by_hand
from support.install import apply, ensure_namespace
from support.kueue import (
    GATED_BY,
    activate,
    checks_of,
    condition_of,
    make_check,
    make_cluster_queue,
    make_flavor,
    make_local_queue,
    until_active,
    workload_of,
)
from support.waiting import until

Object = dict[str, Any]
CASE = "kueue-everything"
PLAIN = {"labels": {"kueue.x-k8s.io/queue-name": None}, "annotations": {GATED_BY: None}, "suspend": True}


def without_deadline(crd: Object) -> None:
    """Take `activeDeadlineSeconds` out of TrainJob's schema, as an older Trainer's is."""
    if crd["spec"]["names"]["kind"] == "TrainJob":
        for version in crd["spec"]["versions"]:
            del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["activeDeadlineSeconds"]


@pytest.fixture(scope="module")
def lacking() -> Iterator[Cluster]:
    """A cluster that lacks much: each of the tests looks at one thing."""
    with running(
        kueue=True,
        kueue_feature_gates={"AdmissionGatedBy": False},
        kueue_config={"manageJobsWithoutQueueName": True},
        garbage_collection=False,
        alter_crds=without_deadline,
    ) as cluster:
        apply(
            cluster,
            [make_flavor(), make_check(CASE), make_cluster_queue(CASE, checks=[CASE], quota={"amd.com/gpu": "32"})],
        )
        activate(cluster, CASE)
        until_active(cluster, CASE)
        yield cluster


@pytest.mark.cluster
def test_kueue_does_not_know_the_gate(lacking: Cluster) -> None:
    ensure_namespace(lacking, "gate")
    apply(lacking, [make_local_queue("team-a", "gate", CASE)])
    name = create_by_hand(lacking, "gate", CASE)
    reserved = until("quota is reserved", lambda: with_quota(lacking, "gate", name))
    assert GATED_BY not in reserved["metadata"].get("annotations", {})
    assert checks_of(reserved) == {CASE: "Pending"}
    assert GATED_BY in get(lacking, "gate", "trainjob", name)["metadata"]["annotations"]


@pytest.mark.cluster
def test_kueue_manages_jobs_without_a_queue(lacking: Cluster) -> None:
    ensure_namespace(lacking, "unasked")
    name = create_by_hand(lacking, "unasked", CASE, outcome="run-forever", **PLAIN)
    until("a Workload that can't be admitted", lambda: workload_of(lacking, "unasked", name))
    lacking.kubectl(
        "patch", "trainjob", name, "--namespace=unasked", "--type=merge", '--patch={"spec":{"suspend":false}}'
    )
    until("Kueue suspends it again", lambda: get(lacking, "unasked", "trainjob", name)["spec"]["suspend"] is True)


@pytest.mark.cluster
def test_a_field_is_not_served(lacking: Cluster) -> None:
    ensure_namespace(lacking, "pruned")
    name = create_by_hand(lacking, "pruned", CASE, **PLAIN)
    assert "activeDeadlineSeconds" not in get(lacking, "pruned", "trainjob", name)["spec"]


@pytest.mark.cluster
def test_nothing_is_collected(lacking: Cluster) -> None:
    ensure_namespace(lacking, "left")
    maps: list[Object] = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "left"}}]
    apply(lacking, maps)
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": get(lacking, "left", "cm", "owner")["metadata"]["uid"],
    }
    apply(lacking, [{**maps[0], "metadata": {"name": "owned", "namespace": "left", "ownerReferences": [owner]}}])
    lacking.kubectl("delete", "configmap", "owner", "--namespace=left")
    # The collector, where it runs, needs no second; that it does not run its own log tells at once.
    log = (lacking.logs / "kube-controller-manager.log").read_text()
    assert '"Warning: controller is disabled" controller="garbage-collector-controller"' in log
    assert get(lacking, "left", "configmap", "owned")["metadata"]["ownerReferences"] == [owner]


@pytest.mark.cluster
def test_kueue_leaves_train_jobs_alone() -> None:
    frameworks = ["batch/job", "jobset.x-k8s.io/jobset"]
    with running(kueue=True, kueue_config={"integrations": {"frameworks": frameworks}}) as cluster:
        ensure_namespace(cluster, "ungated")
        name = create_by_hand(cluster, "ungated", CASE)
        until("it runs to its end", lambda: condition_of(get(cluster, "ungated", "trainjob", name), "Complete"))
        assert workload_of(cluster, "ungated", name) is None


def test_a_configuration_is_merged_key_by_key() -> None:
    base = {"a": {"b": 1, "c": 2}, "list": [1, 2]}
    assert merged(base, {"a": {"c": 3}, "list": [4]}) == {"a": {"b": 1, "c": 3}, "list": [4]}
    assert base == {"a": {"b": 1, "c": 2}, "list": [1, 2]}


def with_quota(cluster: Cluster, namespace: str, name: str) -> Object | None:
    workload = workload_of(cluster, namespace, name)
    return workload if condition_of(workload, "QuotaReserved").get("status") == "True" else None


def get(cluster: Cluster, namespace: str, kind: str, name: str) -> Object:
    found: Object = json.loads(cluster.kubectl("get", kind, name, f"--namespace={namespace}", "--output=json"))
    return found
