"""Kueue mode over a fake API: step 9, opening, holding, and what Kueue itself does."""

from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Result
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, Request, always, nth, refusal, unanswered
from support.faults.fault import FAULTS, Fault, Says
from support.operator import FakeOperator, conditions, message
from support.records import watched

Object = dict[str, Any]
# In virtual time: a reconcile waits for the Workload.
pytestmark = pytest.mark.looptime
JOB, WORKLOAD = "TrainJob", "Workload"
GATE = "dispatch.phpboyscout.uk/start-gate"
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
CURE = (
    f"once its cause is mended, have the job queued anew: kubectl delete workload trainjob-of-any-name -n {NAMESPACE}"
)
HELD = "dispatch.phpboyscout.uk/held"
CHECK = "dispatch-start"


def make_workload(api: FakeApi, *, gates: str = GATE, check: str | None = CHECK, **status: Any) -> Object:
    """Return the Workload that Kueue makes of the only TrainJob."""
    uid = api.one(JOB)["metadata"]["uid"]
    listed = [{"name": check, "state": "Pending", "message": ""}] if check else []
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": WORKLOAD,
        "metadata": {
            "name": "trainjob-of-any-name",
            "namespace": NAMESPACE,
            "labels": {"kueue.x-k8s.io/job-uid": uid},
            "annotations": {GATED_BY: gates} if gates else {},
            "ownerReferences": [{"kind": JOB, "name": NAME, "uid": uid}],
        },
        "spec": {"active": True},
        "status": {"admissionChecks": listed, **status},
    }


def put_workload(api: FakeApi, **fields: Any) -> Object:
    made = make_workload(api, **fields)
    return api.put(made, **made.pop("status"))


