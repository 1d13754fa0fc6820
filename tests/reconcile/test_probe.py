"""The preflight probe over a fake API, in virtual time: what each gate's proof takes, and when it is made again."""

from collections.abc import Callable
from typing import Any

import pytest

from dispatch_operator.kube.errors import ApiError
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.records.dispatch import DispatchBackend
from support.backends import FakeBackends, left, make_api, unproven
from support.builders import NAMESPACE, make_runtime
from support.fake_api import FakeApi, always, nth, refusal, unanswered
from support.openapi import without

Object = dict[str, Any]
pytestmark = pytest.mark.looptime
COPY, JOB, BACKEND = "TrainingRuntime", "TrainJob", "DispatchBackend"
TRAINER = "trainer.kubeflow.org/v1alpha1"
ALL = ("fields-kept", "start-gate", "collected")
DAY = 86_400.0


@pytest.fixture
def api() -> FakeApi:
    return make_api()


def conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}


def message(status: Object, kind: str) -> str:
    return str(next(entry["message"] for entry in status["conditions"] if entry["type"] == kind))


async def test_a_new_backend_is_proven_and_nothing_is_left(api: FakeApi) -> None:
    operator = FakeBackends(api)
    result = await operator.reconcile()
    status = operator.status()
    assert [gate["name"] for gate in status["gates"]] == list(ALL)
    assert all(gate["proven"] and gate["lastProbeTime"] == "2026-01-01T00:00:03Z" for gate in status["gates"])
    assert conditions(status) == {"Ready": ("True", "Proven")}
    assert status["observedGeneration"] == 1
    runtime = api.one("ClusterTrainingRuntime")["metadata"]
    assert status["proof"]["operatorVersion"] == "1.0.0"
    assert status["proof"]["backendGeneration"] == 1
    assert status["proof"]["runtime"] == {
        "kind": "ClusterTrainingRuntime",
        "name": runtime["name"],
        "uid": runtime["uid"],
        "generation": 1,
    }
    assert [entry["api"] for entry in status["proof"]["served"]] == [
        "jobset.x-k8s.io/v1alpha2",
        "kueue.x-k8s.io/v1beta2",
        TRAINER,
    ]
    assert left(api) == []
    assert not result.requeue
    assert result.requeue_after == pytest.approx(60)


async def test_the_probe_is_a_start_that_can_run_nowhere(api: FakeApi) -> None:
    made: dict[str, Object] = {}

    def keep(request: Any, body: Object) -> Object:
        made[request.kind] = body
        return body

    api.admit = keep
    await FakeBackends(api).reconcile()
    job, copy, backend = made[JOB], made[COPY], api.one(BACKEND)["metadata"]
    for obj in (job, copy):
        labels, annotations = obj["metadata"]["labels"], obj["metadata"]["annotations"]
        assert labels["dispatch.phpboyscout.uk/probe"] == "true"
        assert labels["dispatch.phpboyscout.uk/submission"] == "1"
        assert annotations["dispatch.phpboyscout.uk/start"] == "default"
        assert annotations["dispatch.phpboyscout.uk/start-uid"] == backend["uid"]
        assert annotations["dispatch.phpboyscout.uk/comment"].endswith(" g=0 n=1 a=1")
    (owner,) = job["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "dispatch.phpboyscout.uk/v1alpha1",
        "kind": BACKEND,
        "name": "default",
        "uid": backend["uid"],
        "controller": True,
    }
    assert job["spec"]["trainer"]["image"] == "dispatch.invalid/never:probe"
    assert job["spec"]["trainer"]["command"][4:] == ["true"]
    assert job["spec"]["trainer"]["numNodes"] == 1
    assert job["spec"]["suspend"] is True
    (patch,) = job["spec"]["runtimePatches"]
    for one in patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]:
        assert one["template"]["spec"]["template"]["spec"]["nodeSelector"] == {"dispatch.phpboyscout.uk/probe": "never"}


