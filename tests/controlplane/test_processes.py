"""Programs are watched, and stopped in order. Shell commands stand in for servers."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.processes import LAUNCHER, ProcessDiedError, Processes, Program, Stage, describe_death
from controlplane.waiting import NotInTimeError, StoppedError, Waiter


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    yield processes
    processes.stop()


def make_program(name: str, script: str, stage: Stage = Stage.CONTROLLER) -> Program:
    return Program(name, ("/bin/sh", "-c", script), stage)


def await_log(processes: Processes, log: Path) -> None:
    """Wait until a program has set its trap and said so."""
    waiter = Waiter(threading.Event(), processes.check)
    waiter.until(f"{log.stem} is up", lambda: None if log.read_text() else "it logs nothing", seconds=10)


def await_death(processes: Processes) -> ProcessDiedError:
    waiter = Waiter(threading.Event(), processes.check)
    with pytest.raises(ProcessDiedError) as raised:
        waiter.until("a process dies", lambda: "it lives", seconds=10)
    return raised.value


def test_nothing_is_said_while_all_run(processes: Processes) -> None:
    processes.start(make_program("first", "sleep 60"))
    processes.check()
    assert list(processes.pids) == ["first"]


def test_a_death_names_the_program_its_status_and_its_last_words(processes: Processes, tmp_path: Path) -> None:
    processes.start(make_program("healthy", "sleep 60"))
    processes.start(make_program("etcd", "seq 1 100; echo panic: no space >&2; exit 3"))
    message = str(await_death(processes))
    assert message.startswith(f"etcd exited with status 3; the end of {tmp_path / 'etcd.log'}:\n")
    assert message.endswith("  | 99\n  | 100\n  | panic: no space")
    assert "  | 70\n" not in message


def test_a_death_by_a_signal_names_it(processes: Processes) -> None:
    processes.start(make_program("kwok", "kill -KILL $$"))
    assert str(await_death(processes)).startswith("kwok was killed by SIGKILL;")


def test_a_death_without_a_log_is_told_too(tmp_path: Path) -> None:
    assert describe_death("etcd", 1, tmp_path / "none").endswith("(it logged nothing)")


def test_what_uses_another_stops_before_it(processes: Processes, tmp_path: Path) -> None:
    order = tmp_path / "order"
    for name, stage in (("etcd", Stage.STORE), ("server", Stage.SERVER), ("controller", Stage.CONTROLLER)):
        script = f"trap 'echo {name} >> {order}; exit' TERM; echo up; while :; do sleep 0.05; done"
        processes.start(make_program(name, script, stage))
        await_log(processes, tmp_path / f"{name}.log")
    processes.stop()
    assert order.read_text().split() == ["controller", "server", "etcd"]


def test_what_ignores_the_request_to_stop_is_killed(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.processes.GRACE_SECONDS", 0.2)
    processes.start(make_program("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done"))
    await_log(processes, tmp_path / "deaf.log")
    processes.stop()
    with pytest.raises(ProcessDiedError, match="deaf was killed by SIGKILL"):
        processes.check()


def test_a_program_is_not_started_for_a_parent_that_is_gone(tmp_path: Path) -> None:
    done = subprocess.run(  # No shell is involved.
        [sys.executable, LAUNCHER, "1", "/bin/touch", tmp_path / "made"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the parent process 1 is gone" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_missed_deadline_says_what_was_awaited() -> None:
    waiter = Waiter(threading.Event(), lambda: None)
    with pytest.raises(NotInTimeError, match=r"the sun rises: not within 0 s \(it is night\)"):
        waiter.until("the sun rises", lambda: "it is night", seconds=0)


def test_waiting_ends_at_once_when_everything_is_to_stop() -> None:
    stopping = threading.Event()
    threading.Timer(0.05, stopping.set).start()
    started = time.monotonic()
    with pytest.raises(StoppedError, match="the sun rises"):
        Waiter(stopping, lambda: None).until("the sun rises", lambda: "it is night", seconds=60)
    assert time.monotonic() - started < 10
