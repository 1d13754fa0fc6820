"""The probe in Kueue mode over a fake API: step 9, and a gate that lets quota or a job through."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from support.backends import FakeBackends, left, make_api, unproven
from support.builders import NAMESPACE
from support.fake_api import FakeApi, always, unanswered

Object = dict[str, Any]
pytestmark = pytest.mark.looptime
JOB, WORKLOAD, COPY = "TrainJob", "Workload", "TrainingRuntime"
CHECK, GATE = "dispatch-start", "dispatch.phpboyscout.uk/start-gate"
GATED_BY = "kueue.x-k8s.io/admission-gated-by"


class Kueue:
    """What Kueue does with each TrainJob, some time after its create."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.after = 0.1
        self.annotations = {GATED_BY: GATE}
        self.checks = [CHECK]
        self.conditions: list[Object] = [{"type": "QuotaReserved", "status": "False", "reason": "AdmissionGated"}]
        self.tasks: list[asyncio.Task[None]] = []
        api.admit = lambda request, body: (
            {**body, "spec": {**body["spec"], "suspend": True}} if request.kind == JOB else body
        )
        api.watches.append(self._watch)

    def _watch(self, kind: str, obj: Object, gone: bool) -> None:
        if kind == JOB and not gone and obj["metadata"]["uid"] not in {w["metadata"]["name"] for w in self.made()}:
            self.tasks.append(asyncio.get_running_loop().create_task(self._make(obj)))

    def made(self) -> list[Object]:
        return self.api.all(WORKLOAD)

    async def _make(self, job: Object) -> None:
        uid = job["metadata"]["uid"]
        await asyncio.sleep(self.after)
        if not self.api.all(JOB) or self.made():
            return
        owner = {"apiVersion": job["apiVersion"], "kind": JOB, "name": job["metadata"]["name"], "uid": uid}
        meta = {
            "name": uid,
            "namespace": NAMESPACE,
            "labels": {"kueue.x-k8s.io/job-uid": uid},
            "annotations": self.annotations,
            "ownerReferences": [owner],
        }
        self.api.put({"kind": WORKLOAD, "metadata": meta, "spec": {"active": True}}, admissionChecks=[], conditions=[])
        await asyncio.sleep(0.1)
        checks = [{"name": name, "state": "Pending"} for name in self.checks]
        if self.made():
            self.api.edit(
                WORKLOAD,
                lambda held: held["status"].update(admissionChecks=checks, conditions=self.conditions),
            )


@pytest.fixture
async def kueue() -> Kueue:
    queue = {"queue": "team-a", "admissionCheck": CHECK}
    return Kueue(make_api(kueue=queue, timeouts={"workload": "5s"}))


async def test_a_backend_with_kueue_is_proven(kueue: Kueue) -> None:
    operator = FakeBackends(kueue.api)
    await operator.reconcile()
    assert unproven(operator.status()) == {}
    assert [entry["api"] for entry in operator.status()["proof"]["served"]] == [
        "jobset.x-k8s.io/v1alpha2",
        "kueue.x-k8s.io/v1beta2",
        "trainer.kubeflow.org/v1alpha1",
    ]
    assert left(kueue.api) == kueue.made() == []


@pytest.mark.parametrize("after", [2.5, 4.5])
async def test_a_slow_kueue_is_waited_for(kueue: Kueue, after: float) -> None:
    kueue.after = after
    operator = FakeBackends(kueue.api)
    await operator.reconcile()
    assert unproven(operator.status()) == {}


async def test_a_kueue_that_writes_all_the_time_is_no_news(kueue: Kueue) -> None:
    kueue.checks = ["other"]
    operator = FakeBackends(kueue.api)
    looking = asyncio.create_task(operator.reconcile())
    for number in range(2_000):
        await asyncio.sleep(0.01)
        if kueue.made():
            kueue.api.edit(WORKLOAD, lambda held, number=number: held["status"].update(number=number))
    await looking
    assert "does not list the admission check" in unproven(operator.status())["start-gate"]


def reserves(kueue: Kueue) -> None:
    kueue.conditions = [{"type": "QuotaReserved", "status": "True"}]


