"""A job that may run and does not: who is asked, how often, and what is told, over a fake API."""

from itertools import pairwise
from typing import Any

import pytest

from dispatch_operator.kube.index import Key
from dispatch_operator.reconcile.inquiries import FIRST_AFTER, PERIOD, SPREAD, Inquiries
from support.builders import NAME, NAMESPACE, make_backend, make_runtime, make_start
from support.fake_api import FakeApi, always, refusal
from support.operator import NOW, FakeOperator, conditions, message

Object = dict[str, Any]
JOB = "TrainJob"
FIRST = FIRST_AFTER + SPREAD
"""Seconds after which every job has been asked about once."""
LABELS = {
    "dispatch.phpboyscout.uk/job-id": make_start()["spec"]["request"]["job"],
    "dispatch.phpboyscout.uk/submission": "1",
    "jobset.sigs.k8s.io/replicatedjob-name": "node",
}
QUOTA = 'pods "dj-x-node-0-0-{}" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0'


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start(gate="Open", nodes=3)):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


@pytest.fixture
async def operator(api: FakeApi) -> FakeOperator:
    """An operator that has just opened the gate of one start."""
    operator = FakeOperator(api)
    await operator.settle()
    operator.now = NOW
    trainer(api)
    api.requests.clear()
    return operator


def trainer(api: FakeApi, active: int = 0, ready: int = 0, *others: Object, **failed: str) -> None:
    """Write a TrainJob's status as Trainer would; the gate was opened at NOW."""
    suspended = {"type": "Suspended", "status": "False", "reason": "Resumed"}
    status = {
        "conditions": [{**suspended, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "jobsStatus": [{"name": "node", "active": active, "ready": ready}, *others],
    }
    status["conditions"] += [{"type": "Failed", "status": "True", "reason": failed["reason"]}] if failed else []
    api.edit(JOB, lambda job: job.update(status=status))


def pending(api: FakeApi, name: str = "pod-0", reason: str = "", said: str = "", **status: Any) -> None:
    """Place a pod that waits."""
    state = {"waiting": {"reason": reason, "message": said}} if reason else {}
    containers = [{"name": "node", "state": state}]
    meta = {"name": name, "namespace": NAMESPACE, "labels": LABELS}
    api.put({"kind": "Pod", "metadata": meta}, phase="Pending", containerStatuses=containers, **status)


def warn(api: FakeApi, about: str, reason: str, said: str, at: int = 1, *, name: str = "e", **event: Any) -> None:
    """Place an Event; `about` is a kind and a name."""
    kind, _, involved = about.partition("/")
    api.put(
        {
            "kind": "Event",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "involvedObject": {"kind": kind, "name": involved},
            "type": "Warning",
            "reason": reason,
            "message": said,
            "lastTimestamp": f"2026-01-01T00:00:{at:02}Z",
            **event,
        }
    )


async def told(operator: FakeOperator, seconds: float = FIRST) -> tuple[str, str]:
    """Return the reason and the message some seconds later."""
    operator.now += seconds
    start = await operator.settle()
    assert conditions(start)["Ready"] == ("True", conditions(start)["Succeeded"][1])
    return conditions(start)["Succeeded"][1], message(start, "Succeeded")


def unschedulable(said: str) -> Object:
    return {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}],
    }


