"""What adapt-runtime changes, and what it leaves to people."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.api.edit import REMOVED
from dispatch_operator.checks.adaptation import adapted
from dispatch_operator.checks.runtime import RULES, runtime_problems
from support.builders import make_runtime
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
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def changes(change: Change) -> tuple[Object, list[tuple[str, str, Any]]]:
    runtime = make_runtime()
    change(runtime)
    given_ = copy.deepcopy(runtime)
    mended, made = adapted(runtime, GPU)
    assert runtime == given_
    shown = [(one.rule, ".".join(map(str, one.edit.path[-2:])), one.edit.value) for one in made]
    assert all(str(one).startswith(f"{one.rule}: spec.") and str(one).isprintable() for one in made)
    return mended, shown


MENDED: list[tuple[Change, list[tuple[str, str, Any]]]] = [
    (lambda _: None, []),
    (lambda r: r["spec"].pop("mlPolicy"), [("known-policy", "spec.mlPolicy", {"numNodes": 1})]),
    (
        lambda r: trainer(r)["template"].pop("metadata"),
        [("one-trainer", f"labels.{ANCESTOR}", "trainer")],
    ),
    (
        lambda r: (trainer(r)["template"].update(metadata={"labels": None}), another_job(r)),
        [("one-trainer", f"labels.{ANCESTOR}", "trainer")],
    ),
    (lambda r: trainer(r).update(replicas=3), [("one-trainer", "0.replicas", 1)]),
    (lambda r: node(r).update(name="pytorch"), [("node-container", "0.name", "node")]),
    (
        lambda r: (
            trainer(r).update(name="worker", dependsOn=[{"name": "prep"}]),
            another_job(r),
            job_set(r)["replicatedJobs"][1].update(dependsOn=[{"name": "worker"}, {"name": "x"}]),
            job_set(r).update(successPolicy={"operator": "All", "targetReplicatedJobs": ["prep", "worker"]}),
            job_set(r)["failurePolicy"].update(rules=[{"action": "FailJobSet", "targetReplicatedJobs": ["worker"]}]),
            r["spec"]["mlPolicy"].update(
                torch={"envInjection": {"targets": [{"jobName": "worker", "containerNames": ["side"]}]}}
            ),
        ),
        [
            ("node-container", "0.name", "node"),
            ("node-container", "0.name", "node"),
            ("node-container", "targetReplicatedJobs.1", "node"),
            ("node-container", "targetReplicatedJobs.0", "node"),
            ("node-container", "0.jobName", "node"),
        ],
    ),
    (
        lambda r: (
            node(r).update(name="pytorch"),
            r["spec"]["mlPolicy"].update(
                torch={
                    "envInjection": {
                        "targets": [
                            {"jobName": "node", "containerNames": ["x", "pytorch"]},
                            {"jobName": "prep", "containerNames": ["pytorch"]},
                        ],
                    },
                },
            ),
        ),
        [("node-container", "0.name", "node"), ("node-container", "containerNames.1", "node")],
    ),
    (
        lambda r: job_set(r).update(network={"subdomain": "x", "enableDNSHostnames": False}, coordinator={"a": 1}),
        [
            ("stable-dns", "network.subdomain", REMOVED),
            ("stable-dns", "spec.coordinator", REMOVED),
            ("stable-dns", "network.enableDNSHostnames", REMOVED),
        ],
    ),
    (lambda r: node(r).update(args=["--x"]), [("no-args", "0.args", REMOVED)]),
    (
        lambda r: (job(r).pop("backoffLimit"), pod(r).pop("restartPolicy")),
        [("no-pod-retry", "spec.backoffLimit", 0), ("no-pod-retry", "spec.restartPolicy", "Never")],
    ),
    (lambda r: job(r).update(backoffLimit=False), [("no-pod-retry", "spec.backoffLimit", 0)]),
    (lambda r: job(r).update(completionMode="NonIndexed"), [("no-pod-retry", "spec.completionMode", REMOVED)]),
    (lambda r: job(r).update(completionMode="Indexed"), []),
    (
        lambda r: job(r).update(
            podFailurePolicy={"rules": [{"action": "Ignore"}, {"action": "FailJob"}, {"action": "Ignore"}]}
        ),
        [("no-pod-retry", "rules.2", REMOVED), ("no-pod-retry", "rules.0", REMOVED)],
    ),
    (
        lambda r: (
            node(r).update(restartPolicy="Always", restartPolicyRules=[{}]),
            pod(r).update(
                initContainers=[
                    {"name": "a", "restartPolicy": "Always", "restartPolicyRules": [{}]},
                    {"name": "b", "restartPolicy": "Never"},
                    {"name": "c"},
                ],
            ),
        ),
        [
            ("no-pod-retry", "0.restartPolicy", REMOVED),
            ("no-pod-retry", "0.restartPolicyRules", REMOVED),
            ("no-pod-retry", "0.restartPolicyRules", REMOVED),
            ("no-pod-retry", "1.restartPolicy", REMOVED),
        ],
    ),
    (
        lambda r: job_set(r)["failurePolicy"].update(
            maxRestarts=10**6,
            restartStrategy="InPlaceRestart",
            rules=[{"action": "RestartJob"}, {"action": "FailJobSet"}, {"action": "RestartJobAndIgnoreMaxRestarts"}],
        ),
        [
            ("recreate-restarts", "failurePolicy.restartStrategy", REMOVED),
            ("recreate-restarts", "0.action", "RestartJobSet"),
            ("recreate-restarts", "2.action", "RestartJobSetAndIgnoreMaxRestarts"),
            ("recreate-restarts", "failurePolicy.maxRestarts", 999_999),
        ],
    ),
    (
        lambda r: job_set(r).update(successPolicy={"operator": "Any"}),
        [("success-means-trainer", "spec.successPolicy", REMOVED)],
    ),
    (
        lambda r: job_set(r).update(successPolicy={"operator": "All", "targetReplicatedJobs": ["prep"]}),
        [("success-means-trainer", "spec.successPolicy", REMOVED)],
    ),
    (lambda r: job_set(r).update(successPolicy={"operator": "All", "targetReplicatedJobs": ["node"]}), []),
    (
        lambda r: (job_set(r).update(ttlSecondsAfterFinished=0), another_job(r, spec={"ttlSecondsAfterFinished": 60})),
        [
            ("no-ttl", "spec.ttlSecondsAfterFinished", REMOVED),
            ("no-ttl", "spec.ttlSecondsAfterFinished", REMOVED),
        ],
    ),
    (
        lambda r: (job(r).update(activeDeadlineSeconds=0), pod(r).update(activeDeadlineSeconds=60)),
        [
            ("no-deadline", "spec.activeDeadlineSeconds", REMOVED),
            ("no-deadline", "spec.activeDeadlineSeconds", REMOVED),
        ],
    ),
    (
        lambda r: node(r).update(resources={"limits": {GPU: 8}, "requests": {GPU: 8, "cpu": 1}}),
        [("no-gpu-resource", f"requests.{GPU}", REMOVED), ("no-gpu-resource", f"limits.{GPU}", REMOVED)],
    ),
    (
        lambda r: job(r)["template"].update(
            metadata={
                "labels": {"kueue.x-k8s.io/queue-name": "q", "dispatch.phpboyscout.uk/a": "b", "app": "x"},
                "annotations": {"dispatch.phpboyscout.uk/c": "d"},
            },
        ),
        [
            ("no-reserved-keys", "labels.dispatch.phpboyscout.uk/a", REMOVED),
            ("no-reserved-keys", "annotations.dispatch.phpboyscout.uk/c", REMOVED),
            ("no-reserved-keys", "labels.kueue.x-k8s.io/queue-name", REMOVED),
        ],
    ),
    (
        lambda r: (job_set(r).update(suspend=False, managedBy="x"), job(r).update(suspend=True)),
        [
            ("not-suspended", "spec.suspend", REMOVED),
            ("not-suspended", "spec.managedBy", REMOVED),
            ("not-suspended", "spec.suspend", REMOVED),
        ],
    ),
    (
        lambda r: r["spec"].update(podGroupPolicy={"volcano": {}}),
        [("no-pod-group", "spec.podGroupPolicy", REMOVED)],
    ),
    (
        lambda r: (
            initializer(r, "dataset-initializer", "c", replicas=2),
            job_set(r)["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]["containers"].pop(0),
        ),
        [
            ("initializer-container", "1.replicas", 1),
            ("initializer-container", "0.name", "dataset-initializer"),
        ],
    ),
    # The label shows that the job is the trainer's, and only then what else is wrong with it.
    (
        lambda r: (trainer(r)["template"].pop("metadata"), job(r).pop("backoffLimit")),
        [("one-trainer", f"labels.{ANCESTOR}", "trainer"), ("no-pod-retry", "spec.backoffLimit", 0)],
    ),
]


@pytest.mark.parametrize(("change", "want"), MENDED)
def test_mends(change: Change, want: list[tuple[str, str, Any]]) -> None:
    mended, made = changes(change)
    assert made == want
    assert list(runtime_problems(mended, GPU)) == []


@given(st.lists(st.sampled_from([row for row in MENDED if row[1]]), max_size=6))
def test_many_mends_at_once_leave_nothing_broken_that_one_would_mend(
    rows: list[tuple[Change, list[tuple[str, str, Any]]]],
) -> None:
    runtime = make_runtime()
    for change, _ in rows:
        try:
            change(runtime)
        except (KeyError, TypeError, AttributeError, IndexError):
            continue  # An earlier change took away what this one is about.
    mended, _ = adapted(runtime, GPU)
    left = {problem.name for problem in runtime_problems(mended, GPU)}
    assert left <= {"one-trainer", "node-container", "initializer-container"}
    assert adapted(mended, GPU)[1] == ()


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda r: r["spec"].update(mlPolicy={"mpi": {}}), "known-policy"),
        (lambda r: r["spec"].update(mlPolicy={"torch": {}, "jax": {}}), "known-policy"),
        (lambda r: r["spec"].update(mlPolicy=5), "known-policy"),
        (lambda r: another_job(r, metadata={"labels": {ANCESTOR: "trainer"}}), "one-trainer"),
        (
            lambda r: (trainer(r).update(name="a"), trainer(r)["template"].pop("metadata"), another_job(r)),
            "one-trainer",
        ),
        (lambda r: job_set(r).pop("replicatedJobs"), "one-trainer"),
        (lambda r: (trainer(r).update(name="launcher"), another_job(r, "node")), "node-container"),
        (lambda r: trainer(r).pop("name"), "node-container"),
        (lambda r: (node(r).update(name="a"), pod(r)["containers"].append({"name": "b"})), "node-container"),
        (lambda r: initializer(r, "model-initializer", "c"), "initializer-container"),
        (lambda r: node(r).update(env=[{"name": "DISPATCH_X"}]), "no-reserved-env"),
        (lambda r: pod(r).update(volumes=[{"name": "dispatch-podinfo"}]), "podinfo-free"),
        (lambda r: job_set(r)["failurePolicy"].update(maxRestarts="3"), "recreate-restarts"),
    ],
)
def test_leaves_to_people_what_it_can_not_know(change: Change, left: str) -> None:
    mended, made = changes(change)
    assert left in {problem.name for problem in runtime_problems(mended, GPU)}
    assert left not in {rule for rule, _, _ in made}


def test_a_change_says_rule_place_what_was_why_and_what_to_choose() -> None:
    runtime = make_runtime()
    job_set(runtime).pop("failurePolicy")
    job(runtime)["backoffLimit"] = 6
    node(runtime)["resources"] = {"limits": {GPU: 8}}
    path = "spec.template.spec.replicatedJobs[0].template.spec"
    retry, gpus = (str(one) for one in adapted(runtime, GPU)[1])
    assert retry == (
        f"no-pod-retry: {path}.backoffLimit set to 0, was 6; reason: A retried pod would run twice in one epoch; choose: "
        "failurePolicy.maxRestarts of the JobSet: how often a failed job is restarted, each time in a new epoch"
    )
    assert gpus == (
        f"no-gpu-resource: {path}.template.spec.containers[0].resources.limits[nvidia.com/gpu] removed, was 8; "
        "reason: The number of GPUs is the request's; choose: gpusPerNode in the request"
    )
    runtime["spec"].pop("mlPolicy")
    assert "spec.mlPolicy set to {numNodes: 1}; reason: " in str(adapted(runtime, GPU)[1][0])


def test_what_is_left_empty_goes_too() -> None:
    runtime = make_runtime()
    node(runtime)["resources"] = {"limits": {GPU: 8}, "requests": {GPU: 8}}
    job(runtime)["podFailurePolicy"] = {"rules": [{"action": "Ignore"}]}
    job(runtime)["template"]["metadata"] = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
    assert adapted(runtime, GPU)[0] == make_runtime()


def test_every_rule_is_mended_or_is_one_of_those_left_to_people() -> None:
    assert {rule.id for rule in RULES} == {rule for _, made in MENDED for rule, _, _ in made} | {
        "no-reserved-env",
        "podinfo-free",
    }


def everything() -> Object:
    runtime = make_runtime()
    for change in (
        lambda r: job_set(r).update(network={"subdomain": "x"}, suspend=True, ttlSecondsAfterFinished=1),
        lambda r: job_set(r)["failurePolicy"].update(
            rules=[{"action": "RestartJob", "targetReplicatedJobs": ["node"]}]
        ),
        lambda r: job_set(r).update(successPolicy={"operator": "Any", "targetReplicatedJobs": ["node"]}),
        lambda r: job(r).update(podFailurePolicy={"rules": [{"action": "Ignore"}]}, backoffLimit=6),
        lambda r: pod(r).update(initContainers=[{"name": "i", "restartPolicy": "Never"}]),
        lambda r: node(r).update(resources={"limits": {GPU: 8}}, args=["x"]),
        lambda r: initializer(r, "dataset-initializer", "c", replicas=2),
    ):
        change(runtime)
    return runtime


EVERYTHING = everything()


@given(st.sampled_from(places(EVERYTHING["spec"])), json_values)
def test_a_runtime_of_any_shape_is_adapted_as_far_as_possible(place: tuple[Any, ...], value: Any) -> None:
    holder = {"spec": copy.deepcopy(EVERYTHING["spec"])}
    at: Any = holder
    for step in ("spec", *place)[:-1]:
        at = at[step]
    at[("spec", *place)[-1]] = value
    mended, made = adapted(holder, GPU)
    assert adapted(mended, GPU) == (mended, ())
    assert all(str(change).isprintable() for change in made)
