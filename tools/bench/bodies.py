"""What the bare client sends: the bodies of the operator's own requests, with another Start's names put into them."""

from typing import Any

from msgspec import json

from bench.fake.crowd import SEED, cloned
from bench.starts import load, make_start
from dispatch_operator.api import times
from dispatch_operator.api.enums import Condition
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models import read_backend
from dispatch_operator.reconcile.status import DONE
from dispatch_operator.records.reading import read_dispatch_start, read_record
from dispatch_operator.records.trainer import ClusterTrainingRuntime
from dispatch_operator.render import render_copy, render_train_job
from dispatch_operator.render.terms import terms_of

Object = dict[str, Any]
UID = "@uid@"
NOW = times.written(1_796_000_000.0)


class Bodies:
    """Bodies that were rendered once, before anything is measured."""

    def __init__(self) -> None:
        raw = make_start(SEED)
        raw["metadata"]["uid"] = UID
        start, runtime = (
            read_dispatch_start(raw),
            read_record(Kind.CLUSTER_TRAINING_RUNTIME, load("runtimes/torch-dispatch.yaml")),
        )
        if not isinstance(runtime, ClusterTrainingRuntime):
            raise TypeError(runtime)
        copy = render_copy(start, runtime)
        self._copy = json.encode({key: value for key, value in copy.items() if key != "spec"})
        self._train_job = json.encode(
            render_train_job(start, terms_of(read_backend(load("samples/backend.yaml"))), copy["spec"])
        )

    def copy(self, start: Object, runtime: Object) -> Object:
        """Return the copy of the runtime."""
        return {**_of(start, self._copy), "spec": runtime["spec"]}

    def train_job(self, start: Object) -> Object:
        """Return the TrainJob."""
        return _of(start, self._train_job)

    @staticmethod
    def owner(job: Object) -> Object:
        """Return the patch that makes the TrainJob the owner of its copy."""
        owner = {key: job["metadata"][key] for key in ("name", "uid")} | {"controller": False}
        return {"metadata": {"ownerReferences": [{"apiVersion": job["apiVersion"], "kind": job["kind"], **owner}]}}

    @staticmethod
    def status(start: Object, copy: Object, job: Object) -> Object:
        """Return the status of a Start that is whole, as long as the operator's."""
        meta = job["metadata"]
        steps = [
            *DONE.items(),
            (Condition.STARTED, ("Started", "the TrainJob exists behind its gate")),
            (Condition.READY, ("Started", "")),
        ]
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": NOW,
                "observedGeneration": 1,
            }
            for kind, (reason, message) in steps
        ]
        status = {
            "phase": "Gated",
            "observedGeneration": 1,
            "reference": {"name": f"{meta['namespace']}/{meta['name']}", "uid": meta["uid"]},
            "copy": {key: copy["metadata"][key] for key in ("name", "uid")},
            "conditions": conditions,
        }
        return {"metadata": {"resourceVersion": start["metadata"]["resourceVersion"]}, "status": status}


def train_job_on(runtime: str, number: int) -> Object:
    """Return a TrainJob as a person writes it: on a ClusterTrainingRuntime, suspended, with nothing of dispatch's."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": f"job-{number}"},
        "spec": {
            "runtimeRef": {"name": runtime},
            "suspend": True,
            "trainer": {"image": "registry.example/llama:1", "command": ["python", "train.py"], "numNodes": 2},
        },
    }


def _of(start: Object, body: bytes) -> Object:
    """Put a Start's names and its UID into a body."""
    meta = start["metadata"]
    made: Object = json.decode(
        cloned(body, int(meta["name"].rpartition("-")[2])).replace(UID.encode(), meta["uid"].encode())
    )
    made["metadata"]["namespace"] = meta["namespace"]
    return made
