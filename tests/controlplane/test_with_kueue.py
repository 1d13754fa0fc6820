"""Kueue is part of a cluster when asked for, and admits TrainJobs."""

import json
from typing import Any

from controlplane import Cluster
from support.waiting import until

NAMESPACE = "queued"

QUEUES: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}},
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "everything"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "10"}]}],
                }
            ],
        },
    },
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "queue", "namespace": NAMESPACE},
        "spec": {"clusterQueue": "everything"},
    },
    {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "runtime", "namespace": NAMESPACE},
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                                "spec": {
                                    "template": {
                                        "spec": {
                                            "containers": [
                                                {
                                                    "name": "node",
                                                    "image": "example/image",
                                                    "resources": {"requests": {"cpu": "1"}},
                                                }
                                            ]
                                        }
                                    }
                                },
                            },
                        }
                    ]
                }
            },
        },
    },
]

TRAIN_JOB: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "job", "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
    "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "runtime"}},
}


def test_a_queued_train_job_is_admitted_and_completes(kueue_cluster: Cluster) -> None:
    kueue_cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": QUEUES}))
    create_when_runtime_is_seen(kueue_cluster)
    kueue_cluster.kubectl(
        "wait", "trainjob/job", f"--namespace={NAMESPACE}", "--for=condition=Complete", "--timeout=60s"
    )
    newer = json.loads(kueue_cluster.kubectl("get", "workloads.v1beta2.kueue.x-k8s.io", "-n", NAMESPACE, "-o", "json"))[
        "items"
    ]
    assert newer[0]["status"]["admission"]["clusterQueue"] == "everything"
    # Kueue itself converts between its versions: what has another name in the old one arrives under it.
    older = kueue_cluster.kubectl("get", "localqueues.v1beta1.kueue.x-k8s.io", "-n", NAMESPACE, "-o", "json")
    assert "flavorUsage" in json.loads(older)["items"][0]["status"]


def create_when_runtime_is_seen(cluster: Cluster) -> None:
    """Create the TrainJob as soon as the webhooks' caches have seen its runtime."""

    def created() -> bool:
        try:
            cluster.kubectl("create", "-f", "-", input=json.dumps(TRAIN_JOB))
        except RuntimeError:
            return False
        return True

    until("the TrainJob is accepted", created, seconds=30)
