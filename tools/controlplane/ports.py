"""Loopback ports that no other control plane takes, however many start at once.

A port that is asked of the kernel and closed again may be handed to anyone before the server binds it. These ports
are therefore below the range from which the kernel chooses by itself, and each is held by a file lock for as long as
its control plane lives. The kernel drops the lock with the process that holds it, however that ends.
"""

import errno
import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOOPBACK = "127.0.0.1"
FIRST_PORT = 20_000
LAST_PORT = 32_000


class NoFreePortError(RuntimeError):
    """Every port of the range is taken."""


@contextmanager
def reserved(count: int, folder: Path | None = None) -> Iterator[list[int]]:
    """Hold `count` ports until the context ends.

    Args:
        count: How many.
        folder: Where the lock files are; by default one folder per user, shared by all control planes.

    Raises:
        NoFreePortError: There are fewer than `count` free ports.
    """
    folder = folder or Path(tempfile.gettempdir()) / f"dispatch-operator-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    candidates = list(range(FIRST_PORT, LAST_PORT + 1))
    random.shuffle(candidates)
    ports: list[int] = []
    with ExitStack() as locks:
        for port in candidates:
            if len(ports) == count:
                break
            lock = _try_lock(folder / str(port))
            if lock is None:
                continue
            locks.callback(os.close, lock)
            if _is_free(port):
                ports.append(port)
        if len(ports) < count:
            raise NoFreePortError(f"no {count} free ports from {FIRST_PORT} to {LAST_PORT} on {LOOPBACK}")
        yield ports


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # A server may bind although closed connections of the last one linger; so may this probe.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True
