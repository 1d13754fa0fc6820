"""The page of the metrics, from the instruments and from what the collector reads."""

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from dispatch_operator.controllers.collector import OperatorCollector
from dispatch_operator.kube.reflectors import Reflectors
from dispatch_operator.kube.store import Store
from dispatch_operator.metrics import instruments
from reference.markdown import block, code, table

SUFFIXES = {"counter": "_total", "info": "_info"}
INTRODUCTION = """\
What `GET /metrics` tells; [Operations](../operations.md#metrics) says how to scrape it, and what to do when an alert
fires. No label has a value that a user chooses. For example, the Starts that wait, and how long a Start takes:
"""
QUERIES = """
sum by (phase) (dispatch_starts{phase=~"Pending|Starting|InFlight|Stopping"})
histogram_quantile(0.95, sum by (le) (rate(dispatch_start_seconds_bucket[10m])))
"""


def pages() -> dict[str, str]:
    """Return the one page."""
    rows = [(code(name), kind, ", ".join(labels), text) for name, kind, labels, text in sorted(described())]
    text = table(("metric", "type", "labels", "what it tells"), rows)
    return {"metrics.md": "\n".join(["# Metrics", INTRODUCTION, block(QUERIES, "promql"), text])}


def described() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield name, type, labels and meaning of every metric, as Prometheus sees them."""
    for instrument in vars(instruments).values():
        if isinstance(instrument, MetricWrapperBase):
            (family,) = instrument.describe()
            yield _described(family, instrument)
    for family in OperatorCollector({}, Reflectors(time.monotonic), Store()).collect():
        yield _described(family, family)


def _described(family: Metric, labelled: Any) -> tuple[str, str, tuple[str, ...], str]:  # noqa: ANN401
    # The library tells the labels nowhere else before there is a sample.
    return family.name + SUFFIXES.get(family.type, ""), family.type, tuple(labelled._labelnames), family.documentation  # noqa: SLF001
