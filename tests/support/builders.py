"""Objects as the API server would return them, right in every way that a test does not change."""

from typing import Any

Object = dict[str, Any]

JOB = "01J9ZQ4V8Y3N5T7R2C6W1X0ABK"
NAME = "dj-01j9zq4v8y3n5t7r2c6w1x0abk-s1"
NAMESPACE = "team-a"
RUNTIME = "torch-dispatch"


def make_start(name: str = "llama-s1", *, gate: str = "Closed", retry: str = "OnChange", **request: Any) -> Object:
    """Return a DispatchStart; keywords replace fields of its request, or of the JobSpec in it."""
    job_spec: Object = {
        "command": ["python", "train.py"],
        "nodes": 1,
        "extensions": {"dispatch/Image": {"ref": "registry.example/llama:1"}, "kubeflow/RuntimeRef": {"name": RUNTIME}},
    }
    top = {"job": JOB, "generation": 0, "submission": 1, "attempt": 0}
    top |= {key: request.pop(key) for key in list(request) if key in top}
    return {
        "apiVersion": "dispatch.phpboyscout.uk/v1alpha1",
        "kind": "DispatchStart",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "backend": "default",
            "gate": gate,
            "retry": retry,
            "request": {**top, "spec": {**job_spec, **request}},
        },
        "status": {"observedGeneration": -1},
    }


def make_condition(kind: str, status: str = "True", reason: str | None = None, message: str = "") -> Object:
    """Return a condition of a DispatchStart or a DispatchBackend."""
    return {
        "type": kind,
        "status": status,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": reason or kind,
        "message": message,
    }


def make_backend(name: str = "default", **spec: Any) -> Object:
    """Return a DispatchBackend that takes everything, and whose gates are proven."""
    reference = {"kind": "ClusterTrainingRuntime", "name": RUNTIME}
    return {
        "apiVersion": "dispatch.phpboyscout.uk/v1alpha1",
        "kind": "DispatchBackend",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runtimes": [reference], "probeRuntime": reference, **spec},
        "status": {
            "observedGeneration": 1,
            "gates": [
                {"name": gate, "proven": True, "lastProbeTime": "2025-12-31T23:00:00Z"}
                for gate in ("fields-kept", "start-gate", "collected")
            ],
        },
    }


def make_runtime(name: str = RUNTIME, *, pod_annotations: dict[str, str] | None = None) -> Object:
    """Return a ClusterTrainingRuntime that passes every rule."""
    pod: Object = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "registry.example/base:1"}]},
    }
    if pod_annotations:
        pod["metadata"] = {"annotations": pod_annotations}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {
                "spec": {
                    "failurePolicy": {"maxRestarts": 3},
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "replicas": 1,
                            "template": {
                                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                                "spec": {"backoffLimit": 0, "template": pod},
                            },
                        },
                    ],
                },
            },
        },
    }