@pytest.mark.parametrize(
    ("place", "want_reason", "want"),
    [
        (lambda api: warn(api, f"Job/{NAME}-node-0", "FailedCreate", QUOTA), "FailedCreate", "exceeded quota: none"),
        (lambda api: warn(api, f"JobSet/{NAME}", "JobCreationFailed", "denied"), "JobCreationFailed", "JobSet"),
        (lambda api: warn(api, f"TrainJob/{NAME}", "FailedBuild", "no runtime"), "FailedBuild", "TrainJob"),
        (
            lambda api: pending(api, reason="ErrImagePull", said="no such image"),
            "ErrImagePull",
            "pod pod-0, container node: no such image",
        ),
        (
            lambda api: pending(api, reason="CreateContainerConfigError", said='secret "hf-token" not found'),
            "CreateContainerConfigError",
            'secret "hf-token" not found',
        ),
        (
            lambda api: pending(api, **unschedulable("0/3 nodes are available: 3 Insufficient gpu.")),
            "Unschedulable",
            "pod pod-0: 0/3 nodes are available: 3 Insufficient gpu.",
        ),
        (
            lambda api: (
                pending(api, reason="ContainerCreating"),
                warn(api, "Pod/pod-0", "FailedMount", 'configmap "data" not found'),
            ),
            "FailedMount",
            'Pod pod-0: configmap "data" not found',
        ),
        (
            lambda api: pending(
                api,
                initContainerStatuses=[{"name": "fetch", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
            ),
            "ImagePullBackOff",
            "container fetch: no message",
        ),
    ],
)
async def test_queued_says_within_a_minute_what_keeps_it(
    api: FakeApi, operator: FakeOperator, place: Any, want_reason: str, want: str
) -> None:
    place(api)
    assert (await told(operator, 0))[0] == "Queued"
    reason, said = await told(operator)
    assert reason == want_reason
    assert said.startswith(f"the gate is open, and nothing runs: {want_reason}: ")
    assert want in said
    assert operator.start()["status"]["phase"] == "Queued"


async def test_the_nearest_to_the_container_speaks_first(api: FakeApi, operator: FakeOperator) -> None:
    warn(api, f"TrainJob/{NAME}", "FailedBuild", "old", name="e1")
    pending(api, "pod-0")
    pending(api, "pod-1", reason="ErrImagePull", said="no such image")
    assert (await told(operator))[0] == "ErrImagePull"


async def test_nothing_is_written_again_as_long_as_it_is_the_same(api: FakeApi, operator: FakeOperator) -> None:
    about = f"Job/{NAME}-node-0"
    warn(api, about, "FailedCreate", QUOTA.format("x7k2p"))
    await told(operator)
    written = len(api.writes())
    for minute in range(1, 4):
        # A Job makes up a new name for each try, and the API server counts what is told again.
        again = "(combined from similar events): " * (minute > 2) + QUOTA.format(f"x7k2{minute}")
        warn(api, about, "FailedCreate", again, minute, name=f"again-{minute}")
        assert (await told(operator, PERIOD))[0] == "FailedCreate"
    assert len(api.writes()) == written


async def test_the_first_word_on_an_image_stays(api: FakeApi, operator: FakeOperator) -> None:
    pending(api, reason="ErrImagePull", said="not found")
    first = await told(operator)
    pending(api, reason="ImagePullBackOff", said="Back-off pulling image")
    assert await told(operator, PERIOD) == first
    pending(api, **unschedulable("no node"))
    assert (await told(operator, PERIOD))[0] == "Unschedulable"


async def test_a_job_is_asked_about_once_a_minute_however_often_it_is_looked_at(
    api: FakeApi, operator: FakeOperator
) -> None:
    pending(api, reason="ErrImagePull", said="not found")
    asked = []
    for _ in range(170):
        operator.now += 1
        result = await operator.reconcile()
        asked.append(sum(request.kind in {"Pod", "Event", "Job"} for request in api.requests))
        assert result.requeue_after is not None
        assert 0 < result.requeue_after <= PERIOD
        if asked[-1]:
            assert conditions(operator.start())["Succeeded"][1] == "ErrImagePull"
    steps = [second for second in range(1, 170) if asked[second] > asked[second - 1]]
    assert steps[0] < FIRST
    assert [later - earlier for earlier, later in pairwise(steps)] == [PERIOD, PERIOD]
    assert asked[-1] == len(steps) * 3


async def test_what_has_passed_is_no_longer_told(api: FakeApi, operator: FakeOperator) -> None:
    warn(api, f"Job/{NAME}-node-0", "FailedCreate", "no")
    await told(operator)
    trainer(api, active=1)
    assert (await told(operator, 1200)) == ("Queued", "the gate is open; the job's pods are starting")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "Normal"},
        {"reason": "RestartJobSetFailurePolicyAction"},
        {"reason": "BackOff"},
        {"lastTimestamp": "2025-12-31T23:00:00Z"},
    ],
)
async def test_an_event_that_keeps_nothing_from_running_is_not_told(
    api: FakeApi, operator: FakeOperator, event: Object
) -> None:
    warn(api, **{"about": f"JobSet/{NAME}", "reason": "FailedCreate", "said": "no", **event})
    assert (await told(operator)) == ("Queued", "the gate is open; no pod of the job exists yet")


async def test_an_event_counts_by_when_it_was_told_last(api: FakeApi, operator: FakeOperator) -> None:
    series = {"lastTimestamp": None, "eventTime": "2025-12-01T00:00:00Z"}
    warn(api, f"JobSet/{NAME}", "A", "older", name="a", series={"lastObservedTime": "2026-01-01T00:00:01Z"}, **series)
    warn(api, f"JobSet/{NAME}", "B", "newer", name="b", series={"lastObservedTime": "2026-01-01T00:00:02Z"}, **series)
    assert (await told(operator))[0] == "B"


