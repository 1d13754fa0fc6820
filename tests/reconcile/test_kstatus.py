"""What GitOps tools make of a DispatchStart, from before it is seen to its end."""

from collections.abc import Callable
from typing import Any

import pytest

from support import flux
from support.argo_cd import checks, health
from support.builders import NAME, NAMESPACE, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, always, refusal, unanswered
from support.kstatus import kstatus
from support.operator import FakeOperator

Object = dict[str, Any]
JOB = "TrainJob"
ARGO_CD = {"InProgress": "Progressing", "Failed": "Degraded", "Current": "Healthy"}
"""What Argo CD calls what kstatus says."""
STARTED_ALL_THE_SAME = {"Failed", "Cancelled", "Lost", "Holding"}
"""What the expressions for Flux, which ask for the start alone, see otherwise."""


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


def spec(api: FakeApi, **fields: Any) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(fields))


def job(api: FakeApi, kind: str, jobs: list[Object] | None = None) -> None:
    status = {"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m"}], "jobsStatus": jobs or []}
    api.edit(JOB, lambda held: held.update(status=status))


def test_an_object_that_nobody_has_seen_is_in_progress(api: FakeApi) -> None:
    assert kstatus(api.one("DispatchStart")) == "InProgress"
    assert flux.health(api.one("DispatchStart")) == "InProgress"
    assert health(api.one("DispatchStart")) == ("Progressing", "waits for the operator to look at it")


@pytest.mark.parametrize(
    ("phase", "before", "after", "want"),
    [
        ("Gated", None, None, "Current"),
        ("Queued", None, lambda api: spec(api, gate="Open"), "Current"),
        (
            "Running",
            lambda api: spec(api, gate="Open"),
            lambda api: job(api, "Resumed", [{"name": "node", "ready": 1}]),
            "Current",
        ),
        ("Held", lambda api: spec(api, gate="Open"), lambda api: spec(api, gate="Held"), "Current"),
        (
            "Holding",
            lambda api: spec(api, gate="Open"),
            lambda api: (
                setattr(api, "before", always("patch", JOB, unanswered("patch"))),
                spec(api, gate="Held"),
            ),
            "InProgress",
        ),
        ("Succeeded", None, lambda api: job(api, "Complete"), "Current"),
        ("Failed", None, lambda api: job(api, "Failed"), "Failed"),
        ("Lost", None, lambda api: api.objects.pop((JOB, NAMESPACE, NAME)), "Failed"),
        ("Cancelled", None, lambda api: spec(api, gate="Cancelled"), "Failed"),
        ("Cancelled", lambda api: spec(api, gate="Cancelled"), None, "Failed"),
        ("Refused", lambda api: spec(api, request={}), None, "Failed"),
        ("Pending", lambda api: api.objects.pop(("DispatchBackend", NAMESPACE, "default")), None, "InProgress"),
        (
            "Starting",
            lambda api: setattr(api, "before", always("create", JOB, refusal("create", JOB, 429, "Slow", "later"))),
            None,
            "InProgress",
        ),
        ("InFlight", lambda api: setattr(api, "before", always("create", JOB, unanswered())), None, "InProgress"),
        (
            "Stopping",
            lambda api: (
                setattr(api, "admit", lambda request, body: {**body, "spec": {}} if request.kind == JOB else body),
                setattr(api, "before", always("delete", JOB, unanswered("delete"))),
            ),
            None,
            "InProgress",
        ),
    ],
)
async def test_each_phase_reads_as_it_should(
    api: FakeApi, phase: str, before: Callable[[FakeApi], Any] | None, after: Callable[[FakeApi], Any] | None, want: str
) -> None:
    operator = FakeOperator(api)
    for change in (before, after):
        if change:
            change(api)
        await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], kstatus(start)) == (phase, want)
    shown, message = health(start)
    assert (shown, message.split(": ")[0]) == (ARGO_CD[want], phase)
    assert flux.health(start) == ("Current" if phase in STARTED_ALL_THE_SAME else want)


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        ([], ("Progressing", "waits for the operator to look at it")),
        ([make_condition("Ready", message="every gate is proven")], ("Healthy", "every gate is proven")),
        ([make_condition("Ready", "Unknown", message="being probed")], ("Progressing", "being probed")),
        (
            [make_condition("Ready", "False"), make_condition("Reconciling", message="probed again")],
            ("Progressing", "probed again"),
        ),
    ],
)
def test_a_backend_is_shown_by_the_same_check(conditions: list[Object], want: tuple[str, str]) -> None:
    backend = make_backend()
    backend["metadata"]["generation"] = 1
    backend["status"]["conditions"] = conditions
    assert health(backend) == want


def test_one_text_serves_both_kinds() -> None:
    assert set(checks()) == {"DispatchStart", "DispatchBackend"}
    assert len(set(checks().values())) == 1
