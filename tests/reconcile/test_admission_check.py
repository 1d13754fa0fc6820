"""The AdmissionCheck controller over a fake API."""

from dataclasses import replace
from typing import Any

import pytest

from dispatch_operator.controllers.admission_check import AdmissionChecks
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from support.builders import NAME, NAMESPACE, make_condition, make_start
from support.fake_api import FakeApi, always, refusal
from support.records import watched

Object = dict[str, Any]
WORKLOAD, CHECK = "Workload", "dispatch-start"
KEY = Key(NAMESPACE, "work")


def make_check(name: str = CHECK, controller: str = "dispatch.phpboyscout.uk/start", **status: Any) -> Object:
    return {
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "spec": {"controllerName": controller},
        "status": status,
    }


def make_job(*, labels: dict[str, str] | None = None, uid: str = "job-uid", marks: bool = True) -> Object:
    return {
        "kind": "TrainJob",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": uid,
            "labels": {"app.kubernetes.io/managed-by": "dispatch-operator"} if labels is None else labels,
            "annotations": {
                "dispatch.phpboyscout.uk/start": "llama-s1",
                "dispatch.phpboyscout.uk/start-uid": "start-uid",
            }
            if marks
            else {},
        },
        "spec": {},
    }


def started(gate: str, *, uid: str = "start-uid", reference: str = "job-uid", status: str = "True") -> Object:
    made = make_start(gate=gate)
    made["metadata"]["uid"] = uid
    made["status"] = {
        "phase": "Gated",
        "reference": {"name": f"{NAMESPACE}/{NAME}", "uid": reference},
        "conditions": [make_condition("Started", status)],
    }
    return made


def refused() -> Object:
    return make_start() | {"status": {"phase": "Refused", "conditions": [make_condition("Started", "False")]}}


def cancelled() -> Object:
    return make_start(gate="Cancelled") | {"status": {"phase": "Cancelled"}}


def make_workload(state: str = "Pending", *, check: str = CHECK, owners: list[Object] | None = None) -> Object:
    return {
        "kind": WORKLOAD,
        "metadata": {
            "name": "work",
            "namespace": NAMESPACE,
            "ownerReferences": [{"kind": "TrainJob", "name": NAME, "uid": "job-uid"}] if owners is None else owners,
        },
        "spec": {},
        "status": {"admissionChecks": [{"name": check, "state": state, "message": ""}]},
    }


