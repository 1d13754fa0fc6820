"""The control plane's processes: started with a log file each, watched, and stopped in order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from controlplane.waiting import POLL_SECONDS

LAUNCHER = Path(__file__).with_name("launch.py")
GRACE_SECONDS = 5
COLLECT_LESS = {"GOGC": "200"}
"""Go's setting for a heap that may double before it is collected: less work for some more memory."""
TAIL_LINES = 25


class Stage(IntEnum):
    """The order in which programs stop, highest first: what uses another ends before it."""

    STORE = 0
    SERVER = 1
    CONTROLLER = 2


@dataclass(frozen=True)
class Program:
    """What is to be started: its command line, and the environment variables that it gets."""

    name: str
    command: tuple[str, ...]
    stage: Stage = Stage.CONTROLLER
    environment: Mapping[str, str] = field(default_factory=dict)


class ProcessDiedError(RuntimeError):
    """A process ended although nobody asked it to."""


@dataclass(frozen=True)
class _Running:
    program: Program
    process: subprocess.Popen[bytes]
    log: Path


class Processes:
    """Started programs, with their logs in `logs`.

    The thread that starts programs must outlive them: Linux counts the death of that thread as the parent's.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[_Running] = []

    def start(self, program: Program) -> None:
        """Start a program; what it prints goes to `<logs>/<name>.log`."""
        log = self._logs / f"{program.name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(  # The command lines are ours.
                [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *program.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": os.defpath, **COLLECT_LESS, **program.environment},
                # Ctrl-C in a terminal must reach the parent alone, which then stops everything in order.
                start_new_session=True,
            )
        self._running.append(_Running(program, process, log))

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each program by its name."""
        return {running.program.name: running.process.pid for running in self._running}

    def check(self) -> None:
        """Return when all programs run.

        Raises:
            ProcessDiedError: One doesn't; the message says which, how it ended and the end of its log.
        """
        for running in self._running:
            status = running.process.poll()
            if status is not None:
                raise ProcessDiedError(describe_death(running.program.name, status, running.log))

    def stop(self) -> None:
        """Stop what runs, stage by stage, and return when all have ended."""
        for stage in sorted(Stage, reverse=True):
            _stop_together([running.process for running in self._running if running.program.stage is stage])


def describe_death(name: str, status: int, log: Path) -> str:
    """Say how a process ended, with the last lines of its log."""
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.exists() else []
    tail = "\n".join(f"  | {line}" for line in lines) or "  (it logged nothing)"
    return f"{name} {how}; the end of {log}:\n{tail}"


def _stop_together(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    live = [process for process in processes if process.poll() is None]
    for process in live:
        process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    while any(process.poll() is None for process in live) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 4)
    for process in live:
        process.kill()
        process.wait()
