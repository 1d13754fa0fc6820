"""The chart's rights are exactly those that the operator uses, by the API server's own account."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from controlplane import Cluster
from support.builders import JOB, NAME, RUNTIME, make_backend, make_runtime, make_start
from support.chart import RELEASE, Object, of_kind, render
from support.install import apply, install_chart
from support.kueue import activate, condition_of, make_check, make_cluster_queue, make_flavor, make_local_queue
from support.service import serving
from support.waiting import until

QUOTA = "narrow"


class Right(NamedTuple):
    """A verb on a resource, or on a subresource as `resource/subresource`."""

    verb: str
    group: str
    resource: str


UNUSED: dict[Right, str] = {}
"""Rights that are granted although `play` does not see them used, each with the reason why it must be so."""


@dataclass
class Scene:
    """A namespace that an operator serves, where every kind of thing happens that makes it ask for something."""

    cluster: Cluster
    namespace: str
    account: str
    served: Sequence[str]
    """The chart's value `namespaces`."""
    runtime: str = field(init=False)
    failing: str = field(init=False)

    def __post_init__(self) -> None:
        """Make the runtimes, and backends without Kueue, with it, and with a queue that lacks the admission check."""
        self.runtime, self.failing = f"{RUNTIME}-{self.namespace}", f"failing-{self.namespace}"
        failing = make_runtime(self.failing, pod_annotations={"test.kwok.x-k8s.io/outcome": "fail"})
        failing["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 0
        names = [{"kind": "ClusterTrainingRuntime", "name": name} for name in (self.runtime, self.failing)]
        self.apply(make_runtime(self.runtime), failing, make_backend(runtimes=names, probeRuntime=names[0]))
        install_queues(self.cluster, self.namespace, by_hand=bool(self.served))
        for queue in ("fit", "unfit"):
            kueue = {"queue": queue, "admissionCheck": self.namespace}
            if queue == "unfit":
                # Whether it exists is read when a Workload is missed.
                kueue["priorityClass"] = "never-made"
            timeouts = {"workload": "1s" if queue == "unfit" else "60s", "hold": "100ms"}
            self.apply(make_backend(queue, runtimes=names, probeRuntime=names[0], kueue=kueue, timeouts=timeouts))

    def apply(self, *objects: Object) -> None:
        """Apply objects in the namespace."""
        apply(self.cluster, [self._placed(one) for one in objects])

    def start(
        self, submission: int, *, gate: str = "Open", runtime: str = "", backend: str = "default", gpus: int = 0
    ) -> str:
        """Apply a DispatchStart, and return its name."""
        extensions = {
            "dispatch/Image": {"ref": "registry.example/llama:1"},
            "kubeflow/RuntimeRef": {"name": runtime or self.runtime},
        }
        start = make_start(f"s{submission}", gate=gate, submission=submission, extensions=extensions, gpusPerNode=gpus)
        start["spec"]["backend"] = backend
        self.apply(start)
        return f"s{submission}"

    def limit(self, **hard: str) -> None:
        """Allow no more objects of these kinds than said."""
        self.kubectl("delete", "resourcequota", QUOTA, "--ignore-not-found")
        self.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": QUOTA}, "spec": {"hard": hard}})
        until("the quota is in force", lambda: self.get("resourcequota", QUOTA).get("status", {}).get("hard") == hard)

    def until_phase(self, name: str, phase: str) -> Object:
        """Return a DispatchStart when it is in a phase."""

        def reached() -> Object | None:
            start = self.get("dispatchstart", name)
            return start if start["status"].get("phase") == phase else None

        return until(f"{name} is {phase}", reached)

    def get(self, kind: str, name: str) -> Object:
        """Return an object."""
        found: Object = json.loads(self.kubectl("get", kind, name, "--output=json"))
        return found

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl(f"--namespace={self.namespace}", *arguments)

    def _placed(self, one: Object) -> Object:
        meta = {key: value for key, value in one["metadata"].items() if key in {"name", "labels", "annotations"}}
        if one["kind"] != "ClusterTrainingRuntime":
            meta["namespace"] = self.namespace
        return {**{key: value for key, value in one.items() if key != "status"}, "metadata": meta}


def install_queues(cluster: Cluster, namespace: str, *, by_hand: bool) -> None:
    """Make a queue that names a check with the namespace's name and has no quota for GPUs, and one without a check.

    Args:
        cluster: Where to.
        namespace: Of the LocalQueues.
        by_hand: Whether to mark the check Active here, because no operator is its controller.
    """
    quota = {"nvidia.com/gpu": "0"}
    unfit = f"{namespace}-unfit"
    queues = [
        make_cluster_queue(namespace, quota=quota, checks=[namespace]),
        make_cluster_queue(unfit, quota=quota),
        make_local_queue("fit", namespace, namespace),
        make_local_queue("unfit", namespace, unfit),
    ]
    apply(cluster, [make_flavor(), make_check(namespace), *queues])
    if by_hand:
        activate(cluster, namespace)


@pytest.fixture(scope="module", params=["cluster", "namespaces"])
def played(request: pytest.FixtureRequest, kueue_cluster: Cluster) -> Scene:
    """What happened with an operator that has the rights for the cluster, or those for named namespaces."""
    namespace, release = f"rights-{request.param}", f"release-{request.param}"
    absent = f"{namespace}-absent"
    namespaces = [] if request.param == "cluster" else [namespace, f"{namespace}-too", absent]
    kubeconfig = install_chart(kueue_cluster, release, namespaces, absent=[absent])
    if not namespaces:
        kueue_cluster.kubectl("create", "namespace", namespace)
    scene = Scene(kueue_cluster, namespace, f"system:serviceaccount:{release}:{RELEASE}", namespaces)
    # The operator is started with the arguments of the chart's pod, but for where it answers.
    (deployment,) = of_kind(render(namespace=release, values={"namespaces": namespaces}), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command, *arguments = (word for word in container["args"] if not word.startswith("--health"))
    assert command == "run"
    with serving(kubeconfig, *arguments):
        play_queued(scene)
        play(scene)
    return scene


def play_queued(scene: Scene) -> None:
    """Hold a job that waits for quota, and let a backend prove that its queue is not fit."""
    queued = scene.start(7, backend="fit", gpus=1)
    scene.until_phase(queued, "Queued")
    scene.kubectl("patch", "dispatchstart", queued, "--type=merge", '--patch={"spec":{"gate":"Held"}}')
    scene.until_phase(queued, "Held")
    # What is told of it a second time is counted in the Event of the first.
    scene.kubectl("patch", "dispatchstart", queued, "--type=merge", '--patch={"spec":{"gate":"Open"}}')
    scene.until_phase(queued, "Queued")
    scene.kubectl("patch", "dispatchstart", queued, "--type=merge", '--patch={"spec":{"gate":"Held"}}')
    scene.until_phase(queued, "Held")

    def unproven() -> bool:
        unfit = condition_of(scene.get("dispatchbackend", "unfit"), "Ready")
        return "does not name the admission check" in unfit.get("message", "")

    until("the queue is found unfit", unproven)


def play(scene: Scene) -> None:
    """Let a job succeed and one fail, refuse what can't be done, meet leftovers, and find nothing running."""
    good, bad = scene.start(1), scene.start(2, runtime=scene.failing)
    # A backend that is missing is looked for live; and so is the DispatchStart that a leftover copy names.
    without = scene.start(3, backend="missing")
    scene.apply(leftover(scene, 4))
    adopted = scene.start(4, gate="Closed")
    scene.until_phase(without, "Pending")
    scene.until_phase(adopted, "Gated")
    scene.until_phase(good, "Succeeded")
    scene.until_phase(bad, "Failed")
    # Without its TrainJob a copy is deleted, and so is a TrainJob that turns up after the refusal.
    scene.limit(**{"count/trainjobs.trainer.kubeflow.org": "0"})
    refused = scene.until_phase(scene.start(5), "Refused")
    scene.limit(**{"count/jobsets.jobset.x-k8s.io": "0"})
    scene.apply(late_train_job(scene, refused, 5))
    scene.kubectl("wait", "trainjob", named(5), "--for=delete", "--timeout=60s")
    # No JobSet may be made any more: within a minute after the gate opened the operator asks why nothing runs.
    quiet = scene.start(6)
    scene.until_phase(quiet, "Queued")
    until("the warning is quoted", lambda: "exceeded quota" in ready(scene.get("dispatchstart", quiet)), seconds=90)


def named(submission: int) -> str:
    """Return the name of a submission's objects."""
    return NAME.removesuffix("1") + str(submission)


def leftover(scene: Scene, submission: int) -> Object:
    """Return the copy of a DispatchStart that is gone."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {
            "name": named(submission),
            "labels": {"app.kubernetes.io/managed-by": "dispatch-operator"},
            "annotations": {
                "dispatch.phpboyscout.uk/start": "gone",
                "dispatch.phpboyscout.uk/start-uid": "00000000-0000-0000-0000-000000000000",
            },
        },
        "spec": scene.get("clustertrainingruntime", scene.runtime)["spec"],
    }


def late_train_job(scene: Scene, start: Object, submission: int) -> Object:
    """Return a TrainJob whose create was sent before the refusal."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": named(submission),
            "labels": {
                "app.kubernetes.io/managed-by": "dispatch-operator",
                "dispatch.phpboyscout.uk/job-id": JOB,
                "dispatch.phpboyscout.uk/submission": str(submission),
            },
            "annotations": {
                "dispatch.phpboyscout.uk/start": start["metadata"]["name"],
                "dispatch.phpboyscout.uk/start-uid": start["metadata"]["uid"],
            },
        },
        "spec": {"suspend": True, "runtimeRef": {"name": scene.runtime, "kind": "ClusterTrainingRuntime"}},
    }


