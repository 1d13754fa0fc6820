"""Runtimes of every shape that passes: a job of each runs to its end on the real control plane."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.builders import make_backend, make_runtime, make_start
from support.install import apply

from .conftest import TIMEOUTS, Team

Object = dict[str, Any]
pytestmark = pytest.mark.usefixtures("operator")
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
SHIPPED = sorted((Path(__file__).parents[2] / "deploy" / "runtimes").glob("*.yaml"))


def _initializer(step: str) -> Object:
    container = {"name": step, "image": "registry.example/initializer:1"}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"metadata": {"labels": {STEP: step}}, "spec": {"backoffLimit": 0, "template": pod}}
    return {"name": step, "replicas": 1, "template": job}


def _with_steps_before(name: str, *steps: str) -> Object:
    """Return a runtime whose trainer waits for other jobs, as Trainer's torchtune runtimes do."""
    runtime = make_runtime(name)
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["dependsOn"] = [{"name": step, "status": "Complete"} for step in steps]
    jobs[:0] = [_initializer(step) for step in steps]
    return runtime


def _with_a_sidecar(name: str) -> Object:
    """Return a runtime whose trainer has a sidecar of the pod's own kind, and one that is a container."""
    runtime = make_runtime(name)
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = node["template"]["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "proxy", "image": "registry.example/proxy:1", "restartPolicy": "Always"}]
    pod["containers"].append({"name": "metrics", "image": "registry.example/metrics:1"})
    return runtime


def _with_a_helper_job(name: str) -> Object:
    """Return a runtime with a second job beside the trainer's, whose end does not decide."""
    runtime = make_runtime(name)
    template = runtime["spec"]["template"]["spec"]
    helper = deepcopy(template["replicatedJobs"][0])
    helper["name"] = "evaluator"
    del helper["template"]["metadata"]
    template["replicatedJobs"].append(helper)
    template["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["node"]}
    return runtime


def _shapes() -> list[Object]:
    return [
        *(yaml.safe_load(file.read_text()) for file in SHIPPED if file.stem != "torch-dispatch"),
        make_runtime(),
        _with_steps_before("one-initializer", "dataset-initializer"),
        _with_steps_before("two-initializers", "dataset-initializer", "model-initializer"),
        _with_a_sidecar("sidecars"),
        _with_a_helper_job("helper-job"),
    ]


def test_a_job_on_a_runtime_of_each_shape_runs_to_its_end(team: Team) -> None:
    shapes = _shapes()
    apply(team.cluster, shapes)
    names = [shape["metadata"]["name"] for shape in shapes]
    team.apply(make_backend(timeouts=TIMEOUTS, runtimes=[{"name": name} for name in names]))
    starts = [make_start(name, gate="Open", submission=number, nodes=2) for number, name in enumerate(names, 1)]
    for start, name in zip(starts, names, strict=True):
        start["spec"]["request"]["spec"]["extensions"]["kubeflow/RuntimeRef"] = {"name": name}
    team.apply(*starts)
    for name in names:
        done = team.until_phase(name, "Succeeded", "Failed", "Refused")["status"]
        assert (name, done["phase"]) == (name, "Succeeded"), done
