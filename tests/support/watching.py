"""All that happens to some objects, in the order in which it does."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from controlplane import Cluster, kubectl

Object = dict[str, Any]
STOP_SECONDS = 20


class Watch:
    """What a watch has told so far."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._rest = ""
        self._states: list[Object] = []

    def states(self) -> list[Object]:
        """Return each state that an object was in, those of all objects in one order."""
        self._rest += self._output.read()
        while self._rest:
            try:
                event, end = json.JSONDecoder().raw_decode(self._rest)
            except json.JSONDecodeError:
                # The last event is still being written.
                break
            self._states.append(event["object"])
            self._rest = self._rest[end:].lstrip()
        return self._states


@contextmanager
def watching(cluster: Cluster, namespace: str, resource: str) -> Iterator[Watch]:
    """Watch the objects of a resource in a namespace for the block."""
    command = ["get", resource, f"--namespace={namespace}", "--watch", "--output-watch-events", "--output=json"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "events")
        with (
            file.open("w") as output,
            file.open() as reading,
            subprocess.Popen(
                [kubectl.find(), *command], env={**os.environ, **cluster.environment}, stdout=output
            ) as get,
        ):
            try:
                yield Watch(reading)
            finally:
                get.terminate()
                get.wait(STOP_SECONDS)