async def test_guard_rails_are_for_people_and_not_for_the_probe(api: FakeApi) -> None:
    rails = {"images": ["registry.example/*"], "maxNodes": 1, "maxGpus": 0, "maxTimeLimit": "1h"}
    api.edit("DispatchBackend", lambda held: held["spec"].update(rails, timeLimitRequired=True))
    operator = FakeBackends(api)
    await operator.reconcile()
    assert conditions(operator.status()) == {"Ready": ("True", "Proven")}


async def test_each_probe_has_a_job_id_of_its_own(api: FakeApi) -> None:
    names = set()

    def keep(_request: Any, body: Object) -> Object:
        names.add(body["metadata"]["name"])
        return body

    api.admit = keep
    operator = FakeBackends(api)
    await operator.reconcile()
    operator.ahead = DAY + 1
    await operator.reconcile()
    assert len(names) == 2


async def test_a_look_at_a_proven_backend_makes_no_write_and_a_restart_no_probe(api: FakeApi) -> None:
    operator = FakeBackends(api)
    await operator.reconcile()
    api.requests.clear()
    await operator.reconcile()
    assert api.requests == []
    await FakeBackends(api).reconcile()
    assert [str(request) for request in api.requests] == ["get Served"]


def touch_runtime(api: FakeApi) -> None:
    api.edit("ClusterTrainingRuntime", lambda held: held["spec"]["mlPolicy"].update(numNodes=2))


def replace_runtime(api: FakeApi) -> None:
    api.remove("ClusterTrainingRuntime", "", "torch-dispatch")
    api.put(make_runtime())


def serve_other(api: FakeApi) -> None:
    api.documents[TRAINER]["info"] = {"version": "another"}


@pytest.mark.parametrize(
    ("what", "change", "why"),
    [
        (
            "the backend's spec",
            lambda api: api.edit(BACKEND, lambda held: held["spec"].update(gpuResource="amd.com/gpu")),
            "the backend's spec changed",
        ),
        ("the runtime's spec", touch_runtime, "the probe runtime changed"),
        ("the runtime", replace_runtime, "the probe runtime changed"),
    ],
)
async def test_what_the_proof_rests_on_is_proven_again_at_once_when_it_changes(
    api: FakeApi, what: str, change: Callable[[FakeApi], None], why: str
) -> None:
    operator = FakeBackends(api)
    await operator.reconcile()
    change(api)
    observed: list[str] = []
    api.watches.append(
        lambda kind, obj, _gone: (
            observed.extend(
                entry["message"]
                for entry in obj["status"]["conditions"]
                if kind == BACKEND and entry["type"] != "Ready"
            )
            if kind == BACKEND
            else None
        )
    )
    await operator.reconcile()
    assert observed == [f"the gates are being probed: {why}"], what
    assert conditions(operator.status()) == {"Ready": ("True", "Proven")}
    assert operator.status()["observedGeneration"] == api.one(BACKEND)["metadata"]["generation"]
    assert left(api) == []
    api.requests.clear()
    await operator.reconcile()
    assert api.writes() == []


@pytest.mark.parametrize(
    ("ahead", "change", "want"), [(DAY - 60, None, False), (DAY + 4, None, True), (61, serve_other, True)]
)
async def test_a_day_or_another_served_crd_asks_for_a_new_proof(
    api: FakeApi, ahead: float, change: Callable[[FakeApi], None] | None, want: bool
) -> None:
    operator = FakeBackends(api)
    await operator.reconcile()
    if change:
        change(api)
    api.requests.clear()
    operator.ahead = ahead
    await operator.reconcile()
    assert bool(api.writes()) is want


async def test_another_version_of_the_operator_proves_again(api: FakeApi) -> None:
    await FakeBackends(api).reconcile()
    api.requests.clear()
    other = FakeBackends(api, version="1.0.1")
    await other.reconcile()
    assert "create TrainJob" in api.writes()
    assert other.status()["proof"]["operatorVersion"] == "1.0.1"