@pytest.mark.parametrize(
    ("what", "change", "want"),
    [
        ("no Workload", lambda kueue: setattr(kueue, "after", 1_000.0), "LocalQueue team-a does not exist"),
        ("no gate", lambda kueue: setattr(kueue, "annotations", {}), "lacks the gate"),
        ("no check", lambda kueue: setattr(kueue, "checks", ["other"]), "does not list the admission check"),
        ("quota", reserves, "has quota behind the closed gate"),
    ],
)
async def test_a_gate_that_kueue_does_not_keep_is_not_proven(
    kueue: Kueue, what: str, change: Callable[[Kueue], None], want: str
) -> None:
    change(kueue)
    operator = FakeBackends(kueue.api)
    await operator.reconcile()
    found = unproven(operator.status())
    assert found.keys() == {"start-gate"}, what
    assert want in found["start-gate"]
    assert left(kueue.api) == []
    for task in kueue.tasks:
        task.cancel()


def put_queue(api: FakeApi, checks: list[Object]) -> None:
    """Place the queue, its ClusterQueue with these checks, and the check."""
    active = [{"type": "Active", "status": "True"}]
    spec = {"admissionChecksStrategy": {"admissionChecks": checks}}
    here = {"name": "team-a", "namespace": NAMESPACE}
    api.put({"kind": "LocalQueue", "metadata": here, "spec": {"clusterQueue": "all"}}, conditions=active)
    api.put({"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": spec}, conditions=active)
    api.put({"kind": "AdmissionCheck", "metadata": {"name": CHECK}, "spec": {}}, conditions=active)


async def test_a_kueue_that_can_make_no_workload_says_nothing_about_the_gate(kueue: Kueue) -> None:
    put_queue(kueue.api, [{"name": CHECK}])
    operator = FakeBackends(kueue.api)
    await operator.reconcile()
    proven = operator.status()["gates"]
    kueue.after = 1_000.0
    kueue.api.edit("DispatchBackend", lambda backend: backend["spec"].update(gpuResource="amd.com/gpu"))
    await operator.reconcile()
    assert operator.status()["gates"] == proven
    (told,) = [one["message"] for one in operator.status()["conditions"] if one["type"] == "Reconciling"]
    assert "Kueue can't make Workloads" in told
    assert left(kueue.api) == []
    for task in kueue.tasks:
        task.cancel()


async def test_a_queue_that_can_not_be_read_says_nothing_about_the_gate(kueue: Kueue) -> None:
    put_queue(kueue.api, [{"name": CHECK}])
    operator = FakeBackends(kueue.api)
    await operator.reconcile()
    proven = operator.status()["gates"]
    kueue.after = 1_000.0
    kueue.api.before = always("get", "ClusterQueue", unanswered("get", "ClusterQueue"))
    kueue.api.edit("DispatchBackend", lambda backend: backend["spec"].update(gpuResource="amd.com/gpu"))
    await operator.reconcile()
    assert operator.status()["gates"] == proven
    (told,) = [one["message"] for one in operator.status()["conditions"] if one["type"] == "Reconciling"]
    assert "get ClusterQueue failed" in told
    assert left(kueue.api) == []
    for task in kueue.tasks:
        task.cancel()


async def test_a_check_that_was_taken_off_the_queue_is_a_verdict_of_a_probe(kueue: Kueue) -> None:
    put_queue(kueue.api, [])
    kueue.checks = []
    operator = FakeBackends(kueue.api)
    await operator.reconcile()
    assert f"does not name the admission check {CHECK}" in unproven(operator.status())["start-gate"]


@pytest.mark.parametrize(
    ("what", "change", "want"),
    [
        (
            "quota is reserved",
            lambda held: held["status"].update(conditions=[{"type": "QuotaReserved", "status": "True"}]),
            "has quota",
        ),
        ("it goes away", None, "went away"),
    ],
)
async def test_what_happens_to_the_workload_while_the_gate_is_held_counts(
    kueue: Kueue, what: str, change: Callable[[Object], None] | None, want: str
) -> None:
    operator = FakeBackends(kueue.api)
    looking = asyncio.create_task(operator.reconcile())
    await asyncio.sleep(1)
    begun = operator.now()
    if change:
        kueue.api.edit(WORKLOAD, change)
    else:
        kueue.api.remove(WORKLOAD, NAMESPACE, kueue.made()[0]["metadata"]["name"])
    await looking
    assert want in unproven(operator.status())["start-gate"], what
    if change:
        # The watch ends the wait at once.
        assert operator.now() - begun < 1
