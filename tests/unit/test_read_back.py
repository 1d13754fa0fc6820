"""What counts as stored as it was written, and how a difference is named."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.api.models import read_backend
from dispatch_operator.render.read_back import differences
from dispatch_operator.render.terms import terms_of
from support.builders import make_backend, make_runtime, make_start
from support.rendering import render_train_job

Object = dict[str, Any]
PATCH = "spec.runtimePatches[manager=dispatch.phpboyscout.uk/operator].trainingRuntimeSpec.template"
KUEUE = {"queue": "team-a", "admissionCheck": "dispatch-start"}


def written(*, kueue: bool = False) -> Object:
    start = make_start(gpusPerNode=1, timeLimit="60s", env={"A": "1", "B": "2"})
    start["metadata"]["uid"] = "uid-1"
    backend = read_backend(make_backend(**({"kueue": KUEUE} if kueue else {})))
    return render_train_job(start, terms_of(backend), make_runtime()["spec"])


def stored(change: Callable[[Object], object] = lambda _: None) -> Object:
    """Return what the cluster makes of it, with one change."""
    job = copy.deepcopy(written())
    job["metadata"] |= {
        "uid": "t",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
    }
    job["spec"]["managedBy"] = "trainer.kubeflow.org/trainjob-controller"
    job["spec"]["runtimePatches"][0]["time"] = "2026-01-01T00:00:00Z"
    job["spec"]["trainer"]["resourcesPerNode"]["limits"]["nvidia.com/gpu"] = "1"
    change(job)
    return job


def trainer(job: Object) -> Any:
    return job["spec"]["trainer"]


def patch(job: Object) -> Any:
    return job["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda _: None, id="what Trainer stamps on it"),
        pytest.param(lambda job: job["metadata"]["labels"].update(more="x"), id="another label"),
        pytest.param(lambda job: job["metadata"]["annotations"].update(more="x"), id="another annotation"),
        pytest.param(lambda job: job["metadata"]["ownerReferences"].insert(0, {"uid": "other"}), id="another owner"),
        pytest.param(lambda job: job["spec"].pop("managedBy"), id="no managedBy"),
        pytest.param(lambda job: job["spec"]["runtimePatches"].insert(0, {"manager": "kueue"}), id="another's patch"),
        pytest.param(
            lambda job: trainer(job)["resourcesPerNode"]["limits"].update({"nvidia.com/gpu": "1000m"}),
            id="a quantity in other words",
        ),
    ],
)
def test_is_equal_with(change: Callable[[Object], object]) -> None:
    assert differences(written(), stored(change), kueue=False) == ()


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (
            lambda job: job["metadata"]["labels"].pop("app.kubernetes.io/managed-by"),
            'metadata.labels[app.kubernetes.io/managed-by]: wrote "dispatch-operator", read nothing',
        ),
        (
            lambda job: job["metadata"]["annotations"].update({"dispatch.phpboyscout.uk/start": "x\ny"}),
            'metadata.annotations[dispatch.phpboyscout.uk/start]: wrote "llama-s1", read "x\\ny"',
        ),
        (
            lambda job: job["metadata"]["ownerReferences"][0].update(controller=False),
            "metadata.ownerReferences[0].controller: wrote true, read false",
        ),
        (
            lambda job: job["spec"]["runtimeRef"].update(kind="ClusterTrainingRuntime"),
            'spec.runtimeRef.kind: wrote "TrainingRuntime", read "ClusterTrainingRuntime"',
        ),
        (
            lambda job: trainer(job)["env"].insert(0, {"name": "EVIL", "value": "1"}),
            'spec.trainer.env[name=EVIL]: wrote nothing, read {"name": "EVIL", "value": "1"}',
        ),
        (
            lambda job: trainer(job)["env"].pop(1),
            'spec.trainer.env[name=B]: wrote {"name": "B", "value": "2"}, read nothing',
        ),
        (lambda job: trainer(job)["env"].append({"value": "x"}), None),
        (lambda job: trainer(job)["env"][0].update(value="2"), 'spec.trainer.env[name=A].value: wrote "1", read "2"'),
        (lambda job: trainer(job)["env"].reverse(), None),
        (lambda job: trainer(job)["command"].append("--x"), 'spec.trainer.command[6]: wrote nothing, read "--x"'),
        (lambda job: trainer(job).update(numNodes=True), "spec.trainer.numNodes: wrote 1, read true"),
        (lambda job: trainer(job).update(args=["x"]), 'spec.trainer.args: wrote nothing, read ["x"]'),
        (
            lambda job: trainer(job)["resourcesPerNode"]["limits"].update({"nvidia.com/gpu": "1001m"}),
            'spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]: wrote 1, read "1001m"',
        ),
        (lambda job: trainer(job).update(image=1), 'spec.trainer.image: wrote "registry.example/llama:1", read 1'),
        (lambda job: job["spec"].pop("activeDeadlineSeconds"), "spec.activeDeadlineSeconds: wrote 60, read nothing"),
        (
            lambda job: patch(job)["metadata"]["labels"].update({"dispatch.phpboyscout.uk/submission": "2"}),
            f'{PATCH}.metadata.labels[dispatch.phpboyscout.uk/submission]: wrote "1", read "2"',
        ),
        (lambda job: job["spec"].pop("runtimePatches"), None),
        (lambda job: job["spec"].update(managedBy="x"), 'spec.managedBy: wrote nothing, read "x"'),
        (
            lambda job: job["spec"].update(managedBy="kueue.x-k8s.io/multikueue"),
            'spec.managedBy: wrote nothing, read "kueue.x-k8s.io/multikueue"; MultiKueue is not supported',
        ),
        (lambda job: job["spec"].pop("suspend"), "spec.suspend: wrote true, read nothing"),
        (lambda job: job["spec"].update(suspend=False), "spec.suspend: wrote true, read false"),
    ],
)
def test_names_the_path_of_what_was_changed(change: Callable[[Object], object], want: str | None) -> None:
    found = differences(written(), stored(change), kueue=False)
    assert found
    assert want is None or found == (want,)


def test_names_every_path() -> None:
    def change(job: Object) -> None:
        trainer(job)["env"].reverse()
        trainer(job)["image"] = "other"
        del job["metadata"]["ownerReferences"]
        del job["spec"]["runtimePatches"]

    paths = [found.split(": ")[0] for found in differences(written(), stored(change), kueue=False)]
    assert paths == [
        "metadata.ownerReferences[0]",
        "spec.trainer.env",
        "spec.trainer.image",
        "spec.runtimePatches[manager=dispatch.phpboyscout.uk/operator]",
    ]


def test_in_kueue_mode_kueue_must_have_suspended_the_job() -> None:
    wrote = written(kueue=True)
    read = copy.deepcopy(wrote)
    (found,) = differences(wrote, read, kueue=True)
    assert found == "spec.suspend: wrote nothing, read nothing; Kueue does not handle this job"
    read["spec"]["suspend"] = True
    assert differences(wrote, read, kueue=True) == ()


@pytest.mark.parametrize(
    ("gates", "is_equal"),
    [
        ("{ours}", True),
        ("other,{ours}", True),
        ("other , {ours} ", True),
        ("{ours}s", False),
        ("", False),
        (None, False),
    ],
)
def test_others_may_gate_the_job_too(gates: str | None, *, is_equal: bool) -> None:
    wrote = written(kueue=True)
    read = copy.deepcopy(wrote)
    read["spec"]["suspend"] = True
    key = "kueue.x-k8s.io/admission-gated-by"
    read["metadata"]["annotations"][key] = gates and gates.format(ours="dispatch.phpboyscout.uk/start-gate")
    assert (differences(wrote, read, kueue=True) == ()) is is_equal


@pytest.mark.parametrize(
    ("kueue", "gates", "suspend", "is_equal"),
    [
        (False, None, False, True),
        (False, None, None, True),
        (True, None, False, True),
        (True, None, True, True),
        (True, "another", False, True),
        # Kueue has never handled it: it would run without quota.
        (True, None, None, False),
        (True, "dispatch.phpboyscout.uk/start-gate", False, False),
    ],
)
def test_an_open_gate_is_no_difference_where_it_may_be_open(
    *, kueue: bool, gates: str | None, suspend: bool | None, is_equal: bool
) -> None:
    wrote = written(kueue=kueue)
    read = copy.deepcopy(wrote)
    read["spec"]["suspend"] = suspend
    if kueue:
        read["metadata"]["annotations"]["kueue.x-k8s.io/admission-gated-by"] = gates
    assert (differences(wrote, read, kueue=kueue, may_be_open=True) == ()) is is_equal
    assert suspend is True or differences(wrote, read, kueue=kueue)


def test_what_is_stored_may_be_anything() -> None:
    for read in ({}, {"metadata": 5, "spec": []}, {"metadata": {"labels": []}}):
        assert len(differences(written(), read, kueue=False)) > 3
    bare = {"metadata": {}, "spec": {"suspend": True}}
    assert differences(bare, bare, kueue=False) == ()
