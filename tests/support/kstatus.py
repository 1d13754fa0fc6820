"""What kstatus makes of objects: the library itself, by which Flux and kubectl's cli-utils go."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from controlplane.build import Built


class Kstatus:
    """Asks the program of tools/go/kstatus."""

    def __init__(self, built: Built) -> None:
        self._program = built.program("kstatus")

    def of(self, obj: dict[str, Any]) -> str:
        """Return InProgress, Failed, Current or Terminating."""
        return self.of_all([obj])[0]

    def of_all(self, objects: Sequence[dict[str, Any]]) -> list[str]:
        """Return the same of many objects, in their order."""
        done = subprocess.run(  # No shell is involved.
            [self._program], input=json.dumps(objects), capture_output=True, text=True, check=True, timeout=60
        )
        found: list[str] = json.loads(done.stdout)
        return found
