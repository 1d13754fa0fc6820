"""`kubectl dispatch` as a person calls it, as kubectl's own child, on the real control plane."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import until

BIN = Path(sys.executable).parent


class Person:
    """Somebody with a kubeconfig, and a namespace to ask about."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        self._namespace = namespace

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(BIN / "kubectl"), "dispatch", "-n", self._namespace, *arguments]

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call the plugin, and return how it ended and what it printed."""
        return subprocess.run(
            self._command(arguments), env=self._environment, capture_output=True, text=True, check=False
        )

    def told(self, *arguments: str) -> str:
        """Return what the plugin prints; it must end with 0."""
        done = self.ask(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def until_told(self, *arguments: str, says: str) -> str:
        """Ask until the answer says something, and return it."""
        last = [""]

        def asked() -> str | None:
            last[0] = self.told(*arguments)
            return last[0] if says in last[0] else None

        try:
            return until(f"kubectl dispatch {' '.join(arguments)} says {says}", asked)
        except TimeoutError as error:
            raise AssertionError(f"{error}; it says: {last[0]}") from error

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run the plugin while the block runs."""
        command = self._command(arguments)
        with subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
