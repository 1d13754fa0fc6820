"""A TrainJob that leaves in the foreground is given a runtime to leave with."""

from typing import Any

import pytest

from dispatch_operator.api.models import read_backend
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion, stand_in
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.store import Store
from dispatch_operator.render.terms import terms_of
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, refusal
from support.records import job_of, watched
from support.rendering import render_train_job

Object = dict[str, Any]
KEY = Key(NAMESPACE, NAME)


def leaving(**metadata: Any) -> Object:
    start = make_start()
    start["metadata"]["uid"] = "u"
    job = render_train_job(start, terms_of(read_backend(make_backend())), make_runtime()["spec"])
    job["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"], **metadata}
    return job


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


def foreground_deletion(api: FakeApi) -> ForegroundDeletion:
    store = Store()
    for job in api.all("TrainJob"):
        store.put(watched(job))
    return ForegroundDeletion(api, store)  # type: ignore[arg-type]


async def test_it_gets_one_that_it_owns(api: FakeApi) -> None:
    job = api.put(leaving())
    await foreground_deletion(api).reconcile(KEY)
    copy = api.one("TrainingRuntime")
    assert copy["metadata"]["name"] == NAME
    assert [owner["uid"] for owner in copy["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
    assert [part["name"] for part in copy["spec"]["template"]["spec"]["replicatedJobs"]] == ["node"]
    await foreground_deletion(api).reconcile(KEY)
    assert api.writes() == ["create TrainingRuntime"]


@pytest.mark.parametrize(
    ("what", "metadata"),
    [
        ("stays", {"deletionTimestamp": None}),
        ("goes in the background", {"finalizers": []}),
        ("is not ours", {"labels": {}, "annotations": {}, "ownerReferences": []}),
        (
            "says that it is another job's",
            {"labels": {"dispatch.phpboyscout.uk/job-id": "X", "dispatch.phpboyscout.uk/submission": "1"}},
        ),
    ],
)
async def test_a_train_job_that_does_not_need_one_is_left_alone(api: FakeApi, what: str, metadata: Object) -> None:
    api.put(leaving(**metadata))
    await foreground_deletion(api).reconcile(KEY)
    assert api.writes() == [], what


async def test_one_whose_copy_is_still_there_waits(api: FakeApi) -> None:
    api.put(leaving())
    api.put({"kind": "TrainingRuntime", "metadata": {"name": NAME, "namespace": NAMESPACE}})
    assert not (await foreground_deletion(api).reconcile(KEY)).requeue
    assert api.writes() == []


async def test_one_that_is_gone_after_all_gets_nothing(api: FakeApi) -> None:
    api.put(leaving())
    departing = foreground_deletion(api)
    api.objects.clear()
    assert not (await departing.reconcile(KEY)).requeue
    assert api.all("TrainingRuntime") == []


async def test_another_one_that_got_its_name_meanwhile_gets_nothing(api: FakeApi) -> None:
    api.put(leaving())
    departing = foreground_deletion(api)
    api.put(leaving(uid="another", deletionTimestamp=None))
    assert not (await departing.reconcile(KEY)).requeue
    assert api.writes() == []


@pytest.mark.parametrize(("reason", "want"), [("AlreadyExists", False), ("Conflict", True)])
async def test_what_fails_is_tried_again(api: FakeApi, reason: str, want: bool) -> None:
    api.put(leaving())
    api.before = always("create", "TrainingRuntime", refusal("create", "TrainingRuntime", 409, reason, "no"))
    assert (await foreground_deletion(api).reconcile(KEY)).requeue is want


def test_a_job_with_processes_keeps_its_torch_policy() -> None:
    job = leaving()
    assert "torch" not in stand_in(job_of(job))["spec"]["mlPolicy"]
    job["spec"]["trainer"]["numProcPerNode"] = 2
    assert stand_in(job_of(job))["spec"]["mlPolicy"]["torch"] == {}


def test_a_patch_that_was_removed_by_hand_leaves_the_trainers_job() -> None:
    job = leaving()
    del job["spec"]["runtimePatches"]
    assert [part["name"] for part in stand_in(job_of(job))["spec"]["template"]["spec"]["replicatedJobs"]] == ["node"]
