"""What a backend's admin lets requests ask for (docs/contract.md, Guard rails)."""

import re
from collections.abc import Iterator

from dispatch_operator.api import duration
from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.models import Backend, JobSpec, StartReading
from dispatch_operator.api.models.backend import BackendSpec
from dispatch_operator.api.models.start import IMAGE
from dispatch_operator.api.quoting import quote, shortened
from dispatch_operator.checks.problems import Problem

LONGEST_LIST = 500
"""Characters of the images that are allowed, in a message."""


def guard_rail_problems(reading: StartReading, backend: Backend) -> Iterator[Problem]:
    """Yield what the backend does not allow; what can't be read, or is wrong by itself, is told elsewhere."""
    spec, rails = reading.request.spec, backend.spec
    found = ((IMAGE, _image(spec, rails)), ("nodes", _nodes(spec, rails)), ("gpusPerNode", _gpus(spec, rails)))
    for name, text in (*found, ("timeLimit", _time_limit(spec, rails))):
        if text is not None and not _is_faulty(reading, name):
            yield Problem(ErrorClass.UNSUPPORTED, name, text)


def _is_faulty(reading: StartReading, name: str) -> bool:
    """Whether what a verdict rests on stands in for something that could not be read."""
    places = {IMAGE: (("extensions", IMAGE, "ref"),), "gpusPerNode": (("gpusPerNode",), ("nodes",))}
    return any(reading.is_faulty("request", "spec", *place) for place in places.get(name, ((name,),)))


def _image(spec: JobSpec, rails: BackendSpec) -> str | None:
    image = spec.extensions.image.ref if spec.extensions.image else ""
    if not image or rails.images is None or any(_matches(pattern, image) for pattern in rails.images):
        return None
    allowed = shortened(", ".join(quote(pattern) for pattern in rails.images), LONGEST_LIST)
    return f"ref {quote(image)} is none of the images that the backend allows: {allowed}"


def _matches(pattern: str, image: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), image, re.DOTALL) is not None


def _nodes(spec: JobSpec, rails: BackendSpec) -> str | None:
    most = rails.max_nodes
    return None if most is None or spec.nodes <= most else f"{spec.nodes:,} are more than the backend allows: {most:,}"


def _gpus(spec: JobSpec, rails: BackendSpec) -> str | None:
    most, all_of_them = rails.max_gpus, max(spec.nodes, 0) * max(spec.gpus_per_node, 0)
    if most is None or all_of_them <= most:
        return None
    what = f"{spec.nodes:,} nodes with {spec.gpus_per_node:,} each are {all_of_them:,} GPUs"
    return f"{what}, and the backend allows {most:,} for a job"


def _time_limit(spec: JobSpec, rails: BackendSpec) -> str | None:
    try:
        limit = duration.parse(spec.time_limit or "0")
    except ValueError:
        return None
    longest = rails.max_time_limit
    if limit == 0 and (longest is not None or rails.time_limit_required):
        return "the backend requires one" + (f", of at most {longest}" if longest else "")
    if longest is not None and limit > duration.parse(longest):
        return f"{quote(spec.time_limit)} is longer than the backend allows: {longest}"
    return None
