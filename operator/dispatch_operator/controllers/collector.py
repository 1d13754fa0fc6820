"""What is read when metrics are asked for: how the queues and the watches fare, and what the store counts."""

import time
from collections.abc import Iterator, Mapping
from typing import TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.presence import Presence
from dispatch_operator.kube.reflectors import Reflectors
from dispatch_operator.kube.store import Store

L = TypeVar("L", bound=tuple[str, ...])


class OperatorCollector(Collector):
    """Reads one operator; what is asked costs the same for ten objects and for ten thousand."""

    def __init__(self, queues: Mapping[str, WorkQueue[Key]], reflectors: Reflectors, store: Store) -> None:
        self._queues = queues
        self._reflectors = reflectors
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._objects()
        yield from self._work()
        yield from self._watches()

    def _objects(self) -> Iterator[Metric]:
        yield _gauge(
            "dispatch_starts",
            "DispatchStarts by phase (Unseen before the first), and by error class, empty when there is none.",
            ("phase", "error_class"),
            self._store.starts_by_state.counts,
        )
        yield _gauge(
            "dispatch_backends",
            "DispatchBackends by state (Invalid when it can't be read), and by whether they take Starts.",
            ("state", "ready"),
            self._store.backends_by_state.counts,
        )

    def _work(self) -> Iterator[Metric]:
        states = {(name,): queue.state for name, queue in self._queues.items()}
        label = ("queue",)
        yield _gauge(
            "dispatch_queue_waiting",
            "Objects that wait for a reconcile.",
            label,
            {name: state.waiting for name, state in states.items()},
        )
        yield _gauge(
            "dispatch_queue_running",
            "Objects that are being reconciled.",
            label,
            {name: state.running for name, state in states.items()},
        )
        yield _gauge(
            "dispatch_queue_delayed",
            "Objects that are to be looked at again at a set time.",
            label,
            {name: state.delayed for name, state in states.items()},
        )
        yield _gauge(
            "dispatch_queue_oldest_waiting_seconds",
            "Seconds for which the object that has waited longest has waited for its reconcile; 0 when none waits.",
            label,
            {name: state.oldest_waiting for name, state in states.items()},
        )
        yield _counter(
            "dispatch_queue_reconciles",
            "Reconciles that ended.",
            label,
            {name: state.reconciles for name, state in states.items()},
        )
        yield _counter(
            "dispatch_queue_retries",
            "Reconciles that ended with a fault that passes, and are made again with backoff.",
            label,
            {name: state.retries for name, state in states.items()},
        )

    def _watches(self) -> Iterator[Metric]:
        states = {(str(each.kind), each.namespace or ""): each.state for each in self._reflectors}
        label = ("kind", "namespace")
        # Nothing is wrong where there is nothing to watch: no alert may fire for it.
        possible = {watch: state for watch, state in states.items() if state.presence is Presence.EXISTS}
        yield _gauge(
            "dispatch_namespace_exists",
            "Whether a namespace that is to be served exists, and is not being deleted.",
            ("namespace",),
            {(name,): found is Presence.EXISTS for name, found in self._reflectors.presences().items()},
        )
        yield _gauge(
            "dispatch_watch_synced",
            "Whether the first list of a watch was complete; the namespace is empty for the whole cluster.",
            label,
            {watch: state.synced for watch, state in possible.items()},
        )
        yield _gauge(
            "dispatch_watch_up",
            "Whether a watch is up now.",
            label,
            {watch: state.since is None for watch, state in possible.items()},
        )
        # The reflectors' clock knows no date.
        ahead = time.time() - time.monotonic()
        yield _gauge(
            "dispatch_watch_last_event_timestamp_seconds",
            "When the last event of a watch came, bookmarks included.",
            label,
            {watch: ahead + state.last_event for watch, state in states.items() if state.last_event is not None},
        )
        yield _gauge(
            "dispatch_watch_objects",
            "Objects that a watch knows.",
            label,
            {watch: state.objects for watch, state in states.items()},
        )
        yield _counter(
            "dispatch_watch_restarts",
            "Times that a list or a watch was made again because of a fault.",
            label,
            {watch: state.restarts for watch, state in states.items()},
        )
        yield _counter(
            "dispatch_watch_unreadable_objects",
            "Times that an object came that can't be read, and was left alone; the log names it.",
            label,
            {watch: state.unreadable for watch, state in states.items()},
        )


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[L, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for held, value in values.items():
        family.add_metric(held, value)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], values: Mapping[L, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for held, value in values.items():
        family.add_metric(held, value)
    return family
