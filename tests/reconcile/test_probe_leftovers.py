"""What probes leave behind, other operators at the same time, and answers that come late."""

import asyncio
from typing import Any

import pytest

from dispatch_operator.controllers.enqueue import targets_of
from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.leftovers import Leftovers
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.kube.index import Key
from dispatch_operator.reconcile.actions import Result
from support.backends import FakeBackends, left, make_api, unproven
from support.builders import NAMESPACE
from support.fake_api import FakeApi, always, nth, refusal, unanswered
from support.records import backend_of

Object = dict[str, Any]
pytestmark = pytest.mark.looptime
COPY, JOB, BACKEND = "TrainingRuntime", "TrainJob", "DispatchBackend"


@pytest.fixture
def api() -> FakeApi:
    return make_api()


async def crashed(api: FakeApi, verb: str, kind: str) -> None:
    """Let an operator die at its first request of a kind."""
    dead: list[bool] = []

    def crash(request: Any) -> None:
        if dead or (request.verb, request.kind) == (verb, kind):
            dead.append(True)
            raise SystemExit

    api.before = crash
    with pytest.raises(SystemExit):
        await FakeBackends(api).reconcile()
    api.before = lambda _request: None
    for key, obj in api.objects.items():
        if key[0] in {COPY, JOB}:
            obj["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(("verb", "kind"), [("create", JOB), ("list", "Pod"), ("delete", JOB)])
async def test_what_a_crash_left_is_deleted_before_the_next_probe(api: FakeApi, verb: str, kind: str) -> None:
    await crashed(api, verb, kind)
    assert left(api)
    operator = FakeBackends(api)
    before: list[list[str]] = []
    api.admit = lambda _request, body: before.append(left(api)) or body  # type: ignore[func-returns-value]
    await operator.reconcile()
    assert before[0] == []
    assert unproven(operator.status()) == {}
    assert left(api) == []


async def test_what_is_not_of_this_backend_is_left_alone(api: FakeApi) -> None:
    await crashed(api, "list", "Pod")
    theirs = {"dispatch.phpboyscout.uk/start": "other", "dispatch.phpboyscout.uk/start-uid": "other-uid"}
    for kind in (COPY, JOB):
        api.edit(kind, lambda obj: obj["metadata"].update(annotations=theirs, ownerReferences=[]))
    before = left(api)
    await FakeBackends(api).reconcile()
    assert left(api) == before


async def test_a_create_that_lands_late_is_deleted_once_no_run_can_be_busy_with_it(api: FakeApi) -> None:
    operator = FakeBackends(api)
    bodies: list[Object] = []
    create = api.create

    async def lost(kind: str, namespace: str, body: Object, *, timeout: float) -> Object:
        if kind != JOB or bodies:
            return await create(kind, namespace, body, timeout=timeout)
        bodies.append(body)
        raise unanswered()

    api.create = lost  # type: ignore[method-assign]
    result = await operator.reconcile()
    operator.ahead = result.requeue_after or 0
    await operator.reconcile()
    assert unproven(operator.status()) == {}
    late = {**bodies[0], "metadata": {**bodies[0]["metadata"], "creationTimestamp": "2026-01-01T00:00:10Z"}}
    api.put(late)
    # Perhaps another operator's run is busy with it.
    operator.ahead = 11
    result = await operator.reconcile()
    assert result.requeue_after is not None
    assert result.requeue_after < 13
    assert left(api) != []
    operator.ahead = 30
    await operator.reconcile()
    assert left(api) == []
    assert unproven(operator.status()) == {}


async def test_a_second_operator_comes_between_and_both_agree_in_the_end(api: FakeApi) -> None:
    first, second = FakeBackends(api), FakeBackends(api)
    looking = asyncio.create_task(first.reconcile())
    await asyncio.sleep(1)
    assert left(api)
    result, _ = await asyncio.gather(looking, second.reconcile())
    # The second has swept away what the first was busy with, and that is no verdict on the backend.
    assert unproven(first.status()) == {}
    assert result.requeue_after
    await first.reconcile()
    await second.reconcile()
    assert unproven(first.status()) == {}
    assert left(api) == []


@pytest.mark.parametrize("kind", [COPY, JOB])
@pytest.mark.parametrize("when", [("create", JOB), ("patch", COPY), ("list", "Pod"), ("delete", JOB)])
async def test_what_somebody_deletes_in_the_middle_is_no_verdict(
    api: FakeApi, kind: str, when: tuple[str, str]
) -> None:
    at = nth(1, *when, unanswered())

    def fault(request: Any) -> None:
        if at(request):
            for one in api.all(kind):
                api.remove(kind, NAMESPACE, one["metadata"]["name"])

    api.before = fault
    if when == ("create", JOB) and kind == COPY:
        api.before = lambda request: (
            fault(request)
            or (  # type: ignore[func-returns-value]
                refusal("create", JOB, 422, "Invalid", "no such runtime") if str(request) == "create TrainJob" else None
            )
        )
    operator = FakeBackends(api)
    await operator.reconcile()
    if kind == JOB and when != ("create", JOB):
        assert "gates" not in operator.status()
    if kind == COPY and when == ("create", JOB):
        assert "gates" not in operator.status()
    assert left(api) == []


async def test_a_copy_that_is_gone_when_its_owner_is_set_is_a_failure(api: FakeApi) -> None:
    at = nth(1, "patch", COPY, unanswered())

    def fault(request: Any) -> None:
        if at(request):
            api.remove(COPY, NAMESPACE, api.one(COPY)["metadata"]["name"])

    api.before = fault
    operator = FakeBackends(api)
    await operator.reconcile()
    assert "is gone" in unproven(operator.status())["fields-kept"]


async def test_a_deleted_backend_takes_the_copy_of_its_probe_along(api: FakeApi) -> None:
    await crashed(api, "create", JOB)
    operator = FakeBackends(api)
    backend = api.one(BACKEND)
    (copy,) = api.all(COPY)
    concerned = list(targets_of(operator.store, backend_of(backend)))
    assert concerned == [Key(NAMESPACE, copy["metadata"]["name"])]
    cluster: Any = api
    tidier = Leftovers(ForegroundDeletion(cluster, operator.store), OrphanedCopies(cluster, operator.store))
    await tidier.reconcile(concerned[0])
    assert left(api)
    api.remove(BACKEND, NAMESPACE, "default")
    await tidier.reconcile(concerned[0])
    assert left(api) == []


async def test_a_backend_that_is_going_is_left_alone(api: FakeApi) -> None:
    api.edit(BACKEND, lambda held: held["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    operator = FakeBackends(api)
    await operator.reconcile()
    await operator.reconcile("another")
    assert api.requests == []


async def test_one_that_the_crd_would_refuse_is_left_alone(api: FakeApi) -> None:
    api.edit(BACKEND, lambda held: held["spec"].update(runtimes="all"))
    await FakeBackends(api).reconcile()
    assert api.requests == []


async def test_a_status_that_can_not_be_written_is_tried_again(api: FakeApi) -> None:
    api.before = always("patch", BACKEND, refusal("patch", BACKEND, 403, "Forbidden", "cannot patch"))
    operator = FakeBackends(api)
    assert (await operator.reconcile()).requeue
    assert left(api) == []


@pytest.mark.parametrize("kind", [COPY, JOB])
async def test_what_is_gone_before_it_is_swept_is_no_failure(api: FakeApi, kind: str) -> None:
    await crashed(api, "patch", COPY)
    at = nth(1, "delete", kind, unanswered())

    def fault(request: Any) -> None:
        if at(request):
            api.remove(kind, NAMESPACE, request.name)

    api.before = fault
    operator = FakeBackends(api)
    await operator.reconcile()
    assert unproven(operator.status()) == {}
    assert left(api) == []


async def test_a_backend_that_was_proven_since_the_watch_told_of_it_is_not_probed(api: FakeApi) -> None:
    late = FakeBackends(api)
    api.watches.clear()
    await FakeBackends(api).reconcile()
    api.requests.clear()
    await late.reconcile()
    assert api.writes() == []


async def test_a_watch_that_lags_behind_is_helped_by_live_reads(api: FakeApi) -> None:
    operator = FakeBackends(api)
    api.watches.clear()
    api.collects = False

    def fault(request: Any) -> None:
        if str(request) == "get TrainingRuntime" and api.requests.count(request) > 1:
            api.collects = True
            api.collect()

    api.before = fault
    await operator.reconcile()
    assert unproven(operator.status()) == {}
    assert operator.now() < 1_767_225_605


@pytest.mark.parametrize("gone", [True, False])
async def test_a_backend_that_changes_ends_the_probe_at_once(gone: bool) -> None:
    api = make_api(timeouts={"hold": "1h"})
    operator = FakeBackends(api)
    looking = asyncio.create_task(operator.reconcile())
    await asyncio.sleep(1)
    if gone:
        api.remove(BACKEND, NAMESPACE, "default")
    else:
        api.edit(BACKEND, lambda held: held["spec"].update(timeouts={}))
    result = await looking
    assert operator.now() < 1_767_225_602
    assert result == Result(requeue=True)
    assert left(api) == []
    await operator.reconcile()
    assert gone or unproven(operator.status()) == {}


async def test_a_budget_bounds_a_probe_that_somebody_undoes(api: FakeApi) -> None:
    api.before = always("patch", COPY, refusal("patch", COPY, 409, "Conflict", "changed"))
    operator = FakeBackends(api)
    await operator.reconcile()
    (ready,) = [entry for entry in operator.status()["conditions"] if entry["type"] == "Ready"]
    assert "100 requests" in ready["message"]
    assert left(api) == []


UID = "dispatch.phpboyscout.uk/start-uid"
STRIPS: list[Any] = [
    pytest.param(lambda meta: meta["annotations"].pop(UID), id="start-uid"),
    pytest.param(lambda meta: meta["annotations"].update({UID: "another"}), id="start-uid is another"),
    pytest.param(lambda meta: meta.pop("annotations"), id="annotations"),
    pytest.param(lambda meta: meta.pop("labels"), id="labels"),
    pytest.param(
        lambda meta: [meta.pop(part, None) for part in ("labels", "annotations", "ownerReferences")], id="all"
    ),
]


@pytest.mark.parametrize("kind", [JOB, COPY])
@pytest.mark.parametrize("strips", STRIPS)
async def test_a_probe_whose_marks_are_not_kept_says_so_and_leaves_nothing(
    api: FakeApi, kind: str, strips: Any
) -> None:
    def webhook(request: Any, body: Object) -> Object:
        if (request.verb, request.kind) == ("create", kind):
            strips(body["metadata"])
        return body

    api.admit = webhook
    operator = FakeBackends(api)
    for _ in range(2):
        await operator.reconcile()
        assert "metadata." in unproven(operator.status())["fields-kept"]
        assert "submit under another number" not in str(operator.status())
        assert left(api) == []
        operator.ahead += 1000


@pytest.mark.parametrize("strips", [STRIPS[0], STRIPS[2], STRIPS[3]])
async def test_a_probe_whose_marks_are_not_kept_leaves_nothing_after_a_crash_either(api: FakeApi, strips: Any) -> None:
    api.admit = lambda request, body: (request.kind == JOB and strips(body["metadata"]) and None) or body
    await crashed(api, "patch", COPY)
    assert any("TrainJob" in one for one in left(api))
    api.admit = lambda _request, body: body
    await FakeBackends(api).reconcile()
    assert left(api) == []


async def test_a_probes_copy_whose_label_somebody_took_away_goes_with_its_train_job(api: FakeApi) -> None:
    await crashed(api, "list", "Pod")
    for kind in (JOB, COPY):
        api.edit(kind, lambda obj: obj["metadata"].pop("labels"))
    await FakeBackends(api).reconcile()
    assert left(api) == []