class FakeKueueApi(FakeApi):
    """A fake API whose Kueue makes a Workload as soon as a TrainJob is created, unless it is told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.makes: dict[str, Any] | None = {}
        self.operator = FakeOperator(self)

    async def create(self, kind: str, namespace: str, body: Object, *, timeout: float) -> Object:
        made = await super().create(kind, namespace, body, timeout=timeout)
        if kind == JOB and self.makes is not None:
            self.operator.store.put(watched(put_workload(self, **self.makes)))
        return made


@pytest.fixture
def api() -> FakeKueueApi:
    api = FakeKueueApi()
    backend = make_backend(kueue={"queue": "team-a", "admissionCheck": CHECK}, timeouts={"workload": "10s"})
    for obj in (make_runtime(), backend, make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else obj.pop("status", {})))
    return api


@pytest.fixture
def operator(api: FakeKueueApi) -> FakeOperator:
    # As Kueue's webhook sets it; the operator never writes it.
    api.admit = lambda request, body: (
        {**body, "spec": {**body["spec"], "suspend": True}} if request.kind == JOB else body
    )
    return api.operator


def set_gate(api: FakeApi, gate: str) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(gate=gate))


def set_workload(api: FakeApi, *, active: bool | None = None, **status: Any) -> None:
    def change(workload: Object) -> None:
        workload["status"].update(status)
        if active is not None:
            workload["spec"]["active"] = active

    api.edit(WORKLOAD, change)


def told(kind: str, status: str, reason: str, text: str = "said so") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": text}


async def opened(api: FakeApi, operator: FakeOperator) -> Object:
    await operator.settle()
    set_gate(api, "Open")
    return await operator.settle()


async def test_a_gated_workload_ends_the_start_in_the_same_look(api: FakeKueueApi, operator: FakeOperator) -> None:
    await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == ("Gated", ("True", "Gated"))
    assert [str(request) for request in api.requests] == [
        "get ClusterTrainingRuntime",
        "create TrainingRuntime",
        "create TrainJob",
        "patch TrainingRuntime",
        "get TrainJob",
        "get Workload",
        "patch DispatchStart status",
    ]
    assert "suspend" not in api.one(JOB)["metadata"].get("managedFields", "")


LACKING = [
    ("no Workload", None, "no Workload of the TrainJob exists"),
    ("no gate", {"gates": ""}, f"lacks the gate {GATE}"),
    ("another gate", {"gates": "other.example/gate"}, f"lacks the gate {GATE}"),
    ("no check", {"check": None}, f"does not list the admission check {CHECK}"),
    ("another check", {"check": "other"}, f"does not list the admission check {CHECK}"),
]


@pytest.mark.parametrize(("what", "makes", "want"), LACKING)
async def test_what_is_missing_is_waited_for_and_then_refused(
    api: FakeKueueApi, operator: FakeOperator, what: str, makes: dict[str, Any] | None, want: str
) -> None:
    api.makes = makes
    result = await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == (
        "Starting",
        ("Unknown", "WaitingForWorkload"),
    ), what
    assert want in message(start, "WorkloadGated")
    assert result.requeue_after == pytest.approx(11)
    # There is no LocalQueue.
    operator.now += 12
    await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == ("Stopping", ("False", "ErrRejected"))
    assert want in message(start, "WorkloadGated")
    api.collect()
    start = await operator.settle()
    assert start["status"]["phase"] == "Refused"
    assert api.all(JOB) == []
    assert api.all("TrainingRuntime") == []


@pytest.mark.parametrize("edited", [{"queue": "team-b"}, {"admissionCheck": "another"}, None])
async def test_a_backend_that_is_edited_while_the_workload_is_awaited_is_no_difference(
    api: FakeKueueApi, operator: FakeOperator, edited: Object | None
) -> None:
    api.makes = None
    await operator.reconcile()
    assert conditions(operator.start())["Started"] == ("Unknown", "WaitingForWorkload")
    kueue = {"queue": "team-a", "admissionCheck": CHECK}
    api.edit("DispatchBackend", lambda backend: backend["spec"].update(kueue=edited and {**kueue, **edited}))
    await operator.reconcile()
    assert conditions(operator.start())["Started"] == ("Unknown", "WaitingForWorkload")
    put_workload(api)
    assert (await operator.settle())["status"]["phase"] == "Gated"
    assert conditions(operator.start())["WorkloadGated"] == ("True", "Gated")
    assert api.one(JOB)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert all(gate["proven"] for gate in api.one("DispatchBackend")["status"]["gates"])


async def test_a_workload_that_comes_late_is_in_time(api: FakeKueueApi, operator: FakeOperator) -> None:
    api.makes = None
    await operator.reconcile()
    operator.now += 5
    put_workload(api)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"


def queue(name: str = "team-a") -> Object:
    return {
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterQueue": "cluster-queue"},
    }


def stopped(local_queue: Object) -> Object:
    spec = {**local_queue["spec"], "stopPolicy": "Hold"}
    return {**local_queue, "spec": spec, "status": {"conditions": [told("Active", "False", "Stopped", "on hold")]}}


def cluster_queue(checks: list[Object] | None, active: str = "True") -> Object:
    return {
        "kind": "ClusterQueue",
        "metadata": {"name": "cluster-queue"},
        "spec": {"admissionChecksStrategy": {"admissionChecks": checks or []}},
        "status": {"conditions": [told("Active", active, "Stopped", "it is stopped")]},
    }


def check(active: str | None = "True") -> Object:
    made: Object = {"kind": "AdmissionCheck", "metadata": {"name": CHECK}, "status": {}}
    if active:
        made["status"] = {"conditions": [told("Active", active, "NotReady", "no config")]}
    return made


BOUND = [{"name": CHECK}]


@pytest.mark.parametrize(
    ("objects", "makes", "want"),
    [
        ([check()], None, "LocalQueue team-a does not exist"),
        ([stopped(queue()), cluster_queue(BOUND), check()], None, "LocalQueue team-a is not active: Stopped: on hold"),
        ([queue(), check()], None, "ClusterQueue cluster-queue of LocalQueue team-a does not exist"),
        (
            [queue(), cluster_queue(BOUND, "False"), check()],
            None,
            "ClusterQueue cluster-queue is not active: Stopped: it is",
        ),
        ([queue(), cluster_queue(BOUND)], None, f"AdmissionCheck {CHECK} does not exist"),
        ([queue(), cluster_queue(BOUND), check("False")], None, f"AdmissionCheck {CHECK} is not active: NotReady"),
        ([queue(), cluster_queue(BOUND), check(None)], None, "no controller has marked it"),
        ([queue(), cluster_queue(None), check()], {"check": None}, f"does not name the admission check {CHECK}"),
        (
            [queue(), cluster_queue([{"name": CHECK, "onFlavors": ["a100", "h100"]}]), check()],
            {"check": None},
            "to the flavors a100, h100 only",
        ),
        (
            [queue(), cluster_queue(BOUND), check()],
            {"gates": ""},
            "older than 0.19 or its feature AdmissionGatedBy is off",
        ),
        ([queue(), cluster_queue(BOUND), check()], None, "Kueue can't make Workloads"),
    ],
)
async def test_it_says_why_when_it_is_known(
    api: FakeKueueApi, operator: FakeOperator, objects: list[Object], makes: dict[str, Any] | None, want: str
) -> None:
    put_all(api, objects)
    api.makes = makes
    await operator.reconcile()
    operator.now += 12
    await operator.reconcile()
    assert want in message(operator.start(), "WorkloadGated")


def put_all(api: FakeApi, objects: list[Object]) -> None:
    for obj in objects:
        made = dict(obj)
        api.put(made, **made.pop("status", {}))


@pytest.mark.parametrize(
    ("what", "objects", "makes", "want"),
    [
        (
            "Kueue can make no Workload",
            [queue(), cluster_queue(BOUND), check()],
            None,
            "see whether its controller runs",
        ),
        ("the check was taken off", [queue(), cluster_queue(None), check()], {"check": None}, "does not name"),
        ("no controller has marked the check yet", [queue(), cluster_queue(BOUND), check(None)], None, "no controller"),
        ("the check was put back", [queue(), cluster_queue(BOUND), check()], {"check": None}, "does not list"),
    ],
)
async def test_what_may_pass_is_waited_for_and_then_told_as_what_it_is(
    api: FakeKueueApi,
    operator: FakeOperator,
    what: str,
    objects: list[Object],
    makes: dict[str, Any] | None,
    want: str,
) -> None:
    put_all(api, objects)
    api.makes = makes
    await operator.reconcile()
    operator.now += 12
    result = await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == (
        "Starting",
        ("Unknown", "WaitingForWorkload"),
    ), what
    assert want in message(start, "WorkloadGated")
    assert "until 10 times 10s have passed" in message(start, "WorkloadGated")
    assert result.requeue_after == pytest.approx(101 - 12)
    operator.now += 101 - 12
    await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == ("Stopping", ("False", "ErrRejected"))
    assert want in message(start, "WorkloadGated")
    assert "after 10 times 10s" in message(start, "WorkloadGated")


async def test_a_workload_that_comes_after_an_outage_is_in_time(api: FakeKueueApi, operator: FakeOperator) -> None:
    put_all(api, [queue(), cluster_queue(BOUND), check()])
    api.makes = None
    await operator.reconcile()
    operator.now += 60
    await operator.reconcile()
    put_workload(api)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"


@pytest.mark.parametrize("exists", [True, False])
async def test_a_priority_class_is_asked_for_and_missed(
    api: FakeKueueApi, operator: FakeOperator, *, exists: bool
) -> None:
    put_all(api, [queue(), cluster_queue(BOUND), check()])
    if exists:
        api.put({"kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}})
    api.edit("DispatchBackend", lambda backend: backend["spec"]["kueue"].update(priorityClass="urgent"))
    api.makes = None
    await operator.reconcile()
    assert api.one(JOB)["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "urgent"
    operator.now += 12
    await operator.reconcile()
    told = message(operator.start(), "WorkloadGated")
    assert ("WorkloadPriorityClass urgent does not exist" in told) is not exists


SET_UP = ("LocalQueue", "ClusterQueue", "AdmissionCheck", "WorkloadPriorityClass")
IN_PASSING = [
    fault
    for fault in FAULTS
    if "get" in fault.verbs and fault.says is not Says.NO and not fault.carried_out and "authorizer" not in fault.name
]


async def overdue(api: FakeKueueApi, operator: FakeOperator, *set_up: Object) -> None:
    """Let a Start wait for its Workload until `timeouts.workload` has passed."""
    put_all(api, [*set_up, {"kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}}])
    api.edit("DispatchBackend", lambda backend: backend["spec"]["kueue"].update(priorityClass="urgent"))
    api.makes = None
    await operator.reconcile()
    operator.now += 12


def fails(kind: str, fault: Fault) -> Callable[[Request], ApiError | None]:
    return lambda request: fault.error(request) if (request.verb, request.kind) == ("get", kind) else None


@pytest.mark.parametrize("retry", ["OnChange", "Never"])
@pytest.mark.parametrize("fault", IN_PASSING, ids=str)
@pytest.mark.parametrize("kind", SET_UP)
async def test_a_set_up_that_can_not_be_read_in_passing_is_no_verdict(
    api: FakeKueueApi, operator: FakeOperator, kind: str, fault: Fault, retry: str
) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(retry=retry))
    await overdue(api, operator, queue(), cluster_queue(BOUND), check())
    api.before = fails(kind, fault)
    result = await operator.reconcile()
    assert result == Result(requeue=True, retry_after=fault.error(Request("get", kind, "")).retry_after)
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == ("Starting", ("False", "ErrUnreachable"))
    head = f"no Workload of the TrainJob exists, after 10s; why is not known yet: get {kind}"
    assert message(start, "WorkloadGated").startswith(head)
    # It lasts: longer than what may pass is waited for, and failing in other ways.
    written = len(api.writes())
    for other in IN_PASSING:
        api.before = fails(kind, other)
        operator.now += 60
        assert (await operator.reconcile()).requeue
    assert len(api.writes()) == written
    assert len(api.all(JOB)) == 1
    # It ends, and the time of the outage does not count.
    api.before = lambda _: None
    result = await operator.reconcile()
    assert result.requeue_after == pytest.approx(101)
    start = operator.start()
    assert conditions(start)["WorkloadGated"] == ("Unknown", "WaitingForWorkload")
    assert "Kueue can't make Workloads" in message(start, "WorkloadGated")
    put_workload(api)
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"


async def test_what_can_not_become_right_is_a_verdict_as_soon_as_it_can_be_read(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await overdue(api, operator, check())
    api.before = fails("LocalQueue", IN_PASSING[0])
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Starting"
    api.before = lambda _: None
    await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)["WorkloadGated"]) == ("Stopping", ("False", "ErrRejected"))
    assert "LocalQueue team-a does not exist" in message(start, "WorkloadGated")


async def test_what_is_known_of_the_set_up_needs_not_the_rest(api: FakeKueueApi, operator: FakeOperator) -> None:
    await overdue(api, operator, check())
    api.before = fails("AdmissionCheck", IN_PASSING[0])
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (404, "")])
async def test_a_set_up_that_may_not_be_read_is_told_and_does_not_count(
    api: FakeKueueApi, operator: FakeOperator, status: int, reason: str
) -> None:
    """No right, or a kind that is not served: that does not pass."""
    await overdue(api, operator)
    api.before = lambda request: refusal("get", request.kind, status, reason, "no") if request.kind in SET_UP else None
    result = await operator.reconcile()
    assert result.requeue_after == pytest.approx(101 - 12)
    told = message(operator.start(), "WorkloadGated")
    assert "no Workload of the TrainJob exists, after 10s (perhaps because Kueue can't" in told
    assert f"not known, because get LocalQueue failed ({status})" in told
    operator.now += 102
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"


async def test_a_wait_goes_on_from_where_it_began_after_a_read_that_failed(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await overdue(api, operator, check())
    api.before = nth(1, "list", WORKLOAD, unanswered("list"))
    await operator.reconcile()
    assert conditions(operator.start())["WorkloadGated"] == ("False", "ErrUnreachable")
    api.before = lambda _: None
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Stopping"


@pytest.mark.parametrize("verb", ["get", "list"])
async def test_a_workload_that_can_not_be_read_stops_nothing(
    api: FakeKueueApi, operator: FakeOperator, verb: str
) -> None:
    if verb == "list":
        api.makes = None
        await operator.reconcile()
        operator.now += 12
    api.before = nth(1, verb, WORKLOAD, unanswered(verb))
    result = await operator.reconcile()
    assert result.requeue
    assert operator.start()["status"]["phase"] == "Starting"
    assert len(api.all(JOB)) == 1


async def test_a_workload_that_only_a_live_read_finds_is_enough(api: FakeKueueApi, operator: FakeOperator) -> None:
    api.makes = None
    await operator.reconcile()
    operator.now += 12
    operator.watch()
    put_workload(api)
    await operator.reconcile(stale=True)
    assert operator.start()["status"]["phase"] == "Gated"


@pytest.mark.parametrize(
    ("held", "want"), [(GATE, None), (f"{GATE},other.example/gate", "other.example/gate"), (f"a.b/c, {GATE}", "a.b/c")]
)
async def test_opening_removes_our_name_and_leaves_the_others(
    api: FakeKueueApi, operator: FakeOperator, held: str, want: str | None
) -> None:
    await operator.settle()
    api.edit(JOB, lambda job: job["metadata"]["annotations"].update({GATED_BY: held}))
    set_gate(api, "Open")
    start = await operator.settle()
    assert api.one(JOB)["metadata"]["annotations"].get(GATED_BY) == want
    assert start["status"]["phase"] == "Queued"
    if want:
        assert f"other gates hold it: {want}" in message(start, "Succeeded")


async def test_a_gate_that_others_change_meanwhile_loses_no_name(api: FakeKueueApi, operator: FakeOperator) -> None:
    await operator.settle()
    set_gate(api, "Open")
    operator.watch()
    api.edit(JOB, lambda job: job["metadata"]["annotations"].update({GATED_BY: f"{GATE},late.example/gate"}))
    await operator.reconcile(stale=True)
    assert api.one(JOB)["metadata"]["annotations"][GATED_BY] == "late.example/gate"


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (
            {"conditions": [told("QuotaReserved", "False", "WaitingForQuota", "1 more needed")]},
            "WaitingForQuota: 1 more needed",
        ),
        ({"conditions": []}, "no quota is reserved yet"),
        (
            {"conditions": [told("QuotaReserved", "False", "AdmissionGated", f"Admission is gated by: {GATE}")]},
            "Kueue looks at it next",
        ),
        (
            {
                "conditions": [told("QuotaReserved", "True", "QuotaReserved")],
                "admissionChecks": [
                    {"name": CHECK, "state": "Ready", "message": ""},
                    {"name": "provision", "state": "Pending", "message": "no nodes yet"},
                    {"name": "silent", "state": "Retry", "message": ""},
                ],
            },
            "admission check provision is Pending: no nodes yet; admission check silent is Retry",
        ),
    ],
)
async def test_queued_carries_kueues_own_reason(
    api: FakeKueueApi, operator: FakeOperator, status: Object, want: str
) -> None:
    await opened(api, operator)
    api.edit(WORKLOAD, lambda workload: workload["metadata"].update(annotations={}))
    set_workload(api, **status)
    start = await operator.settle()
    assert start["status"]["phase"] == "Queued"
    assert want in message(start, "Succeeded")


async def test_an_admitted_job_runs(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    set_workload(api, conditions=[told("Admitted", "True", "Admitted")])
    start = await operator.settle()
    assert message(start, "Succeeded") == "the gate is open; no pod of the job exists yet"
    api.edit(JOB, lambda job: job.update(status={"jobsStatus": [{"name": "node", "ready": 1, "active": 1}]}))
    assert (await operator.settle())["status"]["phase"] == "Running"


async def test_pods_that_no_node_tolerates_are_told_with_what_the_flavor_may_lack(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await opened(api, operator)
    set_workload(api, conditions=[told("Admitted", "True", "Admitted")])
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    request = make_start()["spec"]["request"]
    labels = {"dispatch.phpboyscout.uk/job-id": request["job"], "dispatch.phpboyscout.uk/submission": "1"}

    async def says(cause: str) -> str:
        meta = {"name": "pod-0", "namespace": NAMESPACE, "labels": labels}
        api.put({"kind": "Pod", "metadata": meta}, phase="Pending", conditions=[{**condition, "message": cause}])
        operator.now += 120
        return message(await operator.settle(), "Succeeded")

    untolerated = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    remedy = "pods may have the tolerations of Kueue's ResourceFlavor alone: state every one there"
    told_of = await says(untolerated)
    assert untolerated in told_of
    assert remedy in told_of
    assert remedy not in await says("0/2 nodes are available: 2 Insufficient cpu.")


async def test_a_job_whose_workload_was_deleted_does_not_run(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    set_workload(api, conditions=[told("Admitted", "True", "Admitted")])
    running = {"jobsStatus": [{"name": "node", "ready": 1, "active": 1}]}
    api.edit(JOB, lambda job: (job["spec"].update(suspend=False), job.update(status=running)))
    assert (await operator.settle())["status"]["phase"] == "Running"
    del api.objects[WORKLOAD, NAMESPACE, "trainjob-of-any-name"]
    assert (await operator.settle())["status"]["phase"] == "Running"
    api.edit(JOB, lambda job: job["spec"].update(suspend=True))
    start = await operator.settle()
    assert start["status"]["phase"] == "Queued"
    assert "Kueue has no Workload" in message(start, "Succeeded")


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        ([stopped(queue()), cluster_queue(BOUND), check()], "LocalQueue team-a is not active: Stopped: on hold"),
        ([queue(), cluster_queue(BOUND, "False"), check()], "ClusterQueue cluster-queue is not active: Stopped: it is"),
        ([queue(), cluster_queue(BOUND), check("False")], f"AdmissionCheck {CHECK} is not active: NotReady: no config"),
        ([queue(), cluster_queue(BOUND)], f"AdmissionCheck {CHECK} does not exist"),
        ([], "LocalQueue team-a does not exist"),
    ],
)
async def test_what_of_the_queues_keeps_a_job_back_is_told_and_read_again_in_a_minute(
    api: FakeKueueApi, operator: FakeOperator, objects: list[Object], want: str
) -> None:
    put_all(api, objects)
    await opened(api, operator)
    api.edit(WORKLOAD, lambda workload: workload["metadata"].update(annotations={}))
    set_workload(api, conditions=[told("QuotaReserved", "False", "Inadmissible", "a queue is inactive")])
    start = await operator.settle()
    assert f"Kueue waits: Inadmissible: a queue is inactive; {want}" in message(start, "Succeeded")
    api.requests.clear()
    result = await operator.reconcile()
    assert (result.requeue_after, message(operator.start(), "Succeeded")) == (60, message(start, "Succeeded"))
    set_workload(api, conditions=[told("QuotaReserved", "False", "WaitingForQuota", "1 more needed")])
    start = await operator.settle()
    assert message(start, "Succeeded") == "the gate is open; Kueue waits: WaitingForQuota: 1 more needed"


async def test_a_queue_that_can_not_be_read_is_asked_for_once(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    api.edit(WORKLOAD, lambda workload: workload["metadata"].update(annotations={}))
    set_workload(api, conditions=[told("QuotaReserved", "False", "Inadmissible", "a queue is inactive")])
    api.before = lambda request: (
        refusal("get", request.kind, 403, "Forbidden", "no") if request.kind.endswith(("Queue", "Check")) else None
    )
    start = await operator.settle()
    assert message(start, "Succeeded") == "the gate is open; Kueue waits: Inadmissible: a queue is inactive"


async def test_another_gate_is_told_alone(api: FakeKueueApi, operator: FakeOperator) -> None:
    await operator.settle()
    other = "other.example/gate"
    api.edit(JOB, lambda job: job["metadata"]["annotations"].update({GATED_BY: f"{GATE},{other}"}))
    gated = told("QuotaReserved", "False", "AdmissionGated", f"Admission is gated by: {GATE},{other}")
    set_workload(api, conditions=[gated])
    set_gate(api, "Open")
    start = await operator.settle()
    assert message(start, "Succeeded") == f"the gate is open; other gates hold it: {other}"


async def test_what_kueue_keeps_out_of_its_queue_is_told_with_the_way_out(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await opened(api, operator)
    set_workload(api, conditions=[told("Requeued", "False", "DeactivatedDueToAdmissionCheck")])
    start = await operator.settle()
    assert "keeps it out of its queue: DeactivatedDueToAdmissionCheck" in message(start, "Succeeded")
    assert CURE in message(start, "Succeeded")


async def test_a_check_that_was_rejected_while_the_job_was_held_is_told_with_the_way_out(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await opened(api, operator)
    api.edit(WORKLOAD, lambda workload: workload["metadata"].update(annotations={}))
    checks = [
        {"name": CHECK, "state": "Ready", "message": ""},
        {"name": "provision", "state": "Rejected", "message": "no nodes"},
    ]
    failed = told("QuotaReserved", "False", "Pending", "The workload has failed admission checks")
    reactivated = told("Requeued", "True", "Reactivated")
    set_workload(api, conditions=[failed, reactivated], admissionChecks=checks)
    start = await operator.settle()
    assert message(start, "Succeeded") == f"the gate is open; admission check provision is Rejected: no nodes; {CURE}"


async def test_a_preempted_job_is_queued_again_and_counted(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    evictions = [
        {"reason": "Preempted", "underlyingCause": "", "count": 2},
        {"reason": "Deactivated", "underlyingCause": "", "count": 5},
        {"reason": "Deactivated", "underlyingCause": "RequeuingLimitExceeded", "count": 1},
    ]
    preempted = told("QuotaReserved", "False", "Pending", "Preempted to accommodate a workload")
    set_workload(api, conditions=[preempted], schedulingStats={"evictions": evictions})
    start = await operator.settle()
    assert (start["status"]["phase"], start["status"]["evictions"]) == ("Queued", 3)
    assert "Preempted to accommodate" in message(start, "Succeeded")


async def test_holding_is_recorded_before_the_workload_is_deactivated(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await opened(api, operator)
    api.requests.clear()
    set_gate(api, "Held")
    start = await operator.settle()
    assert api.one(WORKLOAD)["spec"]["active"] is False
    assert start["status"]["phase"] == "Held"
    assert "Reconciling" not in conditions(start)
    assert api.writes() == ["patch DispatchStart status", "patch Workload", "patch DispatchStart status"]
    assert api.one(WORKLOAD)["metadata"]["annotations"][HELD] == str(start["metadata"]["generation"])
    set_gate(api, "Open")
    start = await operator.settle()
    assert api.one(WORKLOAD)["spec"]["active"] is True
    assert HELD not in api.one(WORKLOAD)["metadata"]["annotations"]
    assert start["status"]["phase"] == "Queued"


async def test_a_crash_between_the_wish_and_the_deactivation_is_resumed(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await opened(api, operator)
    set_gate(api, "Held")

    def crash(request: Request) -> None:
        if str(request) == "patch Workload":
            raise SystemExit

    api.before = crash
    with pytest.raises(SystemExit):
        await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Holding"
    assert conditions(operator.start())["Reconciling"] == ("True", "Closing")
    api.before = lambda _request: None
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(WORKLOAD)["spec"]["active"]) == ("Held", False)


async def held(api: FakeApi, operator: FakeOperator) -> Object:
    await opened(api, operator)
    set_gate(api, "Held")
    return await operator.settle()


async def test_a_hold_that_fails_is_not_told_as_held(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    set_gate(api, "Held")
    dead = refusal("patch", WORKLOAD, 500, "InternalError", 'failed calling webhook "vworkload.kb.io"')
    api.before = always("patch", WORKLOAD, dead)
    result = await operator.reconcile()
    start = operator.start()
    assert (result.requeue, start["status"]["phase"]) == (True, "Holding")
    assert "vworkload.kb.io" in message(start, "Reconciling")
    api.before = lambda _request: None
    assert (await operator.settle())["status"]["phase"] == "Held"


async def test_a_job_is_held_once_kueue_has_suspended_it(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    api.edit(JOB, lambda job: job["spec"].update(suspend=False))
    set_gate(api, "Held")
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(WORKLOAD)["spec"]["active"]) == ("Holding", False)
    assert conditions(start)["Reconciling"] == ("True", "Closing")
    assert "Kueue has not suspended the TrainJob yet" in message(start, "Succeeded")
    api.edit(JOB, lambda job: job["spec"].update(suspend=True))
    start = await operator.settle()
    assert start["status"]["phase"] == "Held"
    assert "Reconciling" not in conditions(start)


async def test_a_hold_before_queued_was_recorded_is_told_as_held(api: FakeKueueApi, operator: FakeOperator) -> None:
    await operator.settle()
    set_gate(api, "Open")

    def changes_their_mind(request: Request) -> None:
        if str(request) == "patch TrainJob":
            api.after = lambda _request: None
            set_gate(api, "Held")

    api.after = changes_their_mind
    await operator.reconcile()
    assert operator.start()["status"]["phase"] == "Gated"
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(WORKLOAD)["spec"]["active"]) == ("Held", False)


async def test_what_is_inactive_already_is_held_and_not_touched(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    set_workload(api, active=False)
    set_gate(api, "Held")
    assert (await operator.settle())["status"]["phase"] == "Held"
    set_gate(api, "Open")
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(WORKLOAD)["spec"]["active"]) == ("Queued", False)
    assert "patch Workload" not in api.writes()


@pytest.mark.parametrize("mark", ["9", "three", ""])
async def test_a_hold_of_a_newer_wish_or_of_nobodys_is_not_released(
    api: FakeKueueApi, operator: FakeOperator, mark: str
) -> None:
    await held(api, operator)
    api.edit(WORKLOAD, lambda workload: workload["metadata"]["annotations"].update({HELD: mark}))
    set_gate(api, "Open")
    await operator.settle()
    assert api.one(WORKLOAD)["spec"]["active"] is False


async def test_a_hold_that_lands_after_the_release_is_released(api: FakeKueueApi, operator: FakeOperator) -> None:
    before = await held(api, operator)
    set_gate(api, "Open")
    await operator.settle()
    generation = str(before["metadata"]["generation"])
    api.edit(WORKLOAD, lambda workload: workload["metadata"]["annotations"].update({HELD: generation}))
    set_workload(api, active=False)
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(WORKLOAD)["spec"]["active"]) == ("Queued", True)


async def test_a_release_looks_for_a_hold_that_no_watch_told_of(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    operator.watch()
    stale = operator.store.workload(NAMESPACE, api.one(JOB)["metadata"]["uid"])
    assert stale
    set_gate(api, "Held")
    await operator.settle()
    set_gate(api, "Open")
    operator.watch()
    operator.store.put(stale)
    await operator.reconcile(stale=True)
    assert api.one(WORKLOAD)["spec"]["active"] is True


async def test_a_release_that_others_overtake_is_made_again(api: FakeKueueApi, operator: FakeOperator) -> None:
    await held(api, operator)
    set_gate(api, "Open")
    operator.watch()
    set_workload(api, requeueState={})
    await operator.reconcile(stale=True)
    assert api.one(WORKLOAD)["spec"]["active"] is True


@pytest.mark.parametrize("going", [True, False])
async def test_a_held_job_whose_workload_goes_is_being_held_until_another_is(
    api: FakeKueueApi, operator: FakeOperator, *, going: bool
) -> None:
    await held(api, operator)
    if going:
        api.edit(WORKLOAD, lambda workload: workload["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
        want = "is being deleted; Kueue makes another"
    else:
        del api.objects[WORKLOAD, NAMESPACE, "trainjob-of-any-name"]
        want = "Kueue has no Workload for the job"
    start = await operator.settle()
    assert start["status"]["phase"] == "Holding"
    assert want in message(start, "Reconciling")
    api.objects.pop((WORKLOAD, NAMESPACE, "trainjob-of-any-name"), None)
    put_workload(api, gates="")
    start = await operator.settle()
    assert (start["status"]["phase"], api.one(WORKLOAD)["spec"]["active"]) == ("Held", False)


async def test_a_workload_that_kueue_deactivated_is_reported_and_not_fought(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    await opened(api, operator)
    evicted = told("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "exceeded the number of re-queues")
    set_workload(api, active=False, conditions=[evicted])
    start = await operator.settle()
    assert api.one(WORKLOAD)["spec"]["active"] is False
    assert start["status"]["phase"] == "Queued"
    assert "Kueue deactivated the job: DeactivatedDueToRequeuingLimitExceeded" in message(start, "Succeeded")


async def test_a_job_without_a_workload_waits_to_be_held(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    del api.objects[WORKLOAD, NAMESPACE, "trainjob-of-any-name"]
    start = await operator.settle()
    assert "Kueue has no Workload" in message(start, "Succeeded")
    set_gate(api, "Held")
    await operator.settle()
    put_workload(api, gates="")
    await operator.settle()
    assert api.one(WORKLOAD)["spec"]["active"] is False


@pytest.mark.parametrize("kind", [JOB, WORKLOAD])
async def test_what_undoes_the_gate_is_met_with_patience(api: FakeKueueApi, operator: FakeOperator, kind: str) -> None:
    await operator.settle()
    if kind == WORKLOAD:
        await opened(api, operator)
    patch = api.patch

    async def undone(held: str, namespace: str, name: str, body: Object, **options: Any) -> Object:
        made = await patch(held, namespace, name, body, **options)
        if held == JOB:
            made["metadata"]["annotations"][GATED_BY] = GATE
        if held == WORKLOAD:
            made["spec"]["active"] = True
        return made

    api.patch = undone  # type: ignore[method-assign]
    set_gate(api, "Open" if kind == JOB else "Held")
    result = await operator.reconcile()
    assert result.requeue
    assert "moved it back at once" in message(operator.start(), "Reconciling")


async def test_a_failing_hold_is_tried_again(api: FakeKueueApi, operator: FakeOperator) -> None:
    await opened(api, operator)
    set_gate(api, "Held")
    api.before = always("patch", WORKLOAD, refusal("patch", WORKLOAD, 429, "TooManyRequests", "later"))
    assert (await operator.reconcile()).requeue
    assert conditions(operator.start())["Reconciling"] == ("True", "Closing")
    api.before = always("patch", WORKLOAD, refusal("patch", WORKLOAD, 409, "Conflict", "uid"))
    assert (await operator.reconcile()).requeue
    api.before = lambda _request: None
    await operator.settle()
    assert api.one(WORKLOAD)["spec"]["active"] is False


async def test_a_job_that_kueue_suspends_anyway_is_reported_and_not_fought(
    api: FakeKueueApi, operator: FakeOperator
) -> None:
    api.edit("DispatchBackend", lambda backend: backend["spec"].pop("kueue"))
    api.makes = {"gates": "", "check": None, "conditions": [told("QuotaReserved", "False", "Pending", "no quota")]}
    await operator.reconcile()
    assert "WorkloadGated" not in conditions(operator.start())
    for gate in ("Closed", "Open"):
        set_gate(api, gate)
        start = await operator.settle()
        assert conditions(start)["Ready"] == ("True", "ManagedByKueue")
        assert "no quota" in message(start, "Succeeded")
    assert api.one(JOB)["spec"]["suspend"] is True
    assert "patch TrainJob" not in api.writes()
    api.edit(JOB, lambda job: job.update(status={"jobsStatus": [{"name": "node", "ready": 1}]}))
    set_workload(api, conditions=[told("Admitted", "True", "Admitted")])
    start = await operator.settle()
    assert start["status"]["phase"] == "Running"
    assert "it is admitted" in message(start, "Succeeded")


@pytest.mark.parametrize("gate", ["Closed", "Open", "Held"])
async def test_a_cancelled_job_is_stopped_and_its_workload_left_to_kueue(
    api: FakeKueueApi, operator: FakeOperator, gate: str
) -> None:
    await operator.reconcile()
    for wish in ("Open", gate) if gate != "Closed" else ():
        api.edit("DispatchStart", lambda start, wish=wish: start["spec"].update(gate=wish))  # type: ignore[misc]
        await operator.settle()
    api.requests.clear()
    api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    start = await operator.settle()
    assert start["status"]["phase"] == "Cancelled"
    assert conditions(start)["WorkloadGated"] == ("True", "Gated")
    assert api.writes() == ["patch DispatchStart status", "delete TrainJob", "patch DispatchStart status"]
