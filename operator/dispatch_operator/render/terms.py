"""What a TrainJob takes from its DispatchBackend, as the TrainJob itself bears it.

A backend may be edited while a Start goes on: what was written is known from the cluster, not from today's backend
(docs/contract.md, Names, labels and annotations).
"""

import json
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.models import Backend


@dataclass(frozen=True, slots=True)
class BackendTerms:
    """The backend's part of a TrainJob: who it was, the GPU resource, and in Kueue mode queue, check and priority."""

    name: str
    uid: str | None
    generation: int | None
    gpu_resource: str
    queue: str | None = None
    """None in plain mode."""
    admission_check: str | None = None
    priority_class: str | None = None

    def annotation(self) -> str:
        """Return the value of the annotation `backend`: compact JSON with sorted keys, without what is absent."""
        told = {key: value for key, value in self._as_json().items() if value is not None}
        return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def _as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "uid": self.uid,
            "generation": self.generation,
            "gpuResource": self.gpu_resource,
            "queue": self.queue,
            "admissionCheck": self.admission_check,
            "priorityClass": self.priority_class,
        }


def terms_of(backend: Backend) -> BackendTerms:
    """Return what a TrainJob takes from a backend as it is now."""
    kueue, meta = backend.spec.kueue, backend.metadata
    return BackendTerms(
        name=meta.name,
        uid=meta.uid,
        generation=meta.generation,
        gpu_resource=backend.spec.gpu_resource,
        queue=kueue.queue if kueue else None,
        admission_check=kueue.admission_check if kueue else None,
        priority_class=kueue.priority_class if kueue else None,
    )


def read_terms(annotation: object) -> BackendTerms | None:
    """Read the annotation of a TrainJob; None when there is none, or when it is not what the operator writes."""
    try:
        told = json.loads(annotation) if isinstance(annotation, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    words = {key: told.get(key) for key in ("name", "uid", "gpuResource", "queue", "admissionCheck", "priorityClass")}
    generation = told.get("generation")
    if not all(isinstance(word, str | None) for word in words.values()) or not isinstance(generation, int | None):
        return None
    if not words["name"] or not words["gpuResource"]:
        return None
    return BackendTerms(
        name=words["name"],
        uid=words["uid"],
        generation=generation,
        gpu_resource=words["gpuResource"],
        queue=words["queue"],
        admission_check=words["admissionCheck"],
        priority_class=words["priorityClass"],
    )
