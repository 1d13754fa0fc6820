"""Two operators at once, with and without a Lease, and what a pod's probes see of them."""

import itertools
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from cluster.conftest import Team
from support.builders import JOB, make_start
from support.rendering import target_name
from support.service import Service, serving
from support.waiting import until

Object = dict[str, Any]


def job_id(number: int) -> str:
    return JOB[:-3] + f"{number:03d}"


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def ask(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()
    except OSError:
        return 0, ""


def one_job_each(team: Team, starts: list[Object]) -> bool:
    jobs, copies = team.all("trainjobs"), team.all("trainingruntimes")
    names = sorted(str(target_name(start)) for start in starts)
    return (
        sorted(job["metadata"]["name"] for job in jobs) == names
        and sorted(copy["metadata"]["name"] for copy in copies) == names
        and all(len(copy["metadata"]["ownerReferences"]) == 1 for copy in copies)
    )


def test_two_operators_without_a_lease_start_each_job_once(team: Team, account: Path) -> None:
    starts = [make_start(f"both-{number}", job=job_id(number), gate="Open") for number in range(20)]
    with serving(account, "--namespace", team.namespace), serving(account, "--namespace", team.namespace):
        team.apply(*starts)
        for start in starts:
            team.until_phase(start["metadata"]["name"], "Succeeded", seconds=120)
    assert one_job_each(team, starts)


def test_a_second_operator_waits_for_the_lease_and_takes_over_at_once(team: Team, account: Path) -> None:
    lease = f"--lease={team.namespace}/operator"
    team.allow_leases()
    first_address, second_address = free_address(), free_address()
    with serving(account, "--namespace", team.namespace, lease, f"--health={first_address}") as first:
        until("the first is ready", lambda: ask(first_address, "/readyz") == (200, "ok"))
        second = Service(account, "--namespace", team.namespace, lease, f"--health={second_address}", waits=True)
        try:
            until("the second is alive", lambda: ask(second_address, "/healthz") == (200, "ok"))
            assert ask(second_address, "/readyz") == (200, "waiting for the Lease")
            team.apply(make_start())
            team.until_phase("llama-s1", "Gated")
            assert first.stop() == 0
            until("the second took over", lambda: ask(second_address, "/readyz") == (200, "ok"), seconds=10)
            team.set_gate("llama-s1", "Open")
            team.until_phase("llama-s1", "Succeeded")
        finally:
            assert second.stop() == 0


def test_a_leader_that_crashed_blocks_for_its_lifetime_at_most(team: Team, account: Path) -> None:
    lease = f"--lease={team.namespace}/operator"
    team.allow_leases()
    with serving(account, "--namespace", team.namespace, lease) as first:
        first.kill()
    with serving(account, "--namespace", team.namespace, lease):
        team.apply(make_start())
        team.until_phase("llama-s1", "Gated", seconds=40)


def test_a_leader_that_lost_its_lease_ends(team: Team, account: Path) -> None:
    team.allow_leases()
    service = Service(account, "--namespace", team.namespace, f"--lease={team.namespace}/operator")
    until("it leads", lambda: bool(team.all("leases")))
    usurped = '{"spec": {"holderIdentity": "another", "leaseDurationSeconds": 600, "renewTime": "2100-01-01T00:00:00.000000Z"}}'
    team.kubectl("patch", "lease", "operator", "--type=merge", f"--patch={usurped}")
    until("it ended", lambda: not service.runs, seconds=40)
    assert service.stop() == 1
    assert "the Lease was lost" in service.log.read_text()
    service.log.unlink()


def test_an_operator_that_waits_stops_on_sigterm(team: Team, account: Path) -> None:
    team.allow_leases()
    held = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "operator"},
        "spec": {
            "holderIdentity": "another",
            "leaseDurationSeconds": 600,
            "acquireTime": "2100-01-01T00:00:00.000000Z",
            "renewTime": "2100-01-01T00:00:00.000000Z",
        },
    }
    team.apply(held)
    service = Service(account, "--namespace", team.namespace, f"--lease={team.namespace}/operator", waits=True)
    assert service.stop() == 0
    service.log.unlink()


def test_credentials_that_are_not_accepted_any_more_show_as_unready(team: Team) -> None:
    address, name = free_address(), f"short-lived-{team.namespace}"
    team.kubectl("create", "serviceaccount", name)
    team.kubectl(
        "create",
        "clusterrolebinding",
        name,
        "--clusterrole=dispatch-system:dispatch-operator",
        f"--serviceaccount={team.namespace}:{name}",
    )
    service = Service(
        team.cluster.kubeconfig_for(team.namespace, name), "--namespace", team.namespace, f"--health={address}"
    )
    try:
        until("it is ready", lambda: ask(address, "/readyz") == (200, "ok"))
        team.kubectl("delete", "serviceaccount", name)
        numbers = itertools.count(1)

        def is_unready() -> bool:
            # The API server remembers a token for some seconds; only new work shows that it is not accepted any more.
            number = next(numbers)
            team.apply(make_start(f"start-{number}", submission=number))
            return ask(address, "/readyz")[0] != 200

        until("it is unready", is_unready)
    finally:
        service.kill()
        service.log.unlink()
