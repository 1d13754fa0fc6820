"""The copy of the job's runtime, which a Start's TrainJob runs on (contract section 4, step 5)."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dispatch_operator.render.identity import Identity
from dispatch_operator.vocabulary import ANNOTATION_SOURCE, TRAINER_API_VERSION, Kind


def runtime_copy(identity: Identity, runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the create: the source's spec verbatim, and none of its labels and annotations."""
    metadata = identity.metadata()
    metadata["annotations"][ANNOTATION_SOURCE] = source(runtime)
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": str(Kind.TRAINING_RUNTIME),
        "metadata": metadata,
        "spec": deepcopy(runtime["spec"]),
    }


def source(runtime: Mapping[str, Any]) -> str:
    """Return ``<kind>/<name> <uid> <generation>`` of a runtime, without what a file lacks."""
    metadata = runtime["metadata"]
    parts = [metadata.get("uid"), metadata.get("generation")]
    return " ".join([f"{runtime['kind']}/{metadata['name']}", *(str(part) for part in parts if part is not None)])
