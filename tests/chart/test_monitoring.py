"""Alerts and dashboard: what they ask for is there, each alert fires when it should and not before, and says what to do."""

import json
from typing import Any

import pytest
import yaml

from dispatch_operator.controllers.frame import Frame
from dispatch_operator.metrics.exposition import exposition
from support.chart import CHART, ROOT, HelmError, of_kind, render
from support.list_watch_server import connected_to
from support.promql import Samples, evaluate, names

Object = dict[str, Any]
ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text())


def told(name: str, value: float | list[float], **labels: str) -> Samples:
    held = value if isinstance(value, list) else [value]
    return {(name, frozenset(labels.items())): held}


def slow(seconds: str) -> Samples:
    """Return a quarter of an hour in which ten Starts took so long."""
    bounds = ["10", "60", "120", "+Inf"]
    return {
        ("dispatch_start_seconds_bucket", frozenset({("le", bound)})): [0.0] * 15
        + [10.0 if float(bound) >= float(seconds) else 0.0]
        for bound in bounds
    }


def requests(code: str, of_ten: int) -> Samples:
    grown = [0.0] * 5
    return {
        **told("dispatch_api_requests_total", [*grown, float(of_ten)], verb="list", kind="Pod", code=code),
        **told("dispatch_api_requests_total", [*grown, 10.0 - of_ten], verb="list", kind="Pod", code="2xx"),
    }


ROWS: list[tuple[str, Samples, Samples]] = [
    (
        "DispatchOperatorIsAway",
        told("dispatch_leader", 0),
        told("dispatch_leader", 0) | told("dispatch_leader", 1, pod="b"),
    ),
    ("DispatchOperatorIsAway", {}, told("dispatch_leader", 1)),
    (
        "DispatchWatchIsDown",
        told("dispatch_watch_up", 0, kind="TrainJob", namespace=""),
        told("dispatch_watch_up", 1, kind="TrainJob", namespace="")
        # A cluster may lack Kueue.
        | told("dispatch_watch_up", 0, kind="Workload", namespace=""),
    ),
    (
        "DispatchQueueIsStuck",
        told("dispatch_queue_oldest_waiting_seconds", 121, queue="starts"),
        told("dispatch_queue_oldest_waiting_seconds", 119, queue="starts"),
    ),
    ("DispatchApiServerFails", requests("503", 2), requests("503", 1)),
    ("DispatchApiServerFails", requests("none", 2), requests("409", 9)),
    ("DispatchOperatorLacksRights", requests("403", 1), requests("404", 1)),
    ("DispatchStartsAreSlow", slow("100"), slow("30")),
    (
        "DispatchOutcomeIsUnknown",
        told("dispatch_starts", 1, phase="InFlight", error_class="ErrOutcomeUnknown"),
        told("dispatch_starts", 9, phase="Refused", error_class="ErrInvalid"),
    ),
    (
        "DispatchBackendTakesNoStarts",
        told("dispatch_backends", 1, state="Open", ready="False"),
        told("dispatch_backends", 1, state="Closed", ready="False")
        | told("dispatch_backends", 1, state="Open", ready="Unknown"),
    ),
    (
        "DispatchBackendIsInvalid",
        told("dispatch_backends", 1, state="Invalid", ready="Unknown"),
        told("dispatch_backends", 0, state="Invalid", ready="Unknown"),
    ),
    (
        "DispatchObjectIsUnreadable",
        told("dispatch_watch_unreadable_objects_total", [1, 1, 2], kind="TrainJob", namespace=""),
        told("dispatch_watch_unreadable_objects_total", [2] * 70, kind="TrainJob", namespace=""),
    ),
]


@pytest.mark.parametrize(("alert", "bad", "good"), ROWS)
def test_an_alert_fires_when_it_should_and_only_then(alert: str, bad: Samples, good: Samples) -> None:
    assert evaluate(ALERTS[alert]["expr"], bad)
    assert not evaluate(ALERTS[alert]["expr"], good)


def test_every_alert_is_tried_has_a_severity_and_a_heading_that_says_what_to_do() -> None:
    assert {alert for alert, _, _ in ROWS} == set(ALERTS)
    headings = [line for line in (ROOT / "docs" / "operations.md").read_text().splitlines() if line.startswith("### ")]
    assert [line.removeprefix("### ") for line in headings if line.startswith("### Dispatch")] == list(ALERTS)
    for rule in ALERTS.values():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"].endswith(".")


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [*(rule["expr"] for rule in ALERTS.values()), *panels]


