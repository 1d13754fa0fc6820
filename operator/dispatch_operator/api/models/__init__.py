"""The objects of our API group, and the one source of their CRDs."""

from dispatch_operator.api.models.backend import Backend, read_backend
from dispatch_operator.api.models.reading import InvalidObject
from dispatch_operator.api.models.start import JobSpec, RuntimeRef, StartReading, StartRequest, read_start

__all__ = [
    "Backend",
    "InvalidObject",
    "JobSpec",
    "RuntimeRef",
    "StartReading",
    "StartRequest",
    "read_backend",
    "read_start",
]
