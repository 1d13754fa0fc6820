"""The copy of the job's runtime, which a Start's TrainJob runs on (docs/contract.md, Copy the runtime)."""

from typing import Any

from dispatch_operator.api.group import ANNOTATION_SOURCE, LABEL_FRAMEWORK, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.records.trainer import TrainingRuntime
from dispatch_operator.render.identity import Identity

PLAIN = "plain"
"""The framework of a runtime without a policy."""


def runtime_copy(identity: Identity, runtime: TrainingRuntime) -> dict[str, Any]:
    """Return the body of the create: the source's spec verbatim, and of its metadata the framework's label alone."""
    metadata = identity.metadata()
    metadata["labels"][LABEL_FRAMEWORK] = framework(runtime)
    metadata["annotations"][ANNOTATION_SOURCE] = source(runtime)
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": str(Kind.TRAINING_RUNTIME),
        "metadata": metadata,
        "spec": runtime.spec,
    }


def framework(runtime: TrainingRuntime) -> str:
    """Return a runtime's framework as the Kubeflow SDK reads it: its own label, or else its policy's name."""
    policy = (runtime.spec or {}).get("mlPolicy") or {}
    stated = [name for name, value in policy.items() if name != "numNodes" and value is not None]
    return runtime.metadata.labels.framework or next(iter(stated), PLAIN)


def source(runtime: TrainingRuntime) -> str:
    """Return ``<kind>/<name> <uid> <generation>`` of a runtime, without what a file lacks."""
    meta = runtime.metadata
    parts = [meta.uid, str(meta.generation) if meta.generation else ""]
    return " ".join([f"{runtime.KIND}/{meta.name}", *(part for part in parts if part)])
