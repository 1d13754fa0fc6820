"""Every fault on every request of a Start, on the real control plane, through a proxy; all cases at once."""

import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cluster.conftest import Team
from cluster.kueue.conftest import QueuedTeam
from controlplane import Cluster
from support.builders import JOB, NAME, make_backend, make_start
from support.fault_proxy import FaultProxy, ProxiedRequest, ProxyFault
from support.operator import conditions
from support.rendering import target_name
from support.service import serving
from support.summary import Summary
from support.waiting import until

Object = dict[str, Any]

FAULTS = (
    ProxyFault("400", 400, "BadRequest", "no"),
    ProxyFault("401", 401, "Unauthorized", "Unauthorized"),
    ProxyFault("403 of the authorizer", 403, "Forbidden", 'User "u" cannot create resource "x" in API group "g"'),
    ProxyFault("403 of a quota", 403, "Forbidden", "exceeded quota: q"),
    ProxyFault("404", 404, "NotFound", "not found"),
    ProxyFault("409 conflict", 409, "Conflict", "the object has been modified"),
    ProxyFault("409 exists, carried out", 409, "AlreadyExists", "already exists", carried_out=True),
    ProxyFault("403 of a quota, carried out", 403, "Forbidden", "exceeded quota: q", carried_out=True),
    ProxyFault("410", 410, "Expired", "too old"),
    ProxyFault("413", 413, "RequestEntityTooLarge", "too large"),
    ProxyFault("422", 422, "Invalid", "invalid"),
    ProxyFault("429", 429, "TooManyRequests", "slow down", {"Retry-After": "1"}),
    ProxyFault("500 of a webhook", 500, "InternalError", 'failed calling webhook "w": connection refused'),
    ProxyFault("500 of etcd", 500, "InternalError", "etcdserver: request timed out"),
    ProxyFault("500 of etcd, carried out", 500, "InternalError", "etcdserver: request timed out", carried_out=True),
    ProxyFault("502", 502, "", "bad gateway"),
    ProxyFault("503", 503, "ServiceUnavailable", "unavailable"),
    ProxyFault("504, carried out", 504, "Timeout", "timed out", carried_out=True),
    ProxyFault("closed before"),
    ProxyFault("closed after", carried_out=True),
    ProxyFault("cut", carried_out=True, cut=True),
    ProxyFault("silent", silent=True),
    ProxyFault("silent after", carried_out=True, silent=True),
)
REQUESTS = (
    "create trainingruntimes",
    "create trainjobs",
    "patch trainingruntimes",
    "get trainjobs",
    "patch dispatchstarts/status",
    "patch trainjobs",
)
IN_KUEUE_MODE = ("get workloads", "patch dispatchstarts/status", "patch trainjobs")
"""What is another request there, or comes after one."""
DEFINITE = {400, 403, 404, 410, 413, 422}


class Case(NamedTuple):
    """One fault on the first request of a kind, of one DispatchStart."""

    number: int
    request: str
    fault: ProxyFault

    @property
    def start(self) -> Object:
        return make_start(f"case-{self.number}", job=f"{JOB[:-3]}{self.number:03d}", gate="Open")

    @property
    def is_refused(self) -> bool:
        """Tell whether docs/contract.md, API answers, makes this a definite failure of a create or of the owner patch."""
        if not (self.request.startswith("create ") or self.request == "patch trainingruntimes"):
            return False
        if self.fault.status not in DEFINITE or "authorizer" in self.fault.name or self.fault.carried_out:
            return False
        return not (self.request == "patch trainingruntimes" and self.fault.status == 404)


def cases(requests: Sequence[str]) -> list[Case]:
    """Return a case for every fault on every request."""
    return [Case(number, *pair) for number, pair in enumerate(itertools.product(requests, FAULTS))]


def ends(case: Case) -> set[str]:
    """Return the phases in which a case may end."""
    if case.is_refused and "quota" in case.fault.name and case.request.startswith("create "):
        # The probe may have filled that quota, until half a minute ago: the create is made again as long as it may.
        return {"Refused", "Succeeded"}
    return {"Refused" if case.is_refused else "Succeeded"}


class Script:
    """Gives each case its fault, once."""

    def __init__(self, cases: list[Case]) -> None:
        self._waiting = {(case.request, _name(case)): case.fault for case in cases}
        self._lock = threading.Lock()

    def __call__(self, asked: ProxiedRequest) -> ProxyFault | None:
        # Kueue puts the name of a TrainJob into that of its Workload.
        of_a_job = re.search(r"dj-[0-9a-z]+-s\d+", asked.name)
        with self._lock:
            return self._waiting.pop((str(asked), of_a_job[0] if of_a_job else asked.name), None)

    @property
    def left(self) -> int:
        return len(self._waiting)


def _name(case: Case) -> str:
    return str(case.start["metadata"]["name"] if "dispatchstarts" in case.request else target_name(case.start))


