"""What a crowd costs: memory, a restart, idling and a Start's CPU with many settled Starts, over a fake API server."""

import time
from typing import NamedTuple

from bench.bare import Bare, bare_client
from bench.fake_cluster import FakeCluster, Object, fake_cluster
from bench.latency import latency
from bench.process import Process, operator
from bench.starts import NAMESPACE, make_start

SETTLING_SECONDS = 3.0
"""In which what is done once after a restart has ended."""
IDLE_SECONDS = 10.0
FIRST_OF_BURST, FIRST_OF_LATENCY = 900_000, 800_000
"""The numbers of these Starts are far from those of the crowd."""
WRITES = ("POST", "PATCH", "PUT", "DELETE")


class Idle(NamedTuple):
    """What an operator does while nothing happens."""

    cpu: float
    """Seconds of CPU a second."""
    requests: Object


class Crowd(NamedTuple):
    """What an operator costs among so many settled Starts."""

    residents: int
    ready: float
    """Seconds from its start until everything was listed."""
    ready_cpu: float
    memory: float
    """MiB."""
    peak: float
    writes: int
    idle: Idle
    cpu: float
    """Seconds a Start of a burst."""
    requests: float
    """A Start of a burst."""
    latency: float
    """Seconds, at the median, of one Start at a time."""


def measure_crowd(residents: int, *, burst: int, singles: int) -> Crowd:
    """Restart an operator among settled Starts, let it idle, and give it some more Starts."""
    with fake_cluster() as cluster:
        _settle_one(cluster)
        cluster.control(f"residents?count={residents}")
        cluster.requests()
        with operator(cluster.kubeconfig) as process:
            ready = time.monotonic() - process.begun
            time.sleep(SETTLING_SECONDS)
            ready_cpu, memory, peak = process.cpu, process.memory, process.peak
            writes = sum(count for request, count in cluster.requests().items() if request.split()[1] in WRITES)
            idle = _idle(cluster, process)
            single = latency(
                cluster.kubeconfig, process, NAMESPACE, range(FIRST_OF_LATENCY, FIRST_OF_LATENCY + singles)
            )
            cluster.requests()
            cpu = _burst_cpu(cluster, process, burst)
            requests = sum(cluster.requests().values()) / burst
        return Crowd(residents, ready, ready_cpu, memory, peak, writes, idle, cpu, requests, single)


def measure_bare(*, burst: int, singles: int) -> tuple[Bare, Bare]:
    """Let the bare client start as many at once, and as many one by one."""
    with fake_cluster() as cluster:
        for number in range(FIRST_OF_BURST, FIRST_OF_BURST + burst):
            cluster.create(make_start(number))
        many = bare_client(cluster.kubeconfig, NAMESPACE)
        for number in range(FIRST_OF_LATENCY, FIRST_OF_LATENCY + singles):
            cluster.create(make_start(number))
        return many, bare_client(cluster.kubeconfig, NAMESPACE, at_once=1)


def measure_others(count: int) -> float:
    """Return the MiB that so many Workloads, and as many JobSets and runtimes, of others cost."""
    with fake_cluster() as cluster:
        _settle_one(cluster)
        return _memory(cluster, count) - _memory(cluster, 0)


def _memory(cluster: FakeCluster, others: int) -> float:
    cluster.control(f"others?count={others}")
    with operator(cluster.kubeconfig) as process:
        time.sleep(SETTLING_SECONDS)
        return process.memory


def _settle_one(cluster: FakeCluster) -> None:
    """Let an operator prove its backend and settle the Start that a crowd is made of."""
    cluster.create(make_start(0))
    with operator(cluster.kubeconfig):
        cluster.wait_until_settled(1)


def _idle(cluster: FakeCluster, process: Process) -> Idle:
    before = process.cpu
    time.sleep(IDLE_SECONDS)
    return Idle((process.cpu - before) / IDLE_SECONDS, cluster.requests())


def _burst_cpu(cluster: FakeCluster, process: Process, count: int) -> float:
    """Give an operator some Starts at once, and return the seconds of CPU of each."""
    before, cpu = cluster.settled(), process.cpu
    for number in range(FIRST_OF_BURST, FIRST_OF_BURST + count):
        cluster.create(make_start(number))
    cluster.wait_until_settled(before + count)
    # The last events come after the last status.
    time.sleep(1.0)
    return (process.cpu - cpu) / count
