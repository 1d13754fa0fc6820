"""What Prometheus is told, as its own library reads it back."""

import asyncio
from collections.abc import Callable

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from dispatch_operator import __version__
from dispatch_operator.api.enums import Phase
from dispatch_operator.api.models.status import Outcome, StartStatus
from dispatch_operator.controllers.collector import OperatorCollector
from dispatch_operator.controllers.frame import QUEUES, Frame
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError
from dispatch_operator.kube.health import Health, answering
from dispatch_operator.kube.reflectors import Reflectors
from dispatch_operator.kube.store import Store
from dispatch_operator.metrics import instruments
from dispatch_operator.metrics.exposition import exposition
from dispatch_operator.reconcile.actions import Result
from support.builders import make_backend, make_condition, make_start
from support.list_watch_server import ListWatchServer, connected_to
from support.records import watched

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(*collectors: OperatorCollector) -> Samples:
    """Return what is told, by name and labels."""
    text = exposition("", *collectors)[0].decode()
    return {(one.name, frozenset(one.labels.items())): one.value for family in parsed(text) for one in family.samples}


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def more(change: Callable[[], object], name: str, **labels: str) -> float:
    """Return by how much something changes a sample."""
    before = value(samples(), name, **labels)
    change()
    return value(samples(), name, **labels) - before


def collector(store: Store | None = None, **queues: WorkQueue[object]) -> OperatorCollector:
    return OperatorCollector(queues, Reflectors(lambda: 0.0), store or Store())  # type: ignore[arg-type]


def identified(obj: dict[str, object], version: int = 1) -> dict[str, object]:
    meta = obj["metadata"]
    assert isinstance(meta, dict)
    return {**obj, "metadata": {"uid": f"uid-{meta['name']}", "resourceVersion": str(version), **meta}}


def test_starts_and_backends_are_counted_as_they_come_change_and_go() -> None:
    store = Store()
    told = collector(store)
    refused = make_start("bad") | {
        "status": {"phase": "Refused", "conditions": [make_condition("Ready", "False", "ErrInvalid")]}
    }
    odd = make_start("odd") | {
        "status": {"phase": "Gated", "conditions": [make_condition("Ready", "False", "Somebody's")]}
    }
    for obj in (identified(make_start("new")), identified(refused), identified(odd), identified(make_backend())):
        store.put(watched(obj))
    store.put(watched(identified(make_backend("broken", state=5))))
    found = samples(told)
    assert value(found, "dispatch_starts", phase="Unseen", error_class="") == 1
    assert value(found, "dispatch_starts", phase="Refused", error_class="ErrInvalid") == 1
    # A reason that the operator did not write is no label.
    assert value(found, "dispatch_starts", phase="Gated", error_class="") == 1
    assert value(found, "dispatch_backends", state="Open", ready="Unknown") == 1
    assert value(found, "dispatch_backends", state="Invalid", ready="Unknown") == 1
    store.put(watched(identified(refused | {"metadata": make_start("new")["metadata"]}, version=2)))
    store.drop(watched(identified(refused)))
    found = samples(told)
    assert value(found, "dispatch_starts", phase="Unseen", error_class="") == 0
    assert value(found, "dispatch_starts", phase="Refused", error_class="ErrInvalid") == 1


@pytest.mark.looptime
async def test_a_queue_tells_what_waits_for_how_long_and_what_is_tried_again() -> None:
    busy = asyncio.Event()

    async def reconcile(key: object) -> Result:
        await busy.wait()
        return Result(requeue=key == "bad")

    queue: WorkQueue[object] = WorkQueue(reconcile, max_concurrent=1)
    told = collector(starts=queue)
    for key in ("good", "bad", "last"):
        queue.add(key)
        await asyncio.sleep(0.5)
    found = samples(told)
    assert value(found, "dispatch_queue_running", queue="starts") == 1
    assert value(found, "dispatch_queue_waiting", queue="starts") == 2
    assert value(found, "dispatch_queue_oldest_waiting_seconds", queue="starts") == pytest.approx(1, abs=0.01)
    busy.set()
    await asyncio.sleep(0.1)
    found = samples(told)
    assert value(found, "dispatch_queue_waiting", queue="starts") == 0
    assert value(found, "dispatch_queue_oldest_waiting_seconds", queue="starts") == 0
    assert value(found, "dispatch_queue_reconciles_total", queue="starts") == 3
    assert value(found, "dispatch_queue_retries_total", queue="starts") == 1
    assert value(found, "dispatch_queue_delayed", queue="starts") == 1
    await queue.close(grace_period=1)


async def test_each_watch_and_each_queue_of_an_operator_is_told() -> None:
    server = ListWatchServer()
    async with server.serving() as client:
        found = samples(Frame(client, ["team-a"]).collector)
        whole = samples(Frame(client, []).collector)
    watches = {dict(labels)["kind"]: dict(labels) for name, labels in found if name == "dispatch_watch_synced"}
    assert watches["TrainJob"]["namespace"] == "team-a"
    assert watches["ClusterTrainingRuntime"]["namespace"] == ""
    assert "AdmissionCheck" not in watches
    assert value(found, "dispatch_watch_up", kind="TrainJob", namespace="team-a") == 0
    queues = [dict(labels)["queue"] for name, labels in whole if name == "dispatch_queue_waiting"]
    assert queues == list(QUEUES)