@pytest.fixture
def proxy(account: Path, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(account, tmp_path).running() as proxy:
        yield proxy


@pytest.mark.timeout(900)
def test_every_fault_on_every_request_ends_as_the_contract_says(
    team: Team, proxy: FaultProxy, summary: Summary
) -> None:
    team.apply(make_backend(timeouts={"call": "3s", "hold": "100ms"}))
    meets_every_fault(team, proxy, cases(REQUESTS), ("--namespace", team.namespace), summary)


@pytest.mark.timeout(900)
def test_every_fault_on_every_request_in_kueue_mode(
    kueue_cluster: Cluster, kueue_account: Path, tmp_path: Path, summary: Summary
) -> None:
    team = QueuedTeam(kueue_cluster, "faulty")
    team.patch("dispatchbackend", "default", {"spec": {"timeouts": {"call": "3s"}}})
    with FaultProxy(kueue_account, tmp_path).running() as proxy:
        # Only an operator of the whole cluster answers for its admission check.
        meets_every_fault(team, proxy, cases(IN_KUEUE_MODE), ("--all-namespaces",), summary)


def meets_every_fault(
    team: Team, proxy: FaultProxy, table: list[Case], arguments: Sequence[str], summary: Summary
) -> None:
    """Start what every case is about, all at once, and see how each ends."""
    script = Script(table)
    proxy.rule = script
    wanted = {f"case-{case.number}": ends(case) for case in table}

    def phases() -> dict[str, str]:
        return {start["metadata"]["name"]: start["status"].get("phase") for start in team.all("dispatchstarts")}

    def all_ended() -> bool:
        ended = phases()
        return all(ended.get(name) in may for name, may in wanted.items())

    with serving(proxy.kubeconfig, *arguments):
        team.apply(*(case.start for case in table))
        try:
            until("every case ended", all_ended, seconds=500)
        except TimeoutError:
            starts = {start["metadata"]["name"]: start for start in team.all("dispatchstarts")}
            told = [
                f"{case.request}, {case.fault.name}: {starts[name]['status'].get('phase')}, not {wanted[name]}: "
                f"{conditions(starts[name])}"
                for case in table
                if starts[name := f"case-{case.number}"]["status"].get("phase") not in wanted[name]
            ]
            pytest.fail("\n".join(told))
    assert script.left == 0
    jobs, copies = team.all("trainjobs"), team.all("trainingruntimes")
    ended = phases()
    names = sorted(str(target_name(case.start)) for case in table if ended[f"case-{case.number}"] == "Succeeded")
    assert sorted(job["metadata"]["name"] for job in jobs) == names
    assert sorted(copy["metadata"]["name"] for copy in copies) == names
    assert all(len(copy["metadata"]["ownerReferences"]) == 1 for copy in copies)
    summary.faults += len(table)
    summary.survived += len(table)


EXPIRED = {
    "type": "ERROR",
    "object": {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"},
}


@pytest.mark.parametrize(
    "fault",
    [
        ProxyFault("410", 410, "Expired", "too old resource version"),
        ProxyFault("404", 404, "NotFound", "the server could not find the requested resource"),
        ProxyFault("garbage", stream=b"garbage\n"),
        ProxyFault("410 in the stream", stream=json.dumps(EXPIRED).encode() + b"\n"),
        ProxyFault("an empty stream", stream=b"\n"),
        ProxyFault("401", 401, "Unauthorized", "Unauthorized"),
        ProxyFault("500", 500, "InternalError", "etcdserver: leader changed"),
        ProxyFault("429", 429, "TooManyRequests", "slow down", {"Retry-After": "1"}),
        ProxyFault("closed"),
    ],
    ids=lambda fault: fault.name,
)
def test_watches_that_fail_are_renewed(team: Team, proxy: FaultProxy, fault: ProxyFault) -> None:
    proxy.rule = rule = WatchesFail(fault)
    with serving(proxy.kubeconfig, "--namespace", team.namespace):
        team.apply(make_start(gate="Open"))
        team.until_phase("llama-s1", "Succeeded")
    assert rule.failed.total() >= 10


def test_what_is_deleted_while_a_resource_is_listed_again_is_noticed(team: Team, proxy: FaultProxy) -> None:
    listed = threading.Event()

    def rule(asked: ProxiedRequest) -> ProxyFault | None:
        match str(asked):
            case "watch trainjobs":
                return ProxyFault("410 in the stream", stream=json.dumps(EXPIRED).encode() + b"\n")
            case "list trainjobs":
                listed.set()
                return ProxyFault("503", 503, "ServiceUnavailable", "unavailable")
        return None

    with serving(proxy.kubeconfig, "--namespace", team.namespace):
        team.apply(make_start())
        team.until_phase("llama-s1", "Gated")
        proxy.rule = rule
        proxy.hang_up_watches()
        assert listed.wait(60)
        # No watch tells of it, and the next list only lacks it.
        team.kubectl("delete", "trainjob", NAME)
        proxy.rule = lambda _asked: None
        team.until_phase("llama-s1", "Lost")


RESOURCES = (
    "dispatchbackends",
    "clustertrainingruntimes",
    "trainingruntimes",
    "trainjobs",
    "jobsets",
    "dispatchstarts",
)


@pytest.mark.parametrize("resource", RESOURCES)
def test_one_watch_that_fails_alone_is_renewed_alone(team: Team, proxy: FaultProxy, resource: str) -> None:
    proxy.rule = rule = WatchesFail(ProxyFault("garbage", stream=b"garbage\n"), only=resource)
    with serving(proxy.kubeconfig, "--namespace", team.namespace) as service:
        team.apply(make_start(gate="Open"))
        team.until_phase("llama-s1", "Succeeded")
        assert service.runs
    assert rule.failed == {resource: 2}


class WatchesFail:
    """Lets the first watches of each resource, or of one alone, fail."""

    def __init__(self, fault: ProxyFault, *, only: str = "", times: int = 2) -> None:
        self.failed: Counter[str] = Counter()
        self._fault, self._only, self._times = fault, only, times

    def __call__(self, asked: ProxiedRequest) -> ProxyFault | None:
        if asked.verb != "watch" or self._only not in {"", asked.resource}:
            return None
        if self.failed[asked.resource] >= self._times:
            return None
        self.failed[asked.resource] += 1
        return self._fault
