"""Become another program, one that the kernel kills when the parent dies.

Run as a script by `processes`: `python launch.py PARENT_PID PROGRAM ARGUMENT...`. A `preexec_fn` would do the same, but
is unsafe in a parent with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, make sure that the parent still lives, and execute the program."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A parent that died before the request was made sends no signal.
    if os.getppid() != parent:
        sys.exit(f"{program[0]}: the parent process {parent} is gone")
    os.execv(program[0], program)  # noqa: S606  # No shell is wanted.


if __name__ == "__main__":
    main()