def ready(start: Object) -> str:
    """Return what the condition Ready says."""
    return "".join(one["message"] for one in start["status"]["conditions"] if one["type"] == "Ready")


def audited(scene: Scene) -> list[dict[str, Any]]:
    """Return what the API server recorded of the operator's requests."""
    lines = scene.cluster.audit_log.read_text().splitlines()
    events = [json.loads(line) for line in lines if scene.account in line]
    return [event for event in events if event["user"]["username"] == scene.account]


def used(scene: Scene) -> set[Right]:
    """Return the rights that the operator's requests needed."""
    rights = set()
    for event in audited(scene):
        if subject := event.get("objectRef"):
            resource = "/".join(subject[part] for part in ("resource", "subresource") if part in subject)
            rights.add(Right(event["verb"], subject.get("apiGroup", ""), resource))
    return rights


def granted(served: Sequence[str]) -> set[Right]:
    """Return the rights that the chart gives, for the whole cluster or for namespaces."""
    objects = render(namespace="any", values={"namespaces": list(served), "rbac": {"aggregate": False}})
    roles = [*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")]
    return {
        Right(verb, group, resource)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_no_request_lacked_a_right(played: Scene) -> None:
    # Quotas and webhooks answer 403 too; only the authorizer's word counts.
    denied = [event for event in audited(played) if event["annotations"]["authorization.k8s.io/decision"] != "allow"]
    # Nobody has rights in a namespace that does not exist: each kind is asked for there once.
    assert {(event["verb"], event["objectRef"]["namespace"]) for event in denied} <= {
        ("list", f"{played.namespace}-absent")
    }
    assert len(denied) == len({event["objectRef"]["resource"] for event in denied})


def test_every_right_is_used_and_no_other(played: Scene) -> None:
    assert used(played) == granted(played.served) - set(UNUSED)


def test_the_named_namespaces_are_the_only_ones_asked_for(played: Scene) -> None:
    if "namespaces" in played.namespace:
        subjects = [event["objectRef"] for event in audited(played) if "objectRef" in event]
        asked = {subject.get("namespace") for subject in subjects if subject["resource"] != "leases"}
        assert asked == {None, *played.served}
        # Its own Lease is where it runs.
        assert {one["namespace"] for one in subjects if one["resource"] == "leases"} == {played.account.split(":")[2]}
