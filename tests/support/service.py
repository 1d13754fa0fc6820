"""The operator as its own process, as it runs in a pod."""

import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.waiting import until

STOP_SECONDS = 20
COMMAND = "dispatch_operator.cli.main"
PROGRAM = ("-m", COMMAND)
IS_MEASURED = "COVERAGE_FILE" in os.environ
"""Where coverage is measured, each operator is a program of its own: those that wait to be forked are measured too, and
write what they found when the tests have ended, while that is being read."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([COMMAND, "dispatch_operator.cli.run"])
"""Hundreds of operators are started: each is forked from a process that has imported what it needs, and runs nothing."""


class _Forked:
    """An operator as a process of its own, whose imports were made before."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._process = _FORKS.Process(target=_run, args=(arguments, str(log)), daemon=True)
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise TimeoutError(f"the operator has not ended within {seconds:g} s")
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def _run(arguments: Sequence[str], log: str) -> None:
    """Be the command, with its output in a file."""
    into = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(into, stream.fileno())
    main = importlib.import_module(COMMAND).main
    sys.argv = ["dispatch-operator", *arguments]
    main()


class Service:
    """A running `dispatch-operator run`; its log is kept in a file.

    With `waits` it is not expected to watch yet, because another one holds the Lease.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        *arguments: str,
        waits: bool = False,
        environment: dict[str, str] | None = None,
        program: Sequence[str] = (),
    ) -> None:
        self.log = Path(tempfile.mkstemp(prefix="dispatch-operator-", suffix=".log")[1])
        account = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        run = ["run", *account, *arguments]
        is_plain = not (program or environment or IS_MEASURED)
        self._process = _Forked(run, self.log) if is_plain else self._popen(program, run, environment)
        until("the operator waits" if waits else "the operator watches", self._waits if waits else self._watches)

    def _popen(
        self, program: Sequence[str], run: Sequence[str], environment: dict[str, str] | None
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, *(program or PROGRAM), *run]
        with self.log.open("w") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(environment or {})})

    def kill(self) -> None:
        """Send SIGKILL, whatever it is doing."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def stop(self) -> int:
        """End it as Kubernetes does; return its exit code."""
        self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    @property
    def runs(self) -> bool:
        """True until it ended."""
        return self._process.poll() is None

    def _waits(self) -> bool:
        return "waiting for Lease" in self.log.read_text()

    def _watches(self) -> bool:
        if not self.runs:
            raise AssertionError(f"the operator ended:\n{shown(self.log)}")
        return "reconciles begin" in self.log.read_text()


def shown(log: Path) -> str:
    """Return a log without what is too long to be read: a line may quote a megabyte."""
    return "\n".join(line[:500] for line in log.read_text().splitlines()[-500:])


@contextmanager
def serving(
    kubeconfig: Path | None,
    *arguments: str,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = (),
) -> Iterator[Service]:
    """Run an operator while the block runs; it must stop cleanly, and must not have logged a traceback."""
    service = Service(kubeconfig, *arguments, environment=environment, program=program)
    try:
        yield service
    except BaseException:
        service.kill()
        sys.stderr.write(shown(service.log))
        raise
    if service.runs:
        code = service.stop()
        assert code == 0, shown(service.log)
    assert "Traceback" not in service.log.read_text(), shown(service.log)
    service.log.unlink()