async def test_the_old_verdict_stands_while_it_is_made_again(api: FakeApi) -> None:
    operator = FakeBackends(api)
    await operator.reconcile()
    held: list[Object] = []

    def keep(_request: Any, body: Object) -> Object:
        held.append(operator.status())
        return body

    api.admit = keep
    operator.ahead = DAY + 4
    await operator.reconcile()
    assert [conditions(status) for status in held] == [
        {"Ready": ("True", "Proven"), "Reconciling": ("True", "Probing")}
    ] * 2
    assert all(unproven(status) == {} for status in held)


def breaks_rules(api: FakeApi) -> None:
    def change(runtime: Object) -> None:
        job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
        job |= {"backoffLimit": 3, "ttlSecondsAfterFinished": 1}

    api.edit("ClusterTrainingRuntime", change)


def prunes(field: str) -> Callable[[FakeApi], None]:
    def change(api: FakeApi) -> None:
        def admit(request: Any, body: Object) -> Object:
            if request.kind == JOB:
                del body["spec"][field]
            return body

        api.admit = admit

    return change


def deny(verb: str, kind: str, status: int = 422, text: str = "no such thing") -> Callable[[FakeApi], None]:
    return lambda api: setattr(api, "before", always(verb, kind, refusal(verb, kind, status, "Invalid", text)))


def opens_by_itself(api: FakeApi) -> None:
    def watch(kind: str, obj: Object, gone: bool) -> None:
        if kind == COPY and obj["metadata"].get("ownerReferences") and not gone:
            api.watches.remove(watch)
            # Right after it was read back.
            api.after = lambda request: _resume(api) if str(request) == "list Pod" else None

    api.watches.append(watch)


def _resume(api: FakeApi) -> None:
    api.edit(JOB, lambda job: job["spec"].update(suspend=False))


def makes_pods(api: FakeApi) -> None:
    def admit(request: Any, body: Object) -> Object:
        if request.kind == JOB:
            labels = {key: body["metadata"]["labels"][key] for key in body["metadata"]["labels"]}
            meta = {"name": f"{body['metadata']['name']}-node-0-0-x7b2f", "namespace": NAMESPACE, "labels": labels}
            api.put({"kind": "Pod", "metadata": meta})
        return body

    api.admit = admit


@pytest.mark.parametrize(
    ("what", "break_it", "want"),
    [
        (
            "a runtime that breaks rules",
            breaks_rules,
            {"fields-kept": ["no-pod-retry", "no-ttl"], "start-gate": ["not probed"], "collected": ["not probed"]},
        ),
        (
            "a runtime that does not exist",
            lambda api: api.remove("ClusterTrainingRuntime", "", "torch-dispatch"),
            {"fields-kept": ["does not exist"], "start-gate": ["not probed"], "collected": ["not probed"]},
        ),
        (
            "a pruned patch",
            prunes("runtimePatches"),
            {"fields-kept": ["spec.runtimePatches"], "start-gate": ["not probed"]},
        ),
        ("a pruned gate", prunes("suspend"), {"fields-kept": ["spec.suspend"], "start-gate": ["not probed"]}),
        (
            "a copy that is denied",
            deny("create", COPY),
            {"fields-kept": ["no such thing"], "start-gate": ["not probed"], "collected": ["not probed"]},
        ),
        (
            "a TrainJob that is denied",
            deny("create", JOB),
            {"fields-kept": ["no such thing"], "start-gate": ["not probed"], "collected": ["not probed"]},
        ),
        (
            "an owner that is denied",
            deny("patch", COPY),
            {"fields-kept": ["no such thing"], "start-gate": ["not probed"], "collected": ["not probed"]},
        ),
        ("a job that resumes by itself", opens_by_itself, {"start-gate": ["was resumed behind its closed gate"]}),
        ("a pod behind the gate", makes_pods, {"start-gate": ["pod <probe> exists"]}),
        (
            "no garbage collector",
            lambda api: setattr(api, "collects", False),
            {"collected": ["still there 30s after", "garbage collector"]},
        ),
        (
            "a field that is not served",
            lambda api: api.documents.update({TRAINER: without(api.documents[TRAINER], JOB, "spec.runtimePatches")}),
            {
                "fields-kept": ["TrainJob of trainer.kubeflow.org/v1alpha1 lacks the field spec.runtimePatches"],
                "start-gate": ["not probed"],
                "collected": ["not probed"],
            },
        ),
        (
            "an API that is not served",
            lambda api: api.documents.pop("jobset.x-k8s.io/v1alpha2"),
            {"fields-kept": ["jobset.x-k8s.io/v1alpha2 is not served"], "start-gate": [""], "collected": [""]},
        ),
    ],
)
async def test_what_fails_leaves_its_gate_unproven_with_the_reason(
    api: FakeApi, what: str, break_it: Callable[[FakeApi], None], want: dict[str, list[str]]
) -> None:
    break_it(api)
    operator = FakeBackends(api)
    result = await operator.reconcile()
    found = unproven(operator.status())
    assert found.keys() == want.keys(), what
    for gate, texts in want.items():
        assert all(text in found[gate] for text in texts), found
    assert conditions(operator.status()) == {"Ready": ("False", "ObserveOnly"), "Reconciling": ("True", "ObserveOnly")}
    assert all(f"{gate} is not proven" in message(operator.status(), "Ready") for gate in want)
    assert operator.status()["proof"]
    assert left(api) == [], what
    assert result.requeue_after is not None
    assert 1.0 <= result.requeue_after <= 60.0
    # The next probe fails in the same words, so that it wakes nobody who waits for the backend.
    before, operator.ahead = unproven(operator.status()), 120
    await operator.reconcile()
    assert unproven(operator.status()) == before


