"""What earlier Starts have left, and errors after which nothing has happened."""

from typing import Any

from dispatch_operator.kube.errors import ApiError, Effect
from support.builders import NAME, NAMESPACE, make_runtime
from support.fake_api import FakeApi, refusal

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"


def copy_of(api: FakeApi, **metadata: Any) -> Object:
    """Return a leftover copy as an earlier Start of ours would have made it."""
    start = api.one("DispatchStart")["metadata"]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": COPY,
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "annotations": {
                "dispatch.phpboyscout.uk/start": start["name"],
                "dispatch.phpboyscout.uk/start-uid": start["uid"],
            },
            **metadata,
        },
        "spec": make_runtime()["spec"],
    }


def of_another(name: str = "other", uid: str = "other-uid") -> dict[str, Any]:
    return {
        "annotations": {"dispatch.phpboyscout.uk/start": name, "dispatch.phpboyscout.uk/start-uid": uid},
        "labels": {"app.kubernetes.io/managed-by": "dispatch-operator"},
    }


NOTHING_HAPPENED = (
    refusal("create", "x", 401, "Unauthorized", "Unauthorized"),
    refusal("create", "x", 403, "Forbidden", 'User "u" cannot create resource "trainjobs" in API group "g"'),
    refusal("create", "x", 409, "Conflict", "try again"),
    refusal("create", "x", 429, "TooManyRequests", "slow down"),
    refusal("create", "x", 500, "InternalError", 'failed calling webhook "x": connection refused'),
    ApiError("create", "x", Effect.NOTHING_HAPPENED, "connection refused"),
)
