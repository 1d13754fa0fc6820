"""A ResourceQuota and the operator's own probes: a probe costs nobody a Start, and a full quota proves nothing."""

from typing import Any

import pytest

from support.backends import FakeBackends, left, make_api
from support.builders import NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, refusal, unanswered
from support.operator import NOW, FakeOperator, conditions, message

Object = dict[str, Any]
COPY, JOB = "TrainingRuntime", "TrainJob"
FULL = "exceeded quota: one, requested: count/trainjobs.trainer.kubeflow.org=1, used: 1, limited: 1"
STEPS = {COPY: "RuntimeCopied", JOB: "TrainJobCreated"}


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start(retry="Never")):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)


def deny(api: FakeApi, kind: str) -> None:
    api.before = always("create", kind, refusal("create", kind, 403, "Forbidden", FULL))


def put_probe(api: FakeApi) -> None:
    labels = {"dispatch.phpboyscout.uk/probe": "true"}
    api.put({"kind": JOB, "metadata": {"name": "a-probe", "namespace": NAMESPACE, "labels": labels}, "spec": {}})


def probed(api: FakeApi, when: str) -> None:
    api.edit("DispatchBackend", lambda held: [one.update(lastProbeTime=when) for one in held["status"]["gates"]])


@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_a_quota_that_the_tenant_filled_refuses_for_good(api: FakeApi, operator: FakeOperator, kind: str) -> None:
    deny(api, kind)
    start = await operator.settle()
    assert (start["status"]["phase"], conditions(start)["Started"]) == ("Refused", ("False", "ErrRejected"))
    assert FULL in message(start, "Started")


@pytest.mark.parametrize("kind", [COPY, JOB])
@pytest.mark.parametrize("stands", [True, False])
async def test_a_start_waits_for_a_probe_that_fills_the_quota_or_just_did(
    api: FakeApi, operator: FakeOperator, kind: str, *, stands: bool
) -> None:
    if stands:
        put_probe(api)
    else:
        probed(api, "2025-12-31T23:59:55Z")
    deny(api, kind)
    result = await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], conditions(start)[STEPS[kind]]) == ("Pending", ("Unknown", "WaitingForProbe"))
    assert FULL in message(start, "Started")
    assert result.requeue_after == 2
    api.before = lambda _request: None
    api.objects.pop((JOB, NAMESPACE, "a-probe"), None)
    assert (await operator.settle())["status"]["phase"] == "Gated"


async def test_a_probe_that_is_long_past_is_no_excuse(api: FakeApi, operator: FakeOperator) -> None:
    probed(api, "2025-12-31T23:59:55Z")
    deny(api, JOB)
    await operator.reconcile()
    operator.now = NOW + 60
    assert (await operator.settle())["status"]["phase"] == "Refused"


async def test_what_may_be_a_probes_doing_is_not_final_before_it_is_known(api: FakeApi, operator: FakeOperator) -> None:
    denied, unread = refusal("create", JOB, 403, "Forbidden", FULL), unanswered("list", JOB)
    api.before = lambda request: {("create", JOB): denied, ("list", JOB): unread}.get((request.verb, request.kind))
    result = await operator.reconcile()
    assert result.requeue
    assert conditions(operator.start())["TrainJobCreated"] == ("False", "ErrUnreachable")


@pytest.mark.looptime
@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_a_full_quota_says_nothing_about_a_gate(kind: str) -> None:
    api = make_api()
    operator = FakeBackends(api)
    await operator.reconcile()
    proven = operator.status()["gates"]
    api.edit("DispatchBackend", lambda backend: backend["spec"].update(gpuResource="amd.com/gpu"))
    deny(api, kind)
    result = await operator.reconcile()
    assert operator.status()["gates"] == proven
    told = {one["type"]: one["message"] for one in operator.status()["conditions"]}
    assert FULL in told["Reconciling"]
    assert left(api) == []
    assert result.requeue_after