async def test_a_pod_that_is_being_deleted_keeps_nothing(api: FakeApi, operator: FakeOperator) -> None:
    pending(api, reason="ErrImagePull")
    api.edit("Pod", lambda pod: pod["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert (await told(operator))[0] == "Queued"


@pytest.mark.parametrize("kind", ["Event", "Pod", "Job"])
async def test_what_can_not_be_asked_is_left_out_and_asked_again_a_minute_later(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    verb = "get" if kind == "Job" else "list"
    api.before = always(verb, kind, refusal(verb, kind, 403, "Forbidden", "no"))
    operator.now += FIRST
    result = await operator.reconcile()
    assert (result.requeue, result.requeue_after) == (False, PERIOD)
    assert operator.start()["status"]["phase"] == "Queued"


@pytest.mark.parametrize("kind", ["Event", "Pod", "Job"])
async def test_what_the_server_puts_off_is_not_asked_further_and_what_was_told_stays(
    api: FakeApi, operator: FakeOperator, kind: str
) -> None:
    trainer(api, active=1)
    pending(api, reason="ImagePullBackOff", said="no such image")
    before = await told(operator)
    assert "no such image" in before[1]
    verb = "get" if kind == "Job" else "list"
    busy = refusal(verb, kind, 429, "TooManyRequests", "later")
    busy.retry_after = 7.0
    api.before = always(verb, kind, busy)
    api.requests.clear()
    operator.now += PERIOD
    result = await operator.reconcile()
    assert [(one.verb, one.kind) for one in api.requests][-1] == (verb, kind)
    assert (result.requeue, result.requeue_after) == (False, PERIOD)
    assert (conditions(operator.start())["Succeeded"][1], message(operator.start(), "Succeeded")) == before


def ready(api: FakeApi, count: int) -> None:
    """Place the trainer's Job, of whose pods so many are ready."""
    api.put({"kind": "Job", "metadata": {"name": f"{NAME}-node-0", "namespace": NAMESPACE}}, ready=count)


async def test_a_job_of_which_some_pods_run_says_how_many_and_what_keeps_the_others(
    api: FakeApi, operator: FakeOperator
) -> None:
    trainer(api, active=1)
    ready(api, 1)
    pending(api, "pod-2", **unschedulable("no node"))
    reason, said = await told(operator)
    assert (reason, operator.start()["status"]["phase"]) == ("Running", "Running")
    assert said == "1 of 3 of the trainer's pods run; Unschedulable: pod pod-2: no node"
    assert await told(operator, 1) == (reason, said)
    api.remove("Pod", NAMESPACE, "pod-2")
    trainer(api, active=1, ready=1)
    assert await told(operator, 1) == ("Running", "3 of 3 of the trainer's pods run")
    trainer(api, active=1)
    assert await told(operator, 1) == ("Running", "not all of the trainer's 3 pods run")
    ready(api, 2)
    assert await told(operator, PERIOD) == ("Running", "2 of 3 of the trainer's pods run")
    trainer(api)
    assert (await told(operator, 1))[0] == "Queued"


async def test_an_initializer_that_runs_is_not_the_training(api: FakeApi, operator: FakeOperator) -> None:
    trainer(api, 0, 0, {"name": "dataset-initializer", "active": 1, "ready": 1})
    assert await told(operator) == (
        "Queued",
        "the gate is open; dataset-initializer runs, and the trainer's pods do not yet",
    )


async def test_an_initializer_that_has_no_pods_is_asked_about_before_the_trainer(
    api: FakeApi, operator: FakeOperator
) -> None:
    trainer(api, 0, 0, {"name": "dataset-initializer", "active": 0, "ready": 0})
    warn(api, f"Job/{NAME}-dataset-initializer-0", "FailedCreate", "no")
    assert (await told(operator))[0] == "FailedCreate"


async def test_an_initializer_that_is_done_is_not_asked_about(api: FakeApi, operator: FakeOperator) -> None:
    trainer(api, 0, 0, {"name": "dataset-initializer", "succeeded": 1})
    warn(api, f"Job/{NAME}-node-0", "FailedCreate", "no")
    assert (await told(operator))[0] == "FailedCreate"


@pytest.mark.parametrize("seconds", [FIRST, 1])
async def test_a_time_limit_keeps_what_was_told_or_asks_at_the_end(
    api: FakeApi, operator: FakeOperator, seconds: float
) -> None:
    pending(api, reason="CreateContainerConfigError", said='secret "hf-token" not found')
    await told(operator, seconds)
    if seconds == FIRST:
        api.remove("Pod", NAMESPACE, "pod-0")
    trainer(api, reason="DeadlineExceeded")
    start = await operator.settle()
    outcome = start["status"]["outcome"]
    assert (outcome["cause"], outcome["errorKind"]) == ("DeadlineExceeded", "User")
    assert 'CreateContainerConfigError: pod pod-0, container node: secret "hf-token" not found' in outcome["message"]


async def test_a_short_time_limit_is_asked_about_at_its_half(api: FakeApi, operator: FakeOperator) -> None:
    api.edit(JOB, lambda job: job["spec"].update(activeDeadlineSeconds=10))
    operator.inquiries = Inquiries()
    operator.inquiries.last(Key(NAMESPACE, "llama-s1"), NOW - PERIOD)
    operator.now += 4
    assert (await operator.reconcile()).requeue_after == pytest.approx(1)


async def test_a_job_without_a_time_of_its_own_is_asked_about_since_it_was_made(
    api: FakeApi, operator: FakeOperator
) -> None:
    api.edit(JOB, lambda job: job["status"].update(conditions=[]))
    pending(api, reason="ErrImagePull")
    assert (await told(operator))[0] == "ErrImagePull"


async def test_a_restart_is_told_with_the_failure_that_caused_it_and_is_no_outcome(
    api: FakeApi, operator: FakeOperator
) -> None:
    trainer(api, active=1, ready=1)
    await told(operator, 1)
    state = {"terminated": {"exitCode": 7, "reason": "Error", "message": "NaN", "finishedAt": "2026-01-01T00:00:01Z"}}
    failed = {"phase": "Failed", "containerStatuses": [{"name": "node", "state": state}]}
    labels = {**LABELS, "jobset.sigs.k8s.io/restart-attempt": "0"}
    api.put({"kind": "Pod", "metadata": {"name": "pod-0", "namespace": NAMESPACE, "labels": labels}}, **failed)
    api.put({"kind": "JobSet", "metadata": {"name": NAME, "namespace": NAMESPACE}}, restarts=1)
    reason, said = await told(operator, 1)
    assert reason == "Running"
    assert said == (
        "3 of 3 of the trainer's pods run; the JobSet restarted it once, last because of NonZeroExitCode: "
        "pod pod-0, container node: exit code 7: NaN"
    )
    status = operator.start()["status"]
    assert status["restarts"] == 1
    assert status["lastRestart"] == {
        "number": 1,
        "cause": "NonZeroExitCode",
        "message": "pod pod-0, container node: exit code 7: NaN",
        "pod": "pod-0",
        "container": "node",
        "exitCode": 7,
    }
    # The pods are not asked for again, nor is what was told changed when they are gone.
    api.remove("Pod", NAMESPACE, "pod-0")
    api.requests.clear()
    assert await told(operator, 1) == (reason, said)
    assert api.requests == []
    trainer(api, active=1)
    assert (await told(operator, 1))[1].startswith("not all of the trainer's 3 pods run; the JobSet restarted it once")
    api.edit(
        JOB, lambda job: job["status"].update(conditions=[{"type": "Complete", "status": "True", "reason": "Done"}])
    )
    status = (await operator.settle())["status"]
    assert status["outcome"] == {"state": "Succeeded", "message": "the job completed"}


async def test_a_restart_that_can_not_be_explained_is_counted(api: FakeApi, operator: FakeOperator) -> None:
    trainer(api, active=1, ready=1)
    api.before = always("list", "Pod", refusal("list", "Pod", 403, "Forbidden", "no"))
    api.put({"kind": "JobSet", "metadata": {"name": NAME, "namespace": NAMESPACE}}, restarts=2)
    assert (await told(operator, 1))[1].endswith("; the JobSet restarted it 2 times")
    # Another JobSet, after Held and Open, counts anew.
    api.edit("JobSet", lambda job_set: job_set["status"].update(restarts=0))
    assert (await told(operator, 1))[1] == "3 of 3 of the trainer's pods run"
    assert operator.start()["status"]["restarts"] == 0


def test_after_a_restart_of_the_operator_not_all_jobs_are_asked_about_in_one_second() -> None:
    inquiries = Inquiries()
    due = [inquiries.last(Key(NAMESPACE, f"s{number}"), NOW) + PERIOD - NOW for number in range(600)]
    assert min(due) >= 0
    assert max(due) <= PERIOD
    assert max(sum(second <= one < second + 1 for one in due) for second in range(60)) < 30


def test_a_job_that_was_forgotten_is_as_one_that_nobody_asked_about() -> None:
    inquiries, key = Inquiries(), Key(NAMESPACE, "s1")
    first = inquiries.last(key, NOW)
    inquiries.made(key, NOW + 70)
    assert inquiries.last(key, NOW + 80) == NOW + 70
    inquiries.forget(key)
    assert inquiries.last(key, NOW + 90) == first
