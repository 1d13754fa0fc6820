"""A control plane leaves nothing behind, however it ends: on the real thing."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import controlplane
from controlplane import Cluster, ControlPlane, ProcessDiedError, running
from controlplane.kubectl import KubectlError
from support.waiting import until

pytestmark = pytest.mark.cluster

SECONDS = 60
TOOLS = Path(controlplane.__file__).parents[1]
PROGRAMS = ["etcd", "jobset", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "trainer"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def parent(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps a cluster up: the command line."""
    command = [sys.executable, "-m", "controlplane", "up"]
    environment = {**os.environ, "PYTHONPATH": str(TOOLS), "TMPDIR": str(temporary)}
    with subprocess.Popen(  # No shell is involved.
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process
        process.kill()


async def test_two_start_at_once_and_do_not_meet(temporary: Path) -> None:
    planes = [ControlPlane(), ControlPlane()]
    first, second = await asyncio.gather(*(plane.__aenter__() for plane in planes))
    try:
        assert sorted(first.pids) == sorted(second.pids) == PROGRAMS
        assert first.server != second.server
        first.kubectl("create", "namespace", "only-here")
        assert "only-here" not in second.kubectl("get", "namespaces")
        assert all(alive(pid) for pid in pids([first, second]))
    finally:
        await asyncio.gather(*(plane.__aexit__(None, None, None) for plane in planes))
    assert not [pid for pid in pids([first, second]) if alive(pid)]
    assert folders(temporary) == []


@pytest.mark.usefixtures("temporary")
def test_a_death_is_reported_and_ends_the_rest() -> None:
    with running() as cluster:
        os.kill(cluster.pids["etcd"], signal.SIGKILL)
        until("everything ends", lambda: not any(alive(pid) for pid in cluster.pids.values()))
        with pytest.raises(ProcessDiedError, match=r"^etcd was killed by SIGKILL; the end of .*etcd\.log"):
            cluster.kubectl("get", "nodes")
        with pytest.raises(ProcessDiedError) as raised:
            cluster.check()
    assert raised.value.__notes__ == [f"The logs are in {cluster.logs}"]
    assert (cluster.logs / "kube-apiserver.log").exists()
    assert not (cluster.folder / "etcd").exists()


def test_a_failed_start_stops_everything_and_keeps_the_logs(temporary: Path, tmp_path: Path) -> None:
    refused = tmp_path / "refused.yaml"
    refused.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: NOT_A_NAME}}")
    with pytest.raises(KubectlError, match="NOT_A_NAME") as raised, running(extra_manifests=[refused]):
        pass
    (folder,) = folders(temporary)
    assert raised.value.__notes__ == [f"The logs are in {folder / 'logs'}"]
    assert {"etcd.log", "trainer.log", "audit.jsonl"} <= {path.name for path in (folder / "logs").iterdir()}
    assert processes_below(folder) == []


def test_nothing_outlives_a_parent_that_is_killed(parent: subprocess.Popen[str], temporary: Path) -> None:
    assert parent.stdout
    assert parent.stdout.readline().startswith(f"export KUBECONFIG={temporary}/dispatch-operator-")
    (folder,) = folders(temporary)
    assert len(processes_below(folder)) >= 5
    parent.kill()
    until("the programs end", lambda: not processes_below(folder))


def test_the_command_ends_in_order_on_sigterm(parent: subprocess.Popen[str], temporary: Path) -> None:
    assert parent.stdout
    parent.stdout.readline()
    (folder,) = folders(temporary)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(SECONDS) == 0
    assert processes_below(folder) == []
    assert folders(temporary) == []


def folders(temporary: Path) -> list[Path]:
    return [path for path in temporary.glob("dispatch-operator-*") if "ports" not in path.name]


def pids(clusters: Iterable[Cluster]) -> list[int]:
    return [pid for cluster in clusters for pid in cluster.pids.values()]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not collected by its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def processes_below(folder: Path) -> list[int]:
    """The processes that have the folder on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder) in command:
            found.append(int(path.parent.name))
    return found
