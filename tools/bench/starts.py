"""The DispatchStarts that are started by everybody who is measured, and what they rest on."""

from pathlib import Path
from typing import Any

import yaml

from bench.fake.crowd import job, start_name

ROOT = Path(__file__).parents[2]
NAMESPACE = "bench"
Object = dict[str, Any]


def load(file: str) -> Object:
    """Return an object from a file below deploy/."""
    loaded: Object = yaml.safe_load((ROOT / "deploy" / file).read_text())
    return loaded


def make_start(number: int, namespace: str = NAMESPACE) -> Object:
    """Return a DispatchStart of the sample, with a name and a job of its own."""
    start = load("samples/start.yaml")
    start["metadata"] |= {"name": start_name(number), "namespace": namespace}
    start["spec"]["request"]["job"] = job(number)
    return start