async def test_a_plain_backend_needs_no_kueue(api: FakeApi) -> None:
    del api.documents["kueue.x-k8s.io/v1beta2"]
    operator = FakeBackends(api)
    await operator.reconcile()
    assert unproven(operator.status()) == {}
    assert {"api": "kueue.x-k8s.io/v1beta2"} in operator.status()["proof"]["served"]


async def test_nothing_is_created_where_a_field_is_not_served(api: FakeApi) -> None:
    api.documents[TRAINER] = without(api.documents[TRAINER], JOB, "spec.activeDeadlineSeconds")
    await FakeBackends(api).reconcile()
    assert set(api.writes()) == {"patch DispatchBackend status"}


async def test_a_probe_that_failed_is_tried_again_with_backoff_whatever_wakes_it(api: FakeApi) -> None:
    breaks_rules(api)
    operator = FakeBackends(api)
    waits = []
    for _ in range(8):
        api.requests.clear()
        result = await operator.reconcile()
        assert result.requeue_after
        waits.append(result.requeue_after)
        # Its own writes wake it too.
        api.requests.clear()
        assert (await operator.reconcile()).requeue_after == pytest.approx(result.requeue_after)
        assert api.requests == []
        # A little more, because times of this size are rounded to a fraction of a microsecond.
        operator.ahead += result.requeue_after + 0.001
    assert 1 <= waits[0] <= 2
    assert 30 <= waits[-1] <= 60


@pytest.mark.parametrize("set_by", [-DAY, DAY])
async def test_a_clock_that_is_set_while_a_failed_probe_waits_makes_it_wait_neither_less_nor_more(
    api: FakeApi, set_by: float
) -> None:
    breaks_rules(api)
    operator = FakeBackends(api)
    wait = (await operator.reconcile()).requeue_after
    operator.set_by = set_by
    assert (await operator.reconcile()).requeue_after == pytest.approx(wait)


async def test_a_failed_probe_waits_for_nothing_once_its_ground_has_changed(api: FakeApi) -> None:
    breaks_rules(api)
    operator = FakeBackends(api)
    await operator.reconcile()
    api.edit("ClusterTrainingRuntime", lambda held: held.update(spec=make_runtime()["spec"]))
    await operator.reconcile()
    assert unproven(operator.status()) == {}


