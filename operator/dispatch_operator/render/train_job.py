"""The TrainJob that a Start creates (docs/contract.md, Request fields)."""

from collections.abc import Mapping
from typing import Any

from dispatch_operator.api import duration
from dispatch_operator.api.group import (
    ANNOTATION_BACKEND,
    ANNOTATION_GATED_BY,
    LABEL_PRIORITY_CLASS,
    LABEL_QUEUE,
    START_GATE,
    TRAINER_API_VERSION,
    TRAINER_GROUP,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import JobSpec
from dispatch_operator.render.environment import environment
from dispatch_operator.render.escaping import escape_dollars
from dispatch_operator.render.identity import Identity
from dispatch_operator.render.prologue import ARGV0, prologue
from dispatch_operator.render.runtime_patch import runtime_patch
from dispatch_operator.render.terms import BackendTerms


def train_job(identity: Identity, image: str, terms: BackendTerms, runtime_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the create, for a request and a runtime without problems.

    No explicit zero value stands in it: Kueue's later update would drop it, Trainer's immutability rule would refuse
    that update, and the job would hold its quota and never start.
    """
    references = identity.owner_references()
    return {
        "apiVersion": TRAINER_API_VERSION,
        "kind": str(Kind.TRAIN_JOB),
        "metadata": {**_metadata(identity, terms), **({"ownerReferences": references} if references else {})},
        "spec": {
            "runtimeRef": {
                "apiGroup": TRAINER_GROUP,
                "kind": str(Kind.TRAINING_RUNTIME),
                "name": identity.name,
            },
            "trainer": _trainer(identity, image, terms),
            "runtimePatches": [runtime_patch(identity, runtime_spec)],
            **_deadline(identity.request.spec),
            **({} if terms.queue else {"suspend": True}),
        },
    }


def _metadata(identity: Identity, terms: BackendTerms) -> dict[str, Any]:
    """Return the metadata with what was taken from the backend and, in Kueue mode, Kueue's queue and gate."""
    metadata = identity.metadata()
    metadata["annotations"][ANNOTATION_BACKEND] = terms.annotation()
    if terms.queue:
        metadata["labels"][LABEL_QUEUE] = terms.queue
        metadata["annotations"][ANNOTATION_GATED_BY] = START_GATE
    if terms.priority_class:
        metadata["labels"][LABEL_PRIORITY_CLASS] = terms.priority_class
    return metadata


def _trainer(identity: Identity, image: str, terms: BackendTerms) -> dict[str, Any]:
    spec = identity.request.spec
    trainer: dict[str, Any] = {
        "image": image,
        "numNodes": spec.nodes,
        "command": ["/bin/sh", "-c", prologue(), ARGV0, *(escape_dollars(item) for item in spec.command)],
        "env": environment(identity.request),
    }
    if spec.procs_per_node:
        trainer["numProcPerNode"] = spec.procs_per_node
    if spec.gpus_per_node:
        trainer["resourcesPerNode"] = {"limits": {terms.gpu_resource: spec.gpus_per_node}}
    return trainer


def _deadline(spec: JobSpec) -> dict[str, Any]:
    seconds = duration.whole_seconds(spec.time_limit) if spec.time_limit else 0
    return {"activeDeadlineSeconds": seconds} if seconds else {}
