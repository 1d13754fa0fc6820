"""What of a DispatchStart is needed before, and whatever, its request is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.enums import Gate, Retry
from dispatch_operator.api.models import read_start


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The backend to start on, what the user wants of the gate, and whether refusals are final."""

    backend: str
    """Empty, which no object is called, when it could not be read."""
    gate: Gate
    retry: Retry


def start_options(start: Mapping[str, Any]) -> StartOptions:
    """Read the frame of an object, even of one that the CRD would refuse: its gate is then closed."""
    reading = read_start(start)
    return StartOptions(
        backend="" if reading.is_faulty("backend") else reading.spec.backend,
        gate=reading.spec.gate,
        retry=reading.spec.retry,
    )