async def test_a_restart_after_a_failed_probe_makes_none_for_a_minute(api: FakeApi) -> None:
    breaks_rules(api)
    await FakeBackends(api).reconcile()
    api.requests.clear()
    restarted = FakeBackends(api)
    assert (await restarted.reconcile()).requeue_after == pytest.approx(60)
    assert api.writes() == []
    restarted.ahead = 61
    await restarted.reconcile()
    assert api.writes()


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        ("a create of the copy", lambda: nth(1, "create", COPY, unanswered("create", COPY))),
        ("a create of the TrainJob", lambda: nth(1, "create", JOB, unanswered())),
        ("a slow server", lambda: nth(1, "create", JOB, refusal("create", JOB, 429, "TooManyRequests", "later"))),
        ("the owner", lambda: nth(1, "patch", COPY, unanswered("patch", COPY))),
        ("the read-back", lambda: nth(1, "get", JOB, unanswered("get", JOB))),
        ("the pods", lambda: nth(1, "list", "Pod", unanswered("list", "Pod"))),
        ("the delete", lambda: nth(1, "delete", JOB, unanswered("delete", JOB))),
        ("the copy's end", lambda: nth(1, "get", COPY, unanswered("get", COPY))),
        ("the runtime", lambda: nth(1, "get", "ClusterTrainingRuntime", unanswered("get", "x"))),
        ("a list", lambda: nth(1, "list", JOB, unanswered("list", JOB))),
        ("the last look", lambda: nth(2, "get", COPY, unanswered("get", COPY))),
        ("the schemas", lambda: nth(1, "get", "Schemas", unanswered("get", "schemas"))),
        ("what is served", lambda: nth(1, "get", "Served", unanswered("get", "served"))),
        ("what is served now", lambda: nth(2, "get", "Served", unanswered("get", "served"))),
    ],
)
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("known", [False, True])
async def test_what_goes_unanswered_is_no_verdict_and_the_old_one_stands(
    api: FakeApi, what: str, fault: Any, where: str, known: bool
) -> None:
    operator = FakeBackends(api)
    if known:
        await operator.reconcile()
        operator.ahead = DAY + 4
        # The schemas are remembered; anything about them changes, so that they are read again.
        api.documents[TRAINER]["info"] = {"version": "another"}
    setattr(api, where, fault())
    result = await operator.reconcile()
    status = operator.status()
    if where == "after" and ("create" in what or what == "the owner"):
        # It was carried out, and found by a live read.
        assert (conditions(status), left(api)) == ({"Ready": ("True", "Proven")}, [])
        return
    assert unproven(status) == {} if known else "gates" not in status, what
    assert conditions(status)["Ready"] == (("True", "Proven") if known else ("Unknown", "Probing"))
    if not (known and "served" in what):
        assert conditions(status)["Reconciling"] == ("True", "Probing")
        assert "came to no verdict" in message(status, "Reconciling")
    assert result.requeue or result.requeue_after
    operator.ahead += (result.requeue_after or 0) + 0.001
    await operator.reconcile()
    assert conditions(operator.status()) == {"Ready": ("True", "Proven")}
    assert left(api) == []


@pytest.mark.parametrize("state", ["Closed", "ReadOnly"])
async def test_a_backend_that_takes_no_starts_is_not_probed(state: str) -> None:
    api = make_api(state=state)
    operator = FakeBackends(api)
    await operator.reconcile()
    assert conditions(operator.status()) == {"Ready": ("True", state)}
    assert "gates" not in operator.status()
    assert set(api.writes()) == {"patch DispatchBackend status"}
    api.edit(BACKEND, lambda held: held["spec"].update(state="Open"))
    await operator.reconcile()
    assert conditions(operator.status()) == {"Ready": ("True", "Proven")}
    api.edit(BACKEND, lambda held: held["spec"].update(state=state))
    api.requests.clear()
    await operator.reconcile()
    assert api.writes() == ["patch DispatchBackend status"]
    assert conditions(operator.status()) == {"Ready": ("True", state)}
    assert all(gate["proven"] for gate in operator.status()["gates"])
    assert operator.status()["observedGeneration"] == 3


