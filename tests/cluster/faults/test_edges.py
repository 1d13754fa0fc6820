"""The edges of a cluster: namespaces that go, Events that may not be posted, proxies, watches that fall silent."""

from pathlib import Path

import pytest

from cluster.conftest import Team
from support.builders import make_start
from support.fault_proxy import FaultProxy, ProxiedRequest, ProxyFault
from support.service import serving
from support.waiting import throughout, until


def is_gone(team: Team) -> bool:
    return f"{team.namespace} " not in team.cluster.kubectl("get", "namespaces", "--no-headers")


@pytest.mark.parametrize("operator_is", ["up", "down"])
def test_a_namespace_with_starts_in_it_is_deleted(team: Team, account: Path, operator_is: str) -> None:
    with serving(account, "--namespace", team.namespace):
        team.apply(
            make_start(), make_start("open", submission=2, gate="Open"), make_start("bad", submission=3, nodes=0)
        )
        team.until_phase("llama-s1", "Gated")
        team.until_phase("open", "Succeeded")
        team.until_phase("bad", "Refused")
        if operator_is == "up":
            team.cluster.kubectl("delete", "namespace", team.namespace, "--wait=false")
            until("the namespace is gone", lambda: is_gone(team), seconds=90)
    if operator_is == "down":
        team.cluster.kubectl("delete", "namespace", team.namespace, "--wait=false")
        until("the namespace is gone", lambda: is_gone(team), seconds=90)


def test_a_namespace_that_can_not_go_yet_is_not_hammered(team: Team, account: Path) -> None:
    kept = [("dispatchbackend", "default"), ("dispatchstart", "llama-s1")]
    with serving(account, "--namespace", team.namespace):
        team.apply(make_start())
        team.until_phase("llama-s1", "Gated")
        for kind, name in kept:
            team.patch(kind, name, {"metadata": {"finalizers": ["example.com/wait"]}})
        team.cluster.kubectl("delete", "namespace", team.namespace, "--wait=false")
        until("all of it is going", lambda: all("deletionTimestamp" in team.get(*one)["metadata"] for one in kept))
        made = len(team.requests())
        # An operator that tried again as fast as it is refused would make hundreds.
        throughout("it is left alone", lambda: len(team.requests()) - made <= 12, seconds=10)
        for kind, name in kept:
            team.patch(kind, name, {"metadata": {"finalizers": None}})
        until("the namespace is gone", lambda: is_gone(team), seconds=90)


def test_events_that_are_refused_change_nothing_else(team: Team, account: Path, tmp_path: Path) -> None:
    with FaultProxy(account, tmp_path).running() as proxy:
        forbidden = ProxyFault("403", 403, "Forbidden", 'User "u" cannot create resource "events" in API group ""')
        proxy.rule = lambda asked: forbidden if str(asked) == "create events" else None
        with serving(proxy.kubeconfig, "--namespace", team.namespace):
            team.apply(make_start(gate="Open"))
            team.until_phase("llama-s1", "Succeeded")
        assert any(str(asked) == "create events" for asked in proxy.asked)


def test_no_proxy_is_honoured_for_the_clusters_own_address(team: Team, account: Path) -> None:
    # Port 1 is never listened on here: whoever asks this proxy fails.
    dead = {"HTTP_PROXY": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1,localhost"}
    environment = {**dead, **{key.lower(): value for key, value in dead.items()}}
    with serving(account, "--namespace", team.namespace, environment=environment):
        team.apply(make_start(gate="Open"))
        team.until_phase("llama-s1", "Succeeded")


def test_a_watch_that_falls_silent_is_renewed(team: Team, account: Path, tmp_path: Path) -> None:
    silenced: list[str] = []

    def rule(asked: ProxiedRequest) -> ProxyFault | None:
        if asked.verb != "watch" or asked.resource != "dispatchstarts" or silenced:
            return None
        silenced.append(str(asked))
        return ProxyFault("silent", silent=True)

    with FaultProxy(account, tmp_path).running() as proxy:
        proxy.rule = rule
        with serving(proxy.kubeconfig, "--namespace", team.namespace):
            team.apply(make_start(gate="Open"))
            # A stream that sent nothing for 75 s is given up: even a quiet one has a bookmark each minute.
            team.until_phase("llama-s1", "Succeeded", seconds=120)
        assert silenced