async def families() -> set[str]:
    """Return what an operator tells of, by the names that are documented."""
    async with connected_to("http://127.0.0.1:1") as client:
        text = exposition("", Frame(client, []).collector)[0].decode()
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE dispatch_")}


async def test_alerts_and_dashboard_ask_for_what_there_is() -> None:
    known = await families()
    for expression in expressions():
        assert names(expression), expression
        for name in names(expression):
            assert name.removesuffix("_bucket") in known, name


async def test_every_metric_is_documented_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `dispatch_")}
    # The library tells of the creation of each counter, too.
    assert listed == {name for name in await families() if not name.endswith("_created")}


def test_every_expression_of_the_dashboard_can_be_evaluated() -> None:
    for expression in expressions():
        evaluate(expression, {})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a", {"": 4, "x": 6}),
        ('a{l="x"}', {"x": 6}),
        ('a{l!="x"}', {"": 4}),
        ('a{l=~"x|y"}', {"x": 6}),
        ('a{l!~"x|y"}', {"": 4}),
        ("a > 5", {"x": 6}),
        ("sum(a)", {"": 10}),
        ("sum by (l) (a)", {"": 4, "x": 6}),
        ("max(a) / min(a) < 2", {"": 1.5}),
        ("increase(a[1m])", {"": 1, "x": 3}),
        ("rate(a[2m])", {"": 3 / 120, "x": 5 / 120}),
        ("absent(a > 7)", {"": 1}),
        ("absent(a)", {}),
        ("(a)", {"": 4, "x": 6}),
    ],
)
def test_the_evaluator_reads_promql_as_prometheus_does(expression: str, value: dict[str, float]) -> None:
    samples = told("a", [1, 3, 4]) | told("a", [1, 3, 6], l="x")
    want = {frozenset({("l", label)} if label else ()): held for label, held in value.items()}
    assert evaluate(expression, samples) == pytest.approx(want)


def rendered(metrics: Object, kind: str) -> list[Object]:
    return of_kind(render(namespace="dispatch", values={"metrics": metrics}), kind)


def test_only_a_service_is_made_by_default_and_it_finds_the_pods() -> None:
    objects = render(namespace="dispatch")
    (service,) = of_kind(objects, "Service")
    (deployment,) = of_kind(objects, "Deployment")
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert service["spec"]["ports"] == [{"name": ports[0]["name"], "port": 8080, "targetPort": "health"}]
    assert not {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap"} & {one["kind"] for one in objects}
    assert rendered({"service": False}, "Service") == []


@pytest.mark.parametrize(
    ("value", "kind", "endpoints"),
    [("serviceMonitor", "ServiceMonitor", "endpoints"), ("podMonitor", "PodMonitor", "podMetricsEndpoints")],
)
def test_a_monitor_selects_what_the_chart_makes(value: str, kind: str, endpoints: str) -> None:
    wanted = {value: {"enabled": True, "labels": {"release": "prometheus"}, "interval": "30s"}, "service": False}
    (monitor,) = rendered(wanted, kind)
    assert monitor["spec"][endpoints] == [{"port": "health", "path": "/metrics", "interval": "30s"}]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (deployment,) = rendered(wanted, "Deployment")
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert selected <= deployment["spec"]["template"]["metadata"]["labels"].items()
    # A ServiceMonitor is of no use without its Service.
    services = rendered(wanted, "Service")
    assert all(selected <= service["metadata"]["labels"].items() for service in services)
    assert len(services) == (kind == "ServiceMonitor")


def test_the_rules_and_the_dashboard_arrive_as_they_are_written() -> None:
    wanted = {"rules": {"enabled": True, "labels": {"a": "b"}}, "dashboard": {"enabled": True}}
    (rules,) = rendered(wanted, "PrometheusRule")
    assert rules["metadata"]["labels"]["a"] == "b"
    assert {rule["alert"]: rule for group in rules["spec"]["groups"] for rule in group["rules"]} == ALERTS
    (dashboard,) = rendered(wanted, "ConfigMap")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["dispatch-operator.json"]) == DASHBOARD


@pytest.mark.parametrize("metrics", [{"other": 1}, {"rules": True}, {"podMonitor": {"interval": "soon"}}])
def test_what_is_no_value_is_refused(metrics: Object) -> None:
    with pytest.raises(HelmError):
        render(namespace="dispatch", values={"metrics": metrics})
