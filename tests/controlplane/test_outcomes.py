"""The simulated pods end as their annotations say, and the TrainJobs with them: on the real control plane."""

import json
import time
from typing import Any

import pytest

from controlplane import Cluster
from support.waiting import until

SECONDS = 60
Pod = dict[str, Any]

ANNOTATIONS: dict[str, dict[str, str]] = {
    "succeed": {},
    "fail": {"outcome": "fail", "exit-code": "3"},
    "refuse": {"outcome": "fail", "exit-code": "125", "message": 'no such "folder"'},
    "oom": {"outcome": "oom"},
    "evicted": {"outcome": "evicted"},
    "image-pull": {"outcome": "image-pull"},
    "run-forever": {"outcome": "run-forever"},
    "late": {"delay": "3s"},
    "deleted": {"outcome": "run-forever"},
}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> str:
    """A namespace with one TrainJob for each row of ANNOTATIONS, named by it."""
    name = "outcomes"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("apply", "-f", "-", input=as_list([make_runtime(name, row) for row in ANNOTATIONS]))
    train_jobs = as_list([make_train_job(name, row) for row in ANNOTATIONS])
    # Trainer's webhook may not have seen the runtimes yet.
    until("the TrainJobs are accepted", lambda: accepted(cluster, train_jobs))
    return name


def test_a_job_succeeds_by_default(cluster: Cluster, namespace: str) -> None:
    await_condition(cluster, namespace, "succeed", "Complete")
    assert terminated(cluster, namespace, "succeed") == {"exitCode": 0, "reason": "Completed"}


def test_a_job_fails_with_the_chosen_exit_code(cluster: Cluster, namespace: str) -> None:
    await_condition(cluster, namespace, "fail", "Failed")
    assert terminated(cluster, namespace, "fail") == {"exitCode": 3, "reason": "Error"}


def test_a_refusal_leaves_its_termination_message(cluster: Cluster, namespace: str) -> None:
    await_condition(cluster, namespace, "refuse", "Failed")
    want = {"exitCode": 125, "reason": "Error", "message": 'no such "folder"'}
    assert terminated(cluster, namespace, "refuse") == want


def test_a_job_runs_out_of_memory(cluster: Cluster, namespace: str) -> None:
    await_condition(cluster, namespace, "oom", "Failed")
    assert terminated(cluster, namespace, "oom") == {"exitCode": 137, "reason": "OOMKilled"}


def test_a_pod_is_evicted(cluster: Cluster, namespace: str) -> None:
    await_condition(cluster, namespace, "evicted", "Failed")
    status = pod(cluster, namespace, "evicted")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")


def test_an_image_cannot_be_pulled_until_the_annotation_goes(cluster: Cluster, namespace: str) -> None:
    until("the pod waits for its image", lambda: waiting(cluster, namespace, "image-pull") == "ImagePullBackOff")
    assert phase(cluster, namespace, "image-pull") == "Pending"
    release(cluster, namespace, "image-pull")
    await_condition(cluster, namespace, "image-pull", "Complete")


def test_a_job_runs_until_the_annotation_goes(cluster: Cluster, namespace: str) -> None:
    until("the pod runs", lambda: phase(cluster, namespace, "run-forever") == "Running")
    release(cluster, namespace, "run-forever")
    await_condition(cluster, namespace, "run-forever", "Complete")


def test_a_delay_makes_a_job_end_later(cluster: Cluster, namespace: str) -> None:
    await_condition(cluster, namespace, "late", "Complete")
    state = pod(cluster, namespace, "late")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert seconds(state["finishedAt"]) - seconds(state["startedAt"]) >= 3


def test_deleting_a_job_deletes_what_it_owns(cluster: Cluster, namespace: str) -> None:
    until("the pod runs", lambda: phase(cluster, namespace, "deleted") == "Running")
    cluster.kubectl("delete", "trainjob", "deleted", f"--namespace={namespace}")
    until("the pod is gone", lambda: not pod(cluster, namespace, "deleted"))


def test_the_audit_log_tells_who_asked_for_what(cluster: Cluster, namespace: str) -> None:
    created = [
        request.name
        for request in cluster.requests("admin")
        if (request.verb, request.resource, request.namespace) == ("create", "trainjobs", namespace)
        and request.code == 201
    ]
    assert set(ANNOTATIONS) <= set(created)


def test_a_service_account_has_a_kubeconfig(cluster: Cluster, namespace: str) -> None:
    kubeconfig = cluster.kubeconfig_for(namespace, "default")
    username = cluster.kubectl(
        f"--kubeconfig={kubeconfig}", "auth", "whoami", "-o=jsonpath={.status.userInfo.username}"
    )
    assert username == f"system:serviceaccount:{namespace}:default"


def make_runtime(namespace: str, name: str) -> dict[str, Any]:
    """A torch runtime whose pods end as the row `name` of ANNOTATIONS says."""
    annotations = {f"test.kwok.x-k8s.io/{key}": value for key, value in ANNOTATIONS[name].items()}
    pod_template = {
        "metadata": {"annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [
                {"name": "prepare", "image": "example/image"},
                {"name": "sidecar", "image": "example/image", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "node", "image": "example/image"}],
        },
    }
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"backoffLimit": 0, "template": pod_template},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
        },
    }


def make_train_job(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": name}},
    }


def as_list(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def accepted(cluster: Cluster, train_jobs: str) -> bool:
    try:
        cluster.kubectl("apply", "-f", "-", input=train_jobs)
    except RuntimeError as error:
        if "must be created before the TrainJob is created" not in str(error):
            raise
        return False
    return True


def await_condition(cluster: Cluster, namespace: str, name: str, condition: str) -> None:
    wait = ("wait", f"trainjob/{name}", f"--for=condition={condition}", f"--timeout={SECONDS}s")
    cluster.kubectl(*wait, f"--namespace={namespace}")


def pod(cluster: Cluster, namespace: str, name: str) -> Pod:
    """The pod of a TrainJob; empty when there is none."""
    selector = f"--selector=jobset.sigs.k8s.io/jobset-name={name}"
    answer = json.loads(cluster.kubectl("get", "pods", f"--namespace={namespace}", selector, "--output=json"))
    pods: list[Pod] = answer["items"]
    return pods[0] if pods else {}


def phase(cluster: Cluster, namespace: str, name: str) -> str:
    return str(pod(cluster, namespace, name).get("status", {}).get("phase"))


def terminated(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    state = pod(cluster, namespace, name)["status"]["containerStatuses"][0]["state"]["terminated"]
    return {key: value for key, value in state.items() if key not in {"startedAt", "finishedAt"}}


def waiting(cluster: Cluster, namespace: str, name: str) -> str:
    statuses = pod(cluster, namespace, name).get("status", {}).get("containerStatuses", [])
    return str(statuses[0]["state"].get("waiting", {}).get("reason")) if statuses else ""


def release(cluster: Cluster, namespace: str, name: str) -> None:
    pod_name = pod(cluster, namespace, name)["metadata"]["name"]
    cluster.kubectl("annotate", "pod", pod_name, f"--namespace={namespace}", "test.kwok.x-k8s.io/outcome-")


def seconds(timestamp: str) -> float:
    return time.mktime(time.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ"))
