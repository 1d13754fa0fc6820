"""Namespaces that come and go while an operator serves others, on the real API server."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import pytest

from controlplane import Cluster
from support.builders import make_start
from support.install import install_chart
from support.ports import free_port
from support.service import serving
from support.waiting import until

from .conftest import Team

SYSTEM, HERE, THERE = "coming-and-going", "always-here", "not-always-there"
ABSENT = f"namespace {THERE} does not exist"


class Watched:
    """An operator for both namespaces, and what its probe answers."""

    def __init__(self, port: int) -> None:
        self._port = port

    def says(self, *lines: str) -> bool:
        """Tell whether it is ready, in these words."""
        with closing(HTTPConnection("127.0.0.1", self._port)) as connection:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.read().decode().splitlines() == [*lines] and answer.status == HTTPStatus.OK


@contextmanager
def operating(kubeconfig: Path) -> Iterator[Watched]:
    port = free_port()
    arguments = (f"--namespace={HERE}", f"--namespace={THERE}", f"--lease={SYSTEM}/dispatch-operator")
    with serving(kubeconfig, *arguments, f"--health=127.0.0.1:{port}", "--log-format=json") as service:
        yield Watched(port)
        lines = [json.loads(line) for line in service.log.read_text().splitlines()]
        assert [line for line in lines if line["level"] == "error"] == []
        told = [line for line in lines if "the namespace does not exist" in line["message"]]
        assert {line["level"] for line in told} == {"info"}


def runs(team: Team, submission: int) -> None:
    """Let a job run to its end."""
    team.apply(make_start(f"s{submission}", submission=submission, gate="Open"))
    team.until_phase(f"s{submission}", "Succeeded")


def comes(cluster: Cluster) -> Team:
    """Let the other namespace come, and bind the operator's rights in it as docs/guide.md says."""
    team = Team(cluster, THERE)
    account = f"--serviceaccount={SYSTEM}:dispatch-operator"
    team.kubectl(
        "create", "rolebinding", "dispatch-operator", f"--clusterrole={SYSTEM}:dispatch-operator-namespaced", account
    )
    return team


@pytest.mark.usefixtures("account")
def test_a_namespace_comes_goes_and_comes_again_and_harms_no_other(cluster: Cluster) -> None:
    kubeconfig = install_chart(cluster, SYSTEM, [HERE, THERE], absent=[THERE])
    here = Team(cluster, HERE)
    with operating(kubeconfig) as operator:
        runs(here, 1)
        until("it is ready, and says what is not there", lambda: operator.says("ok", ABSENT))
        there = comes(cluster)
        runs(there, 1)
        until("it is ready", lambda: operator.says("ok"))
        there.apply(make_start("running", submission=2))
        there.until_phase("running", "Gated")
        cluster.kubectl("delete", "namespace", THERE, "--wait=false")
        runs(here, 2)
        cluster.kubectl("wait", f"namespace/{THERE}", "--for=delete", "--timeout=90s")
        runs(here, 3)
    # A restart finds it gone: the others are served as before.
    with operating(kubeconfig) as operator:
        until("it is ready, and says what is not there", lambda: operator.says("ok", ABSENT))
        runs(here, 4)
        runs(comes(cluster), 1)
        until("it is ready", lambda: operator.says("ok"))
        runs(here, 5)
