"""Running a long command while telling the reader, on stderr, that it still runs."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TERMINAL_SECONDS = 2
LOG_SECONDS = 30


class CommandFailedError(RuntimeError):
    """A command failed; the message holds everything that it printed."""


def run_with_progress(
    what: str, command: Sequence[str], *, environment: Mapping[str, str], folder: Path | None = None
) -> None:
    """Run a command to its end; say `what` it does and for how long it has.

    A terminal gets one line that is rewritten, a log gets a line every half a minute.

    Raises:
        CommandFailedError: It failed.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # No shell is involved.
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
        try:
            _report_until_end(what, process, started)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if process.returncode:
            output.seek(0)
            printed = output.read().decode(errors="replace")
            raise CommandFailedError(f"{what}: {' '.join(command)} exited with {process.returncode}:\n{printed}")


def say(text: str) -> None:
    """Tell the reader something, on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _report_until_end(what: str, process: subprocess.Popen[bytes], started: float) -> None:
    terminal = sys.stderr.isatty()
    while True:
        line = f"{what}: {_duration(time.monotonic() - started)}"
        sys.stderr.write(f"\r{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
        try:
            process.wait(TERMINAL_SECONDS if terminal else LOG_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        outcome = "failed" if process.returncode else "done"
        say(f"{chr(13) if terminal else ''}{what}: {outcome} after {_duration(time.monotonic() - started)}")
        return


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
