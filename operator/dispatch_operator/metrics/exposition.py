"""All metrics as the text that Prometheus scrapes."""

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

Collectors = tuple[Collector, ...]


def exposition(accept: str, *collectors: Collector) -> tuple[bytes, str]:
    """Return the text of all instruments, of the process, and of some collectors more; and its content type.

    Args:
        accept: The Accept header of who asks: Prometheus may prefer OpenMetrics.
        collectors: What is read only now.
    """
    registry = CollectorRegistry()
    for collector in (REGISTRY, *collectors):
        registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
