"""The operator is killed between any two requests of a Start, an opening, a hold, a stop and a probe: the same ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import FOREVER, TIMEOUTS, Object, Team
from cluster.kueue.conftest import QueuedTeam
from controlplane import Cluster
from support.builders import JOB, make_backend, make_start
from support.fault_proxy import FaultProxy, ProxiedRequest
from support.kills import Operation, killed_at_every_request
from support.policies import INJECTED, configuration, mutate
from support.rendering import target_name
from support.summary import Summary
from support.waiting import until

pytestmark = pytest.mark.timeout(600)
WATCHED = {"watch", "list"}


@pytest.fixture
def proxy(account: Path, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(account, tmp_path).running() as proxy:
        yield proxy


def nth(number: int, **fields: Any) -> Object:
    """Return a DispatchStart of a job of its own."""
    return make_start(f"start-{number}", job=f"{JOB[:-3]}{number:03d}", **fields)


def concerns_nth(number: int, asked: ProxiedRequest) -> bool:
    """Tell whether a request is about that DispatchStart, its TrainJob, its copy or its Workload."""
    start = nth(number)
    is_of_it = asked.name == start["metadata"]["name"] or str(target_name(start)) in asked.name
    return asked.verb not in WATCHED and is_of_it


def has_one_job(team: Team, number: int) -> None:
    """See that a DispatchStart has one TrainJob, and one copy that it owns."""
    name = target_name(nth(number))
    (job,) = (one for one in team.all("trainjobs") if one["metadata"]["name"] == name)
    (copy,) = (one for one in team.all("trainingruntimes") if one["metadata"]["name"] == name)
    start = team.get("dispatchstart", f"start-{number}")
    assert [owner["uid"] for owner in copy["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
    assert start["status"]["reference"]["uid"] == job["metadata"]["uid"]


def test_in_a_start(team: Team, proxy: FaultProxy, account: Path, summary: Summary) -> None:
    def end(number: int) -> None:
        team.until_phase(f"start-{number}", "Running", "Succeeded")
        has_one_job(team, number)

    team.until_proven(account)
    start = Operation(lambda number: team.apply(nth(number, gate="Open")), end, concerns_nth)
    killed_at_every_request(proxy, ("--namespace", team.namespace), start, summary)


def test_in_an_opening(team: Team, proxy: FaultProxy, account: Path, summary: Summary) -> None:
    def prepare(number: int) -> None:
        team.apply(nth(number))
        team.until_phase(f"start-{number}", "Gated")

    def end(number: int) -> None:
        team.until_phase(f"start-{number}", "Running", "Succeeded")
        has_one_job(team, number)

    team.until_proven(account)
    opening = Operation(lambda number: team.set_gate(f"start-{number}", "Open"), end, concerns_nth, prepare)
    killed_at_every_request(proxy, ("--namespace", team.namespace), opening, summary)


@pytest.fixture
def queued(kueue_cluster: Cluster) -> QueuedTeam:
    return QueuedTeam(kueue_cluster, "killed")


@pytest.fixture
def kueue_proxy(kueue_account: Path, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(kueue_account, tmp_path).running() as proxy:
        yield proxy


def test_in_kueue_mode(queued: QueuedTeam, kueue_proxy: FaultProxy, summary: Summary) -> None:
    extensions = {"dispatch/Image": {"ref": "i"}, "kubeflow/RuntimeRef": {"name": FOREVER}}

    def concerns(number: int, asked: ProxiedRequest) -> bool:
        # How its check stands is written on every Workload, whatever becomes of it.
        return concerns_nth(number, asked) and str(asked) != "patch workloads/status"

    def start(number: int) -> None:
        queued.apply(nth(number, gate="Open", extensions=extensions))

    def runs(number: int) -> None:
        queued.until_phase(f"start-{number}", "Running")
        has_one_job(queued, number)
        assert queued.workload(str(target_name(nth(number))))["spec"]["active"] is True

    def hold(number: int) -> None:
        queued.set_gate(f"start-{number}", "Held")

    def is_held(number: int) -> None:
        queued.until_phase(f"start-{number}", "Held")
        name = str(target_name(nth(number)))
        until("it is inactive", lambda: queued.workload(name)["spec"]["active"] is False)

    def held(number: int) -> None:
        hold(number)
        is_held(number)

    def release(number: int) -> None:
        queued.set_gate(f"start-{number}", "Open")

    # Each goes on with what the one before has left.
    for operation in (
        Operation(start, runs, concerns, contested=True),
        Operation(hold, is_held, concerns, runs, contested=True),
        Operation(release, runs, concerns, held, contested=True),
    ):
        # Only an operator of the whole cluster answers for its admission check.
        killed_at_every_request(kueue_proxy, ("--all-namespaces",), operation, summary)


def test_in_a_stop(team: Team, proxy: FaultProxy, account: Path, summary: Summary) -> None:
    def prepare(_number: int) -> None:
        # The stop before has made the backend observe-only.
        team.until_probed()

    def concerns(number: int, asked: ProxiedRequest) -> bool:
        return concerns_nth(number, asked) or (asked.verb, asked.resource) == ("patch", "dispatchbackends")

    def end(number: int) -> None:
        start = team.until_phase(f"start-{number}", "Refused")
        assert "INJECTED" in str(start["status"]["conditions"])
        name = target_name(nth(number))
        for kind in ("trainjobs", "trainingruntimes"):
            until("nothing is left", lambda: name not in [one["metadata"]["name"] for one in team.all(kind)])  # noqa: B023

    team.until_proven(account)
    mutate(team.cluster, team.namespace, configuration(INJECTED), but_probes=True)
    stop = Operation(lambda number: team.apply(nth(number)), end, concerns, prepare)
    killed_at_every_request(proxy, ("--namespace", team.namespace), stop, summary)


def test_in_a_probe(team: Team, proxy: FaultProxy, summary: Summary) -> None:
    def begin(number: int) -> None:
        team.apply(make_backend(f"backend-{number}", timeouts=TIMEOUTS))

    def concerns(_number: int, asked: ProxiedRequest) -> bool:
        # Nothing else goes on meanwhile.
        return asked.verb not in WATCHED and asked.resource in {"dispatchbackends", "trainjobs", "trainingruntimes"}

    def prepare(number: int) -> None:
        ended(f"backend-{number - 1}" if number else "default")

    def end(number: int) -> None:
        ended(f"backend-{number}")

    def ended(backend: str) -> None:
        team.until_probed(backend)
        for kind in ("trainjobs", "trainingruntimes"):
            until("nothing is left of the probe", lambda: not team.all(kind))  # noqa: B023

    killed_at_every_request(proxy, ("--namespace", team.namespace), Operation(begin, end, concerns, prepare), summary)