async def test_a_result_is_only_written_for_the_generation_that_was_probed(api: FakeApi) -> None:
    operator = FakeBackends(api)
    change = nth(1, "list", "Pod", unanswered())

    def fault(request: Any) -> ApiError | None:
        if change(request):
            api.edit(BACKEND, lambda held: held["spec"].update(gpuResource="amd.com/gpu"))
        return None

    api.before = fault
    result = await operator.reconcile()
    assert "gates" not in operator.status()
    assert result == Result(requeue=True)
    await operator.reconcile()
    assert operator.status()["proof"]["backendGeneration"] == 2


async def test_a_verdict_is_not_written_for_a_spec_that_came_just_before_it(api: FakeApi) -> None:
    operator = FakeBackends(api)
    # The first one says that the gates are probed.
    verdict = nth(2, "patch", BACKEND, unanswered())

    def fault(request: Any) -> ApiError | None:
        if verdict(request):
            api.edit(BACKEND, lambda held: held["spec"].update(gpuResource="amd.com/gpu"))
        return None

    api.before = fault
    await operator.reconcile()
    assert "gates" not in operator.status()
    assert "proof" not in operator.status()


async def test_a_label_that_is_changed_meanwhile_changes_nothing(api: FakeApi) -> None:
    operator = FakeBackends(api)
    change = nth(1, "list", "Pod", unanswered())

    def fault(request: Any) -> ApiError | None:
        if change(request):
            api.edit(BACKEND, lambda held: held["metadata"].update(labels={"a": "b"}))
        return None

    api.before = fault
    await operator.reconcile()
    assert conditions(operator.status()) == {"Ready": ("True", "Proven")}


async def test_a_backend_that_goes_away_while_it_is_probed_is_let_go(api: FakeApi) -> None:
    operator = FakeBackends(api)
    change = nth(1, "list", "Pod", unanswered())

    def fault(request: Any) -> ApiError | None:
        if change(request):
            api.remove(BACKEND, NAMESPACE, "default")
        return None

    api.before = fault
    await operator.reconcile()
    assert left(api) == []
    await operator.reconcile()
    assert api.all(BACKEND) == []


REQUESTS = 22
"""Of one probe, from the read of what is served to its verdict."""


async def test_a_probe_makes_so_many_requests(api: FakeApi) -> None:
    await FakeBackends(api).reconcile()
    assert len(api.requests) == REQUESTS


@pytest.mark.parametrize("number", range(1, REQUESTS + 1))
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_crash_at_any_request_leaves_nothing_once_it_runs_again(api: FakeApi, number: int, where: str) -> None:
    counter = iter(range(1, 1_000))

    def crash(_request: Any) -> None:
        if next(counter) >= number:
            raise SystemExit

    setattr(api, where, crash)
    with pytest.raises(SystemExit):
        await FakeBackends(api).reconcile()
    setattr(api, where, lambda _request: None)
    restarted = FakeBackends(api)
    await restarted.reconcile()
    assert conditions(restarted.status()) == {"Ready": ("True", "Proven")}
    assert left(api) == []


@pytest.mark.parametrize("state", ["Open", "Closed"])
async def test_a_backend_that_is_gone_is_forgotten_although_the_watch_is_behind(api: FakeApi, state: str) -> None:
    # A probe reads it live first; a Closed one is written to without a read.
    api = make_api(state=state)
    operator = FakeBackends(api)
    # The watch does not tell.
    api.objects = {key: obj for key, obj in api.objects.items() if key[0] != BACKEND}
    await operator.reconcile()
    assert operator.store.get(DispatchBackend, NAMESPACE, "default") is None
    made = len(api.requests)
    result = await operator.reconcile()
    assert (result.requeue, result.requeue_after) == (False, None)
    assert len(api.requests) == made


async def test_a_backend_that_is_going_is_not_tried_again_and_again(api: FakeApi) -> None:
    operator = FakeBackends(api)
    api.watches.clear()
    api.edit(BACKEND, lambda backend: backend["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await operator.reconcile()
    result = await operator.reconcile()
    assert (result.requeue, result.requeue_after) == (False, None)
    assert api.writes() == []
