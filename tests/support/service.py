"""The operator as its own process, as it runs in a pod."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.waiting import until

STOP_SECONDS = 20
PROGRAM = ("-m", "dispatch_operator.cli.main")


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
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.log = Path(tempfile.mkstemp(prefix="dispatch-operator-", suffix=".log")[1])
        account = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        command = [sys.executable, *program, "run", *account, *arguments]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        until("the operator waits" if waits else "the operator watches", self._waits if waits else self._watches)

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
    program: Sequence[str] = PROGRAM,
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
