"""Every rule for runtimes, what breaks it and what nearly does."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.checks import runtime as runtime_checks
from dispatch_operator.checks.adaptation import adapted
from dispatch_operator.checks.compatibility import SHORTER_NAMES, runtime_limits
from dispatch_operator.checks.json_node import is_nested_deeper
from dispatch_operator.checks.problems import class_of
from dispatch_operator.checks.runtime import RULES, Runtime, RuntimeRule, runtime_problems
from support.builders import make_backend, make_runtime, make_start
from support.rendering import problems, read_backend, render_train_job, terms_of
from support.runtime_parts import (
    Object,
    another_job,
    initializer,
    job,
    job_set,
    json_values,
    node,
    places,
    pod,
    trainer,
)

Change = Callable[[Object], object]
GPU = "nvidia.com/gpu"
LABELS = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def broken(change: Change) -> list[tuple[str, str]]:
    runtime = make_runtime()
    change(runtime)
    found = list(runtime_problems(runtime, GPU))
    assert all(problem.error_class is ErrorClass.UNSUPPORTED and str(problem).isprintable() for problem in found)
    return [(problem.name, problem.text) for problem in found]


BREAKS: list[tuple[str, Change, str]] = [
    ("known-policy", lambda r: r["spec"].pop("mlPolicy"), "spec.mlPolicy is required"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy=None), "spec.mlPolicy is required"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy={"mpi": {}}), "spec.mlPolicy.mpi is not supported"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy={"flux": {}}), "spec.mlPolicy.flux is not supported"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy={"new": 0}), "spec.mlPolicy.new is not supported"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy={"torch": {}, "jax": {}}), "holds jax and torch"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy={"torch": 5}), "spec.mlPolicy.torch must be an object"),
    ("known-policy", lambda r: r["spec"].update(mlPolicy=5), "spec.mlPolicy must be an object"),
    ("one-trainer", lambda r: trainer(r)["template"].pop("metadata"), "has 0 (none)"),
    ("one-trainer", lambda r: trainer(r)["template"]["metadata"].update(labels={"x": "y"}), "has 0 (none)"),
    ("one-trainer", lambda r: job_set(r).pop("replicatedJobs"), "has 0 (none)"),
    ("one-trainer", lambda r: another_job(r, metadata={"labels": LABELS}), 'has 2 ("node", "prep")'),
    ("one-trainer", lambda r: trainer(r).update(replicas=2), "replicas must be 1, not 2"),
    ("one-trainer", lambda r: trainer(r).update(replicas=0), "replicas must be 1, not 0"),
    ("one-trainer", lambda r: trainer(r).update(replicas=True), "replicas must be an integer, not true"),
    ("node-container", lambda r: trainer(r).update(name="nodes"), 'name must be node, not "nodes"'),
    ("node-container", lambda r: trainer(r).pop("name"), "name must be node, not null"),
    ("node-container", lambda r: node(r).update(name="trainer"), "containers must have a container named node"),
    ("node-container", lambda r: pod(r).update(containers=[]), "containers must have a container named node"),
    ("stable-dns", lambda r: job_set(r).update(network={"subdomain": "x"}), "network.subdomain is stated"),
    ("stable-dns", lambda r: job_set(r).update(network={"enableDNSHostnames": False}), "enableDNSHostnames is false"),
    ("stable-dns", lambda r: job_set(r).update(coordinator={}), "coordinator is stated"),
    ("stable-dns", lambda r: job_set(r).update(network=5), "network must be an object, not 5"),
    ("no-args", lambda r: node(r).update(args=["--x"]), "containers[0].args is stated"),
    ("no-args", lambda r: node(r).update(args="--x"), "args is stated"),
    ("no-pod-retry", lambda r: job(r).pop("backoffLimit"), "backoffLimit is not stated, and must be 0"),
    ("no-pod-retry", lambda r: job(r).update(backoffLimit=1), "backoffLimit is 1, and must be 0"),
    ("no-pod-retry", lambda r: job(r).update(backoffLimit=False), "backoffLimit is false, and must be 0"),
    ("no-pod-retry", lambda r: job(r).update(completionMode="NonIndexed"), 'is "NonIndexed", and must be Indexed'),
    (
        "no-pod-retry",
        lambda r: job(r).update(podFailurePolicy={"rules": [{"action": "FailJob"}, {"action": "Ignore"}]}),
        "rules[1].action is Ignore",
    ),
    ("no-pod-retry", lambda r: pod(r).update(restartPolicy="OnFailure"), 'is "OnFailure", and must be Never'),
    ("no-pod-retry", lambda r: pod(r).pop("restartPolicy"), "restartPolicy is not stated, and must be Never"),
    ("no-pod-retry", lambda r: node(r).update(restartPolicy="Never"), "containers[0].restartPolicy must not be stated"),
    ("no-pod-retry", lambda r: node(r).update(restartPolicyRules=[{}]), "restartPolicyRules must not be stated"),
    (
        "no-pod-retry",
        lambda r: pod(r).update(initContainers=[{"name": "i", "restartPolicy": "OnFailure"}]),
        'initContainers[0].restartPolicy is "OnFailure", and only Always is possible',
    ),
    (
        "no-pod-retry",
        lambda r: pod(r).update(initContainers=[{"restartPolicy": "Always", "restartPolicyRules": [{}]}]),
        "restartPolicyRules must not be stated",
    ),
    ("recreate-restarts", lambda r: job_set(r)["failurePolicy"].update(restartStrategy="InPlaceRestart"), "InPlaceRestart"),
    ("recreate-restarts", lambda r: job_set(r)["failurePolicy"].update(rules=[{"action": "RestartJob"}]), "RestartJob,"),
    (
        "recreate-restarts",
        lambda r: job_set(r)["failurePolicy"].update(rules=[{"action": "RestartJobAndIgnoreMaxRestarts"}]),
        "rules[0].action is RestartJobAndIgnoreMaxRestarts",
    ),
    ("recreate-restarts", lambda r: job_set(r)["failurePolicy"].update(maxRestarts=1_000_000), "at most 999,999"),
    ("recreate-restarts", lambda r: job_set(r)["failurePolicy"].update(maxRestarts="3"), "must be an integer"),
    ("success-means-trainer", lambda r: job_set(r).update(successPolicy={"operator": "Any"}), 'operator is "Any"'),
    ("success-means-trainer", lambda r: job_set(r).update(successPolicy={}), "operator is not stated"),
    (
        "success-means-trainer",
        lambda r: job_set(r).update(successPolicy={"operator": "All", "targetReplicatedJobs": ["prep"]}),
        'must include the trainer\'s job "node"',
    ),
    ("no-ttl", lambda r: job_set(r).update(ttlSecondsAfterFinished=0), "ttlSecondsAfterFinished must not be stated"),
    ("no-ttl", lambda r: job(r).update(ttlSecondsAfterFinished=60), "ttlSecondsAfterFinished must not be stated, and is 60"),
    (
        "no-ttl",
        lambda r: another_job(r, spec={"ttlSecondsAfterFinished": 0}),
        "replicatedJobs[1].template.spec.ttlSecondsAfterFinished",
    ),
    ("no-deadline", lambda r: job(r).update(activeDeadlineSeconds=0), "activeDeadlineSeconds is stated"),
    ("no-deadline", lambda r: pod(r).update(activeDeadlineSeconds=60), "template.spec.activeDeadlineSeconds is stated"),
    ("no-gpu-resource", lambda r: node(r).update(resources={"limits": {GPU: 8}}), "limits[nvidia.com/gpu] is stated"),
    ("no-gpu-resource", lambda r: node(r).update(resources={"requests": {GPU: "0"}}), "requests[nvidia.com/gpu] is stated"),
    ("no-reserved-env", lambda r: node(r).update(env=[{"name": "DISPATCH_X"}]), 'env[0].name is "DISPATCH_X"'),
    ("no-reserved-env", lambda r: node(r).update(env=[{}]), "env[0].name must be a string"),
    ("no-reserved-env", lambda r: node(r).update(envFrom=[{"prefix": "D"}]), 'envFrom[0].prefix is "D"'),
    ("no-reserved-env", lambda r: node(r).update(envFrom=[{"prefix": "DISPATCH_"}]), "which could make a name"),
    ("no-reserved-env", lambda r: node(r).update(envFrom=[{"prefix": "DISPATCH_MORE_"}]), "which could make a name"),
    (
        "no-reserved-keys",
        lambda r: r["spec"]["template"].update(metadata={"labels": {"dispatch.phpboyscout.uk/job-id": ""}}),
        "spec.template.metadata.labels[dispatch.phpboyscout.uk/job-id] is stated",
    ),
    (
        "no-reserved-keys",
        lambda r: trainer(r)["template"]["metadata"].update(annotations={"dispatch.phpboyscout.uk/x": "y"}),
        "template.metadata.annotations[dispatch.phpboyscout.uk/x]",
    ),
    (
        "no-reserved-keys",
        lambda r: job(r)["template"].update(metadata={"labels": {"kueue.x-k8s.io/queue-name": "q"}}),
        "labels[kueue.x-k8s.io/queue-name]",
    ),
    (
        "no-reserved-keys",
        lambda r: another_job(r, metadata={"labels": {"kueue.x-k8s.io/a": None}}),
        "replicatedJobs[1].template.metadata.labels[kueue.x-k8s.io/a]",
    ),
    ("not-suspended", lambda r: job_set(r).update(suspend=False), "spec.template.spec.suspend must not be stated"),
    ("not-suspended", lambda r: job_set(r).update(managedBy="x"), 'managedBy must not be stated, and is "x"'),
    ("not-suspended", lambda r: job(r).update(suspend=True), "suspend must not be stated, and is true"),
    ("not-suspended", lambda r: another_job(r, spec={"managedBy": "x"}), "replicatedJobs[1].template.spec.managedBy"),
    ("podinfo-free", lambda r: pod(r).update(volumes=[{"name": "dispatch-podinfo"}]), "volumes[0].name is dispatch-podinfo"),
    *(
        ("podinfo-free", lambda r, path=path: node(r).update(volumeMounts=[{"mountPath": path}]), "mountPath is")
        for path in (
            "/var/run/dispatch", "/var/run/dispatch/", "/var/run//dispatch", "//var/run/dispatch", "/var/./run/dispatch/x",
            "/var/run/x/../dispatch", "var/run/dispatch", "/../var/run/dispatch",
        )
    ),
    ("podinfo-free", lambda r: node(r).update(volumeMounts=[{}]), "mountPath must be a string"),
    ("no-pod-group", lambda r: r["spec"].update(podGroupPolicy={"volcano": {}}), "spec.podGroupPolicy is stated"),
    ("no-pod-group", lambda r: r["spec"].update(podGroupPolicy={}), "spec.podGroupPolicy is stated"),
    *(
        row
        for step in ("dataset-initializer", "model-initializer")
        for row in (
            ("initializer-container", lambda r, step=step: initializer(r, step, "c"), f"must have a container named {step}"),
            ("initializer-container", lambda r, step=step: initializer(r, step, step, replicas=2), "replicas must be 1, not 2"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "change", "says"), BREAKS)
def test_names_the_rule_and_the_path_that_breaks_it(rule: str, change: Change, says: str) -> None:
    found = broken(change)
    assert {name for name, _ in found} == {rule}
    assert any(says in text for _, text in found)
    assert all(text.startswith("spec.") for _, text in found)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda r: r["spec"].update(mlPolicy={}),
        lambda r: r["spec"].update(mlPolicy={"numNodes": 2, "torch": None, "mpi": None, "flux": "", "jax": []}),
        lambda r: r["spec"].update(mlPolicy={"jax": {}}),
        lambda r: r["spec"].update(mlPolicy={"xgboost": {}}),
        lambda r: trainer(r).pop("replicas"),
        lambda r: trainer(r).update(replicas=None),
        lambda r: pod(r)["containers"].insert(0, {"name": "sidecar", "args": ["x"], "env": [{"name": "DISPATCH_X"}]}),
        lambda r: job_set(r).update(network={"subdomain": "", "enableDNSHostnames": True, "publishNotReadyAddresses": False}),
        lambda r: job_set(r).update(coordinator=None),
        lambda r: node(r).update(args=[]),
        lambda r: job(r).update(completionMode="Indexed", podFailurePolicy={"rules": [{"action": "FailJob"}]}),
        lambda r: job(r).update(completionMode=""),
        lambda r: pod(r).update(initContainers=[{"name": "i", "restartPolicy": "Always"}, {"name": "j"}]),
        lambda r: job_set(r).pop("failurePolicy"),
        lambda r: job_set(r)["failurePolicy"].update(maxRestarts=999_999, restartStrategy="BlockingRecreate"),
        lambda r: job_set(r)["failurePolicy"].update(rules=[{"action": "RestartJobSet"}, {"action": "FailJobSet"}]),
        lambda r: job_set(r).update(successPolicy=None),
        lambda r: job_set(r).update(successPolicy={"operator": "All"}),
        lambda r: job_set(r).update(successPolicy={"operator": "All", "targetReplicatedJobs": ["prep", "node"]}),
        lambda r: another_job(r, spec={"activeDeadlineSeconds": 60, "backoffLimit": 3}),
        lambda r: node(r).update(resources={"limits": {"cpu": 1, "amd.com/gpu": 8, GPU: None}}),
        lambda r: node(r).update(env=[{"name": "dispatch_x"}], envFrom=[{"prefix": ""}, {"prefix": "E"}, {}]),
        lambda r: trainer(r)["template"]["metadata"].update(annotations={"kueue.x-k8s.io/x": "y"}),
        lambda r: job(r)["template"].update(metadata={"labels": {"dispatch.phpboyscout.ukx/y": "", "app": "x"}}),
        lambda r: node(r).update(
            volumeMounts=[{"mountPath": path} for path in ("/var/run", "/var/run/dispatcher", "/x/var/run/dispatch", "/")],
        ),
        lambda r: r["spec"].update(podGroupPolicy=None),
        lambda r: initializer(r, "dataset-initializer", "dataset-initializer"),
        lambda r: initializer(r, "model-initializer", "model-initializer", replicas=1),
        lambda r: initializer(r, "another-step", "c", replicas=2),
        lambda r: pod(r).update(volumes=[{"name": "dispatch"}], initContainers=[{"volumeMounts": [{"mountPath": "/var/run/dispatch"}]}]),
    ],
)  # fmt: skip
def test_lets_pass(change: Change) -> None:
    assert broken(change) == []


# What hides a container or the whole job would hide what else is wrong in it.
VISIBLE = [row for row in BREAKS if row[0] not in ("one-trainer", "node-container")]


@given(st.lists(st.sampled_from(VISIBLE), unique_by=lambda row: row[0]))
def test_every_broken_rule_is_reported(rows: list[tuple[str, Change, str]]) -> None:
    runtime = make_runtime()
    for _, change, _ in rows:
        change(runtime)
    assert {problem.name for problem in runtime_problems(runtime, GPU)} == {rule for rule, _, _ in rows}


def test_without_a_labelled_job_rules_about_it_are_not_checked() -> None:
    def change(runtime: Object) -> None:
        trainer(runtime)["template"].pop("metadata")
        node(runtime)["args"] = ["x"]
        job(runtime).pop("backoffLimit")
        job(runtime)["ttlSecondsAfterFinished"] = 0
        job_set(runtime)["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["x"]}

    assert {name for name, _ in broken(change)} == {"one-trainer", "no-ttl"}


def test_the_first_labelled_job_is_the_trainers() -> None:
    def change(runtime: Object) -> None:
        another_job(runtime, metadata={"labels": LABELS})
        job_set(runtime)["replicatedJobs"].reverse()

    assert {name for name, _ in broken(change)} == {"one-trainer", "node-container", "no-pod-retry"}


EVERYTHING = make_runtime()
for _change in (
    lambda r: job_set(r).update(
        network={}, coordinator=None, successPolicy={"operator": "All", "targetReplicatedJobs": ["node"]}
    ),
    lambda r: job_set(r)["failurePolicy"].update(rules=[{"action": "FailJobSet"}]),
    lambda r: job(r).update(podFailurePolicy={"rules": [{"action": "FailJob"}]}),
    lambda r: pod(r).update(volumes=[{"name": "v"}], initContainers=[{"name": "i"}]),
    lambda r: node(r).update(resources={"limits": {}, "requests": {}}, env=[{"name": "X"}], envFrom=[{"prefix": "X"}]),
    lambda r: node(r).update(volumeMounts=[{"mountPath": "/x"}]),
    lambda r: another_job(r, metadata={"labels": {}, "annotations": {}}),
):
    _change(EVERYTHING)
IDS = {rule.id for rule in RULES} | {"names-fit", "procsPerNode", "gpusPerNode", "env"}


# A spec that is no object is refused before any check, when the runtime is read.
@given(st.sampled_from(places(EVERYTHING["spec"])[1:]), json_values)
def test_no_shape_of_a_runtime_can_break_a_check(place: tuple[Any, ...], value: Any) -> None:
    holder = {"spec": copy.deepcopy(EVERYTHING["spec"])}
    at: Any = holder
    for step in ("spec", *place)[:-1]:
        at = at[step]
    at[("spec", *place)[-1]] = value
    start = make_start(procsPerNode=1, gpusPerNode=1, env={"PET_NNODES": ""})
    found = problems(start, read_backend(make_backend()), holder)
    assert all(limit.text.isprintable() for limit in runtime_limits(holder, GPU))
    assert {problem.name for problem in found} <= IDS
    assert all(str(problem).isprintable() for problem in found)
    backend = read_backend(make_backend())
    assert problems(make_start(), backend, holder) or render_train_job(make_start(), terms_of(backend), holder["spec"])


def test_a_runtime_without_a_spec_breaks_what_it_does_not_state() -> None:
    assert {problem.name for problem in runtime_problems({}, GPU)} == {"known-policy", "one-trainer"}


@pytest.mark.parametrize(
    ("request_", "change", "want"),
    [
        ({"procsPerNode": 2}, lambda r: r["spec"].update(mlPolicy={}), {"procsPerNode": ErrorClass.UNSUPPORTED}),
        (
            {"procsPerNode": 2},
            lambda r: r["spec"].update(mlPolicy={"jax": {}}),
            {"procsPerNode": ErrorClass.UNSUPPORTED},
        ),
        ({"procsPerNode": 0}, lambda r: r["spec"].update(mlPolicy={}), {}),
        ({"env": {"PET_NODE_RANK": ""}}, lambda _: None, {"env": ErrorClass.INVALID}),
        ({"env": {"PET_NODE_RANK": ""}}, lambda r: r["spec"].update(mlPolicy={}), {}),
        (
            {"env": {"JAX_PROCESS_ID": ""}},
            lambda r: r["spec"].update(mlPolicy={"jax": {}}),
            {"env": ErrorClass.INVALID},
        ),
        (
            {"env": {"DMLC_TASK_ID": ""}},
            lambda r: r["spec"].update(mlPolicy={"xgboost": {}}),
            {"env": ErrorClass.INVALID},
        ),
        ({"env": {"DMLC_TASK_ID": ""}}, lambda r: r["spec"].update(mlPolicy={"jax": {}}), {}),
    ],
)
def test_a_request_must_fit_the_policy(request_: Object, change: Change, want: dict[str, ErrorClass]) -> None:
    runtime = make_runtime()
    change(runtime)
    found = problems(make_start(**request_), read_backend(make_backend()), runtime)
    assert {problem.name: problem.error_class for problem in found} == want


@pytest.mark.parametrize(
    ("request_", "change", "fits"),
    [
        # "dj-" + 26 + "-s1" is 32 characters; 25 are left for "-<job>-<replica>-<index>".
        ({}, lambda r: another_job(r, "x" * 20), True),
        ({}, lambda r: another_job(r, "x" * 21), False),
        ({"submission": 10}, lambda r: another_job(r, "x" * 20), False),
        ({}, lambda r: (another_job(r, "x" * 20), job_set(r)["replicatedJobs"][1].update(replicas=10)), True),
        ({}, lambda r: (another_job(r, "x" * 20), job_set(r)["replicatedJobs"][1].update(replicas=11)), False),
        ({}, lambda r: (another_job(r, "x" * 20), job_set(r)["replicatedJobs"][1].update(replicas=0)), True),
        ({}, lambda r: another_job(r, "x" * 20, spec={"parallelism": 10}), True),
        ({}, lambda r: another_job(r, "x" * 20, spec={"parallelism": 11}), False),
        ({"nodes": 100_000}, lambda r: another_job(r, "x" * 20), True),
        ({"submission": 999_999, "nodes": 100_000}, lambda _: None, True),
        ({}, lambda r: another_job(r, "x" * 20, spec={"parallelism": "11"}), False),
        ({}, lambda r: job_set(r)["replicatedJobs"].append({}), False),
        ({"nodes": 0}, lambda r: another_job(r, "x" * 40), True),
        ({"job": "x"}, lambda r: another_job(r, "x" * 40), True),
        ({"submission": 0}, lambda r: another_job(r, "x" * 40), True),
    ],
)
def test_hostnames_must_fit(request_: Object, change: Change, fits: bool) -> None:
    runtime = make_runtime()
    change(runtime)
    found = problems(make_start(**request_), read_backend(make_backend()), runtime)
    assert ("names-fit" not in {problem.name for problem in found}) == fits


@pytest.mark.parametrize("name", ["nodes", "job", "submission"])
@pytest.mark.parametrize("value", [{}, 5])
def test_an_extension_that_is_called_like_a_field_hides_no_hostname(name: str, value: Any) -> None:
    runtime = make_runtime()
    another_job(runtime, "x" * 40)
    start = make_start(extensions={**REFERENCE, "kubeflow/RuntimeRef": {"name": "torch-dispatch"}, name: value})
    found = {problem.name for problem in problems(start, read_backend(make_backend()), runtime)}
    assert found == {name, "names-fit"}


def test_hostnames_of_a_request_that_is_missing_are_not_counted() -> None:
    runtime = make_runtime()
    another_job(runtime, "x" * 40)
    for spec in ({}, {"request": {"job": "01J9ZQ4V8Y3N5T7R2C6W1X0ABK", "submission": 1}}):
        found = problems({"spec": spec}, read_backend(make_backend()), runtime)
        assert "names-fit" not in {problem.name for problem in found}


def test_the_trainers_hostnames_are_counted_with_the_requests_nodes() -> None:
    runtime = make_runtime()
    trainer(runtime)["name"] = "x" * 20
    for nodes, fits in ((10, True), (11, False)):
        found = {problem.name for problem in problems(make_start(nodes=nodes), read_backend(make_backend()), runtime)}
        assert ("names-fit" not in found) == fits


@pytest.mark.parametrize(
    ("resources", "gpus", "says"),
    [
        ({"claims": [{"name": "gpu"}]}, 4, "resources.claims is stated, and Trainer drops the claims of a job that asks for"),
        ({"claims": [{"name": "gpu"}]}, 0, ""),
        ({"claims": []}, 4, ""),
        ({"limits": {"amd.com/gpu": 8}}, 4, "limits[amd.com/gpu] is stated, and a pod would ask for it and for nvidia.com/gpu"),
        ({"requests": {"amd.com/gpu": "8"}}, 4, "requests[amd.com/gpu] is stated"),
        ({"limits": {"amd.com/gpu": 8}}, 0, ""),
        *(
            ({"limits": {name: 1}}, 1, f"limits[{name}] is stated")
            for name in (
                "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "google.com/tpu", "cloud-tpus.google.com/v3",
                "huawei.com/Ascend910", "huawei.com/npu-core", "habana.ai/gaudi", "aws.amazon.com/neuroncore",
                "gpu.intel.com/xe", "cambricon.com/mlu", "tencent.com/vgpu", "NVIDIA.com/GPU",
            )
        ),
        *(
            ({"limits": {name: 1}}, 1, "")
            for name in (
                "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "vpc.amazonaws.com/efa", "rdma/hca_shared_devices_a",
                "nvidia.com/hostdev", "smarter-devices/input", "nvidia.com/gpumem", "migrate.example/x",
            )
        ),
        ({"limits": {"amd.com/gpu": None}}, 1, ""),
    ],
)  # fmt: skip
def test_devices_of_a_runtime_beside_the_requests_are_refused(resources: Object, gpus: int, says: str) -> None:
    runtime = make_runtime()
    node(runtime)["resources"] = resources
    pod(runtime)["containers"].append({"name": "side", "resources": {"limits": {"amd.com/gpu": 1}, "claims": [{}]}})
    found = problems(make_start(gpusPerNode=gpus), read_backend(make_backend()), runtime)
    assert [(problem.error_class, problem.name) for problem in found] == (
        [(ErrorClass.UNSUPPORTED, "gpusPerNode")] if says else []
    )
    assert all(problem.text.startswith(f"{gpus} is not possible: spec.") and says in problem.text for problem in found)
    assert list(runtime_problems(runtime, GPU)) == []


def test_devices_of_a_wrong_type_are_told_by_the_rule_that_looks_for_them() -> None:
    runtime = make_runtime()
    node(runtime)["resources"] = {"limits": 5}
    found = problems(make_start(gpusPerNode=1), read_backend(make_backend()), runtime)
    assert {problem.name for problem in found} == {"no-gpu-resource"}


@pytest.mark.parametrize(
    ("resource", "request_", "policy", "refused"),
    [
        ("google.com/tpu", {"gpusPerNode": 4}, {"torch": {}}, True),
        ("google.com/tpu", {"gpusPerNode": 1}, {"torch": {}}, True),
        ("google.com/tpu", {"gpusPerNode": 4, "procsPerNode": 4}, {"torch": {}}, False),
        ("google.com/tpu", {}, {"torch": {}}, False),
        ("google.com/tpu", {"gpusPerNode": 4}, {"jax": {}}, False),
        ("huawei.com/Ascend910", {"gpusPerNode": 8}, {"torch": {}}, True),
        ("nvidia.com/mig-1g.5gb", {"gpusPerNode": 2}, {"torch": {}}, True),
        ("amd.com/gpu", {"gpusPerNode": 4}, {"torch": {}}, False),
        ("example.com/vGPU", {"gpusPerNode": 4}, {"torch": {}}, False),
        ("gpu.intel.com/i915", {"gpusPerNode": 4}, {"torch": {}}, False),
    ],
)
def test_processes_that_trainer_would_not_count_must_be_stated(
    resource: str, request_: Object, policy: Object, refused: bool
) -> None:
    runtime = make_runtime()
    runtime["spec"]["mlPolicy"] = policy
    found = problems(make_start(**request_), read_backend(make_backend(gpuResource=resource)), runtime)
    assert [(problem.error_class, problem.name) for problem in found] == (
        [(ErrorClass.UNSUPPORTED, "procsPerNode")] if refused else []
    )
    assert all(f"starts 1 process for any number of {resource}" in problem.text for problem in found)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("prep", []),
        # "dj-" + 26 + "-s" is 31 characters; with 6 digits 20 are left for "-<job>-0-0".
        ("x" * 15, []),
        (
            "x" * 16,
            ["every request is refused from submission 100,000 on: spec.template.spec.replicatedJobs[1].name is"],
        ),
        ("model-initializer", ["from submission 10,000 on"]),
        ("dataset-initializer", ["from submission 100 on"]),
        ("x" * 21, ["which is too long: no hostname fits 57 characters"]),
    ],
)
def test_says_from_which_submission_on_hostnames_do_not_fit(name: str, says: list[str]) -> None:
    runtime = make_runtime()
    another_job(runtime, name)
    limits = runtime_limits(runtime, GPU)
    assert [limit.name for limit in limits] == ["names-fit"] * len(says)
    assert all(text in limit.text for text, limit in zip(says, limits, strict=True))
    assert [limit.refuses_all for limit in limits] == [len(name) > 20] * len(says)
    for submission in (1, 10, 99, 100, 9_999, 10_000, 99_999, 100_000, 999_999):
        fits = not problems(make_start(submission=submission), read_backend(make_backend()), runtime)
        assert fits == (len("dj--s-0-0-") + 26 + len(str(submission)) + len(name) <= 57)


def test_the_limits_of_a_runtime_name_its_devices_and_processes() -> None:
    runtime = make_runtime()
    node(runtime)["resources"] = {"claims": [{"name": "g"}]}
    found = [(limit.name, limit.text.split(": ")[0]) for limit in runtime_limits(runtime, "google.com/tpu")]
    assert found == [
        ("gpusPerNode", "a request with it is refused"),
        ("procsPerNode", "a request with gpusPerNode must state it"),
    ]
    assert runtime_limits({}, GPU) == ()
    assert runtime_limits({"spec": {"template": {"spec": {"replicatedJobs": [{}]}}}}, GPU) == ()


REFERENCE = {"dispatch/Image": {"ref": "i"}}


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ({"name": "other"}, 'ClusterTrainingRuntime "other" is not one of the backend\'s runtimes'),
        ({"name": "torch-dispatch", "kind": "TrainingRuntime"}, "is not one of the backend's runtimes"),
        ({"name": "torch-dispatch", "kind": "Pod"}, 'kind "Pod" is not supported'),
        ({"name": "torch-dispatch", "kind": ""}, 'kind "" is not supported'),
        ({"name": "torch-dispatch"}, 'ClusterTrainingRuntime "torch-dispatch" does not exist'),
    ],
)
def test_a_runtime_that_may_not_be_read_is_named_and_nothing_that_needs_it(reference: Object, says: str) -> None:
    start = make_start(
        extensions={**REFERENCE, "kubeflow/RuntimeRef": reference}, procsPerNode=1, env={"PET_NNODES": ""}
    )
    (found,) = problems(start, read_backend(make_backend()), None)
    assert (found.error_class, found.name) == (ErrorClass.UNSUPPORTED, "kubeflow/RuntimeRef")
    assert says in found.text


@pytest.mark.parametrize(
    ("extension", "want"),
    [
        ({"kind": "Pod"}, ["name must be that of a runtime", 'kind "Pod" is not supported']),
        ({"kind": "Pod", "name": 5}, ["name must be a string, not 5", 'kind "Pod" is not supported']),
        ({"kind": 5, "name": ""}, ["kind must be a string, not 5", "name must be that of a runtime"]),
        ({"kind": "TrainingRuntime"}, ["name must be that of a runtime"]),
    ],
)
def test_a_missing_name_does_not_hide_a_kind_that_is_not_supported(extension: Object, want: list[str]) -> None:
    start = make_start(extensions={**REFERENCE, "kubeflow/RuntimeRef": extension})
    found = problems(start, read_backend(make_backend()), None)
    assert {problem.name for problem in found} == {"kubeflow/RuntimeRef"}
    assert len(found) == len(want)
    assert all(text in problem.text for text, problem in zip(want, found, strict=True))
    assert class_of(found) is ErrorClass.INVALID


def test_request_and_runtime_are_reported_together_as_invalid() -> None:
    runtime = make_runtime()
    node(runtime)["args"] = ["x"]
    start = make_start(nodes=0, extensions={**REFERENCE, "kubeflow/RuntimeRef": {"name": "torch-dispatch", "x": 1}})
    found = problems(start, read_backend(make_backend()), runtime)
    assert [problem.name for problem in found] == ["kubeflow/RuntimeRef", "nodes", "no-args"]
    assert class_of(found) is ErrorClass.INVALID


def test_the_order_of_the_rules_is_the_contracts() -> None:
    assert [rule.id for rule in RULES] == [
        "known-policy", "one-trainer", "node-container", "stable-dns", "no-args", "no-pod-retry", "recreate-restarts",
        "success-means-trainer", "no-ttl", "no-deadline", "no-gpu-resource", "no-reserved-env", "no-reserved-keys",
        "not-suspended", "podinfo-free", "no-pod-group", "initializer-container",
    ]  # fmt: skip


def test_reasons_and_remedies_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text().partition("## Runtime rules")[2]
    rows = [line.strip("| ").split(" | ") for line in page.partition("## Read-back")[0].splitlines() if "| `" in line]
    told = {row[0].strip("`"): (row[2].replace("`", ""), row[3].replace("`", "")) for row in rows}
    assert told.pop("names-fit")[1] == SHORTER_NAMES
    assert told == {rule.id: (rule.reason, rule.remedy) for rule in RULES}


def test_a_problem_of_a_rule_bears_its_remedy() -> None:
    (found,) = runtime_problems({"spec": {**make_runtime()["spec"], "mlPolicy": 5}}, GPU)
    assert found.remedy.startswith("write mlPolicy: {numNodes: 1}")
    runtime = make_runtime()
    another_job(runtime, "x" * 40)
    (found,) = problems(make_start(), read_backend(make_backend()), runtime)
    assert (found.name, found.remedy) == ("names-fit", SHORTER_NAMES)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (
            lambda r: job_set(r).update(replicatedJobs=5),
            {"one-trainer", "no-ttl", "no-reserved-keys", "not-suspended", "initializer-container"},
        ),
        (lambda r: trainer(r)["template"].update(metadata=5), {"one-trainer", "no-reserved-keys", "initializer-container"}),
        (
            lambda r: r["spec"].update(template=[5]),
            {
                "one-trainer", "stable-dns", "recreate-restarts", "success-means-trainer", "no-ttl",
                "no-reserved-keys", "not-suspended", "initializer-container",
            },
        ),
    ],
)  # fmt: skip
def test_a_wrong_type_breaks_each_rule_that_has_to_look_into_it(change: Change, want: set[str]) -> None:
    found = broken(change)
    assert {name for name, _ in found} == want
    assert all("must be " in text for _, text in found)


@pytest.mark.parametrize("levels", [150, 900, 100_000])
def test_a_runtime_that_is_nested_too_deeply_can_not_be_copied(levels: int) -> None:
    value: Object = {}
    for _ in range(levels):
        value = {"a": [value]}
    text = "spec is nested more than 100 levels deep, and can't be copied"
    assert broken(lambda r: r["spec"].update(deep=value)) == [("kubeflow/RuntimeRef", text)]
    assert adapted({"spec": value}, GPU) == ({"spec": value}, ())


@pytest.mark.parametrize(("levels", "deeper"), [(0, True), (1, True), (2, True), (3, False)])
def test_levels_of_nesting_are_counted_where_they_are_most(levels: int, deeper: bool) -> None:
    assert is_nested_deeper({"a": 1, "b": [1, {"c": 2}], "d": {}}, levels) is deeper


def test_equal_runtimes_are_checked_once_and_a_changed_one_anew() -> None:
    runtime, asked = make_runtime(), 0

    def counted(_runtime: Runtime) -> Iterator[str]:
        nonlocal asked
        asked += 1
        yield "said once"

    rule = RuntimeRule("counted", counted, "", "")
    with mock.patch.object(runtime_checks, "RULES", (rule,)):
        node(runtime)["env"] = [{"name": "A", "value": f"{id(rule)}"}]
        for _ in range(3):
            assert [problem.text for problem in runtime_problems(copy.deepcopy(runtime), GPU)] == ["said once"]
        assert asked == 1
        node(runtime)["env"][0]["name"] = "B"
        assert [problem.text for problem in runtime_problems(runtime, GPU)] == ["said once"]
        assert [problem.text for problem in runtime_problems(runtime, "other.example/gpu")] == ["said once"]
    assert asked == 3
