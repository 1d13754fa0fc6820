"""A process that is measured: its CPU, its memory, and what it says."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1024
"""KiB."""
POLL_SECONDS = 0.02
PATIENCE_SECONDS = 300.0
STOP_SECONDS = 20.0
LISTED = "reconciles begin"
"""What the operator logs when it has listed everything."""


class Process:
    """A process of the bench's own, whose log is a file."""

    def __init__(self, command: list[str | Path], log: Path) -> None:
        self.begun = time.monotonic()
        self.log = log
        with log.open("w") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file)

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used so far, of its own and of the kernel."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def memory(self) -> float:
        """MiB that are resident now."""
        return self._status("VmRSS") / MIB

    @property
    def peak(self) -> float:
        """MiB that were resident at most."""
        return self._status("VmHWM") / MIB

    def _status(self, field: str) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{field}:"))

    def says(self, text: str, poll: float = POLL_SECONDS, times: int = 1) -> str:
        """Wait until it has logged a text so many times, and return its log.

        Raises:
            RuntimeError: It ended, or did not log that in time.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if (said := self.log.read_text()).count(text) >= times:
                return said
            if self._process.poll() is not None:
                raise RuntimeError(f"it ended before it said {text!r}:\n{said[-2000:]}")
            time.sleep(poll)
        raise RuntimeError(f"it did not say {text!r} in time")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise


@contextmanager
def running(*command: str | Path) -> Iterator[Process]:
    """Run a program for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="dispatch-bench-") as folder:
        process = Process([sys.executable, *command], Path(folder, "log"))
        try:
            yield process
        finally:
            process.stop()


@contextmanager
def operator(kubeconfig: Path, *scope: str) -> Iterator[Process]:
    """Run an operator that has listed everything."""
    account = ("--kubeconfig", kubeconfig)
    with running("-m", "dispatch_operator.cli.main", "run", *account, *(scope or ("--all-namespaces",))) as process:
        process.says(LISTED)
        yield process
