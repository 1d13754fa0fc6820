"""The copy of the job's runtime, which a Start's TrainJob runs on (contract section 4, step 5)."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dispatch_operator.api.group import ANNOTATION_SOURCE, LABEL_FRAMEWORK, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.render.identity import Identity

PLAIN = "plain"
"""The framework of a runtime without a policy."""


def runtime_copy(identity: Identity, runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the create: the source's spec verbatim, and of its metadata the framework's label alone."""
    metadata = identity.metadata()
    metadata["labels"][LABEL_FRAMEWORK] = framework(runtime)
    metadata["annotations"][ANNOTATION_SOURCE] = source(runtime)
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": str(Kind.TRAINING_RUNTIME),
        "metadata": metadata,
        "spec": deepcopy(runtime["spec"]),
    }


def framework(runtime: Mapping[str, Any]) -> str:
    """Return a runtime's framework as the Kubeflow SDK reads it: its own label, or else its policy's name."""
    stated = (runtime["metadata"].get("labels") or {}).get(LABEL_FRAMEWORK)
    stated_policy = runtime["spec"].get("mlPolicy") or {}
    policies = [name for name, value in stated_policy.items() if name != "numNodes" and value is not None]
    return str(stated or next(iter(policies), PLAIN))


def source(runtime: Mapping[str, Any]) -> str:
    """Return ``<kind>/<name> <uid> <generation>`` of a runtime, without what a file lacks."""
    metadata = runtime["metadata"]
    parts = [metadata.get("uid"), metadata.get("generation")]
    return " ".join([f"{runtime['kind']}/{metadata['name']}", *(str(part) for part in parts if part is not None)])