class ApplyingApi(FakeApi):
    """A fake API that keeps what is applied to a status."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[Object] = []

    async def apply_status(
        self, kind: str, namespace: str | None, name: str, body: Object, *, timeout: float, field_manager: str
    ) -> Object:
        assert timeout > 0
        assert field_manager
        assert (namespace is None) == (kind == "AdmissionCheck")
        self._request("apply", kind, name, "status")
        self.applied.append(body)
        return body


@pytest.fixture
def api() -> ApplyingApi:
    return ApplyingApi()


def put(api: FakeApi, *objects: Object) -> AdmissionChecks:
    store = Store()
    for obj in objects:
        made = dict(obj)
        store.put(watched(api.put(made, **made.pop("status", {}))))
    cluster: Any = api
    return AdmissionChecks(cluster, store, lambda: 1_767_225_600.0)


@pytest.mark.parametrize(
    ("what", "state", "objects", "want"),
    [
        ("ours with a closed gate stays Pending", "Pending", [make_job(), started("Closed")], None),
        ("ours with an open gate becomes Ready", "Pending", [make_job(), started("Open")], "Ready"),
        ("ours that is Ready stays so", "Ready", [make_job(), started("Open")], None),
        ("ours that is held keeps its state", "Ready", [make_job(), started("Held")], None),
        ("ours that is held and was reset keeps that too", "Pending", [make_job(), started("Held")], None),
        ("ours that is cancelled keeps its state", "Ready", [make_job(), started("Cancelled")], None),
        ("ours that is cancelled behind its gate waits", "Pending", [make_job(), started("Cancelled")], None),
        ("a late TrainJob of one waits", "Ready", [make_job(), started("Cancelled", reference="x")], "Pending"),
        ("what a cancelled Start left alone is another's", "Pending", [make_job(marks=False), cancelled()], "Ready"),
        ("ours before it has started waits", "Pending", [make_job(), started("Open", status="Unknown")], None),
        ("another TrainJob of our start waits", "Ready", [make_job(), started("Open", reference="x")], "Pending"),
        ("ours whose start is gone waits", "Ready", [make_job()], "Pending"),
        ("ours whose start was created again waits", "Ready", [make_job(), started("Open", uid="x")], "Pending"),
        (
            "a probe never runs",
            "Ready",
            [
                make_job(
                    labels={
                        "app.kubernetes.io/managed-by": "dispatch-operator",
                        "dispatch.phpboyscout.uk/probe": "true",
                    }
                )
            ],
            "Pending",
        ),
        ("a TrainJob of another is Ready", "Pending", [make_job(labels={}, marks=False)], "Ready"),
        ("ours whose labels are gone waits", "Ready", [make_job(labels={})], "Pending"),
        ("what may be ours waits", "Ready", [make_job(marks=False), make_start()], "Pending"),
        ("what its Start has recorded is ours", "Pending", [make_job(marks=False), started("Open")], "Ready"),
        ("it waits, too", "Ready", [make_job(marks=False), started("Closed")], "Pending"),
        ("what a refused Start left alone is another's", "Pending", [make_job(marks=False), refused()], "Ready"),
        ("a TrainJob that is gone waits", "Ready", [], "Pending"),
        ("a TrainJob of the name but another UID waits", "Ready", [make_job(uid="x"), started("Open")], "Pending"),
    ],
)
async def test_the_state_of_the_check(
    api: ApplyingApi, what: str, state: str, objects: list[Object], want: str | None
) -> None:
    await put(api, make_check(), make_workload(state), *objects).reconcile(KEY)
    states = [entry["state"] for body in api.applied for entry in body["status"]["admissionChecks"]]
    assert states == ([want] if want else []), what


@pytest.mark.parametrize(
    ("what", "owners", "want"),
    [
        ("a Job's Workload is not ours", [{"kind": "Job", "name": "x", "uid": "x"}], "Ready"),
        ("a Workload that nobody owns yet waits", [], None),
    ],
)
async def test_workloads_of_others(api: ApplyingApi, what: str, owners: list[Object], want: str | None) -> None:
    await put(api, make_check(), make_workload(owners=owners)).reconcile(KEY)
    assert [body["status"]["admissionChecks"][0]["state"] for body in api.applied] == ([want] if want else []), what


async def test_that_a_start_is_gone_is_said_after_a_live_read_only(api: ApplyingApi) -> None:
    checks = put(api, make_check(), make_workload("Ready"), make_job(), started("Open"))
    checks.store.drop(watched(api.one("DispatchStart")))
    await checks.reconcile(KEY)
    assert api.applied == []
    assert [str(request) for request in api.requests] == ["get DispatchStart"]


async def test_a_job_of_others_costs_no_read_of_a_start(api: ApplyingApi) -> None:
    await put(api, make_check(), make_workload("Ready"), make_job(labels={}, marks=False)).reconcile(KEY)
    assert api.requests == []


async def test_a_start_of_another_shard_is_left_to_it_as_soon_as_that_is_known(api: ApplyingApi) -> None:
    known = put(api, make_check(), make_workload("Ready"), make_job(), started("Closed"))
    # The watch has not told of the TrainJob.
    known.store.drop(watched(api.one("TrainJob")))
    await replace(known, serves_start=lambda key: key != Key(NAMESPACE, "llama-s1")).reconcile(KEY)
    assert api.applied == []
    await known.reconcile(KEY)
    assert len(api.applied) == 1


async def test_only_the_entry_is_applied(api: ApplyingApi) -> None:
    await put(api, make_check(), make_workload(), make_job(), started("Open")).reconcile(KEY)
    (body,) = api.applied
    assert set(body) == {"apiVersion", "kind", "metadata", "status"}
    assert set(body["metadata"]) == {"name", "uid"}
    assert body["status"]["admissionChecks"] == [
        {
            "name": CHECK,
            "state": "Ready",
            "message": "the start gate is open",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ]


async def test_of_two_checks_of_ours_none_is_taken_away_when_the_other_is_set(api: ApplyingApi) -> None:
    workload, since = make_workload(), "2025-12-31T00:00:00Z"
    entry = {"state": "Ready", "message": "so it was", "lastTransitionTime": since}
    others = {"name": "other-controllers", "state": "Pending", "message": ""}
    workload["status"]["admissionChecks"] += [{"name": "second", **entry}, others]
    second, other = make_check(), make_check(controller="other.example/c")
    second["metadata"]["name"], other["metadata"]["name"] = "second", "other-controllers"
    await put(api, make_check(), second, other, workload, make_job(), started("Open")).reconcile(KEY)
    (body,) = api.applied
    ours, kept = body["status"]["admissionChecks"]
    assert (ours["name"], ours["state"]) == (CHECK, "Ready")
    assert kept == {"name": "second", **entry}


@pytest.mark.parametrize(
    ("what", "objects"),
    [
        ("a check with another controller", [make_check(controller="other.example/c"), make_workload()]),
        ("a check that is not known", [make_workload()]),
        ("a Workload that is gone", [make_check()]),
    ],
)
async def test_what_is_not_ours_is_left_alone(api: ApplyingApi, what: str, objects: list[Object]) -> None:
    checks = put(api, *objects)
    await checks.reconcile(KEY)
    if objects[0]["kind"] == "AdmissionCheck" and objects[0]["spec"]["controllerName"].startswith("other"):
        await checks.reconcile(Key("", CHECK))
    assert api.applied == [], what


ACTIVE = {"type": "Active", "status": "True", "observedGeneration": 1}


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        ([], 1),
        ([{**ACTIVE, "status": "False"}], 1),
        ([{**ACTIVE, "observedGeneration": 0}], 1),
        ([ACTIVE], 0),
    ],
)
async def test_our_check_is_marked_active_once(api: ApplyingApi, conditions: list[Object], want: int) -> None:
    await put(api, make_check(conditions=conditions)).reconcile(Key("", CHECK))
    assert len(api.applied) == want
    for body in api.applied:
        assert body["status"]["conditions"][0]["status"] == "True"


@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (404, "NotFound"), (503, "x")])
async def test_what_fails_is_tried_again_until_the_watch_tells_that_it_is_gone(
    api: ApplyingApi, status: int, reason: str
) -> None:
    checks = put(api, make_check(), make_workload(), make_job(), started("Open"))
    api.before = always("apply", WORKLOAD, refusal("apply", WORKLOAD, status, reason, "no"))
    assert (await checks.reconcile(KEY)).requeue
    checks.store.drop(watched(api.one(WORKLOAD)))
    assert not (await checks.reconcile(KEY)).requeue