def test_a_start_that_is_whole_and_an_end_are_counted_once() -> None:
    started = StartStatus(conditions=(watched(make_started()).status.condition("Started"),))  # type: ignore[union-attr, arg-type]
    failed = StartStatus(outcome=Outcome("Failed", "OOMKilled"))
    change = instruments.start_changed
    assert more(lambda: change(StartStatus(), started, 7.0), "dispatch_start_seconds_sum") == 7
    assert more(lambda: change(started, started, 7.0), "dispatch_start_seconds_count") == 0
    assert more(lambda: change(StartStatus(), started, None), "dispatch_start_seconds_count") == 0
    cancelled = StartStatus(phase=Phase.CANCELLED, outcome=Outcome("Cancelled", "Cancelled"))
    assert more(lambda: change(StartStatus(), cancelled, 7.0), "dispatch_start_seconds_count") == 0
    labels = {"state": "Cancelled", "cause": "Cancelled"}
    assert more(lambda: change(StartStatus(), cancelled, 7.0), "dispatch_ended_total", **labels) == 1
    labels = {"state": "Failed", "cause": "OOMKilled"}
    assert more(lambda: change(started, failed, None), "dispatch_ended_total", **labels) == 1
    assert more(lambda: change(failed, failed, None), "dispatch_ended_total", **labels) == 0


def test_an_act_of_a_reconcile_is_timed() -> None:
    labels = {"action": "Create", "object": "copy"}
    assert more(lambda: instruments.step("Create", "copy", 2.0), "dispatch_step_seconds_sum", **labels) == 2


def make_started() -> dict[str, object]:
    return identified(make_start() | {"status": {"conditions": [make_condition("Started")]}})


def test_causes_that_anybody_may_choose_are_bounded() -> None:
    for number in range(2 * instruments.MOST_CAUSES):
        instruments.start_changed(StartStatus(), StartStatus(outcome=Outcome("Failed", f"Odd{number}")), None)
    causes = {dict(labels).get("cause") for name, labels in samples() if name == "dispatch_ended_total"}
    assert len(causes) <= instruments.MOST_CAUSES + 1
    assert instruments.OTHER in causes


@pytest.mark.parametrize(("status", "code"), [(200, "2xx"), (403, "403"), (503, "503")])
async def test_a_request_is_counted_by_verb_kind_and_code(status: int, code: str) -> None:
    from aiohttp import test_utils, web  # noqa: PLC0415

    app = web.Application()

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}}, status=status)

    app.router.add_route("*", "/{path:.*}", answer)
    verbs = {"get": 0.0, "create": 0.0, "list": 0.0}
    before = samples()
    async with test_utils.TestServer(app) as served, connected_to(str(served.make_url("")).rstrip("/")) as client:
        await _ask(client)
    after = samples()
    for verb in verbs:
        labels = {"verb": verb, "kind": "Pod", "code": code}
        counted = value(after, "dispatch_api_requests_total", **labels)
        assert counted - value(before, "dispatch_api_requests_total", **labels) == 1
        labels.pop("code")
        assert value(after, "dispatch_api_request_seconds_count", **labels)


async def test_a_request_that_nobody_answers_is_counted_as_that() -> None:
    labels = {"verb": "get", "kind": "Pod", "code": "none"}
    before = value(samples(), "dispatch_api_requests_total", **labels)
    async with connected_to("http://127.0.0.1:1") as client:
        await _ask(client)
    assert value(samples(), "dispatch_api_requests_total", **labels) - before == 1


async def _ask(client: Client) -> None:
    for ask in (
        lambda: client.get("Pod", "team-a", "x", timeout=5),  # type: ignore[arg-type]
        lambda: client.create("Pod", "team-a", {}, timeout=5),  # type: ignore[arg-type]
        lambda: client.list_page("Pod", "team-a", timeout=5, limit=1),  # type: ignore[arg-type]
    ):
        try:
            await ask()
        except ApiError:
            continue


async def test_prometheus_finds_all_beside_the_probes(unused_tcp_port: int) -> None:
    health = Health(lambda: True)
    health.collectors = (collector(Store()),)
    async with (
        answering(health, "127.0.0.1", unused_tcp_port),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{unused_tcp_port}/metrics") as response,
    ):
        text = await response.text()
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert f'version="{__version__}"' in text
    assert "process_cpu_seconds_total" in text
    assert "dispatch_queue_waiting" in text


def test_no_label_has_a_value_that_a_user_chooses() -> None:
    allowed = {"action", "cause", "code", "error_class", "kind", "le", "namespace", "object", "phase", "queue"}
    allowed |= {"ready", "result", "state", "verb", "version", "python"}
    labels = {key for name, pairs in samples(collector()) if name.startswith("dispatch_") for key, _ in pairs}
    assert labels <= allowed
