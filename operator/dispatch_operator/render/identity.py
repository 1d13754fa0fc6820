"""Whose the objects of a Start are, and how everyone recognises them.

See docs/contract.md, Names, labels and annotations.
"""

from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.group import (
    ANNOTATION_COMMENT,
    ANNOTATION_START,
    ANNOTATION_START_UID,
    API_VERSION,
    LABEL_JOB,
    LABEL_MANAGED_BY,
    LABEL_PROBE,
    LABEL_SUBMISSION,
    MANAGED_BY,
)
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import StartRequest
from dispatch_operator.api.names import object_name


@dataclass(frozen=True, slots=True)
class Owner:
    """The object that a TrainJob is deleted with."""

    kind: Kind
    name: str
    uid: str | None
    """None for an object in a file that no cluster has stored."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Name, namespace, labels, annotations and owner of the copy and the TrainJob of one Start."""

    owner: Owner
    namespace: str | None
    """None when a file does not say."""
    request: StartRequest

    @property
    def name(self) -> str:
        """The name of both objects."""
        return object_name(self.request.job, self.request.submission)

    @property
    def is_probe(self) -> bool:
        """Whether it is a backend's probe, whose pods must not run anywhere."""
        return self.owner.kind is Kind.DISPATCH_BACKEND

    @property
    def comment(self) -> str:
        """The sentence by which a supervisor finds a submission in any kind of backend."""
        request = self.request
        return f"dispatch job={request.job} g={request.generation} n={request.submission} a={request.attempt}"

    def submission_labels(self) -> dict[str, str]:
        """Return the labels of everything that belongs to the submission, pods included."""
        return {LABEL_JOB: self.request.job, LABEL_SUBMISSION: str(self.request.submission)}

    def comment_annotation(self) -> dict[str, str]:
        """Return the annotation of everything that carries the comment."""
        return {ANNOTATION_COMMENT: self.comment}

    def metadata(self) -> dict[str, Any]:
        """Return the metadata that the copy and the TrainJob have in common."""
        uid = {} if self.owner.uid is None else {ANNOTATION_START_UID: self.owner.uid}
        probe = {LABEL_PROBE: "true"} if self.is_probe else {}
        return {
            "name": self.name,
            **({} if self.namespace is None else {"namespace": self.namespace}),
            "labels": {**self.submission_labels(), LABEL_MANAGED_BY: MANAGED_BY, **probe},
            "annotations": {**self.comment_annotation(), ANNOTATION_START: self.owner.name, **uid},
        }

    def owner_references(self) -> list[dict[str, Any]]:
        """Return the TrainJob's owner reference; none when the owner is in no cluster."""
        if self.owner.uid is None:
            return []
        return [
            {
                "apiVersion": API_VERSION,
                "kind": str(self.owner.kind),
                "name": self.owner.name,
                "uid": self.owner.uid,
                "controller": True,
            },
        ]
