"""A status that is lost on the real API server: no running job is stopped, and none is started anew."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.builders import make_start
from support.install import kubectl_apply
from support.service import Service, serving
from support.waiting import throughout, until

from .conftest import Object, Team
from .test_main_path import runtime_as_wanted

PROBE = "dispatch.phpboyscout.uk/probe"
CRD = Path(__file__).parents[2] / "crds" / "dispatch.phpboyscout.uk_dispatchstarts.yaml"


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    "lost",
    [{"status": None}, {"status": {"conditions": None}}, {"status": {"reference": {"uid": "another"}}}],
    ids=str,
)
def test_a_status_that_somebody_nulls_stops_no_running_job(team: Team, lost: dict[str, Any]) -> None:
    team.apply(make_start(gate="Open", extensions=runtime_as_wanted(team, {"outcome": "run-forever"})))
    before = team.until_phase("llama-s1", "Running")["status"]
    (job,) = jobs_of(team)
    team.kubectl(
        "patch", "dispatchstart", "llama-s1", "--subresource=status", "--type=merge", f"--patch={json.dumps(lost)}"
    )
    until(
        "it is recorded anew", lambda: _recorded(team) == {key: before[key] for key in ("reference", "copy", "source")}
    )
    assert team.until_phase("llama-s1", "Running")
    (same,) = jobs_of(team)
    assert (same["metadata"]["uid"], same["spec"]["suspend"]) == (job["metadata"]["uid"], False)


@pytest.mark.usefixtures("operator")
def test_a_gated_job_whose_status_is_nulled_is_neither_opened_nor_stopped(team: Team) -> None:
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    (job,) = jobs_of(team)
    lost = ("patch", "dispatchstart", "llama-s1", "--subresource=status", "--type=merge", '--patch={"status":null}')
    team.kubectl(*lost)
    until("it is told", lambda: "ReferenceLost" in json.dumps(team.get("dispatchstart", "llama-s1")["status"]))
    team.set_gate("llama-s1", "Open")
    until("it is seen", lambda: team.get("dispatchstart", "llama-s1")["status"]["observedGeneration"] == 2)
    (same,) = jobs_of(team)
    assert (same["metadata"]["uid"], same["spec"]["suspend"]) == (job["metadata"]["uid"], True)
    team.kubectl("delete", "trainjob", same["metadata"]["name"])
    team.until_phase("llama-s1", "Lost")
    assert jobs_of(team) == []


def test_an_older_crd_that_prunes_the_reference_stops_no_running_job_and_begins_nothing(
    team: Team, operator: Service
) -> None:
    extensions = runtime_as_wanted(team, {"outcome": "run-forever"})
    team.apply(make_start(gate="Open", extensions=extensions))
    before = team.until_phase("llama-s1", "Running")["status"]
    (job,) = jobs_of(team)
    with older_crd(team, lambda status: status.pop("reference")):
        until("it is pruned", lambda: "reference" not in team.get("dispatchstart", "llama-s1")["status"])
        # Any change has the operator look at it, and nothing is begun for another.
        team.patch("dispatchstart", "llama-s1", {"metadata": {"annotations": {"looked": "at"}}})
        until("it is told", lambda: "does not keep status.reference: upgrade the CRDs" in operator.log.read_text())
        team.apply(make_start("second", submission=2, extensions=extensions))
        throughout("the second waits", lambda: len(jobs_of(team)) == 1, seconds=3)
    until("it is recorded anew", lambda: _recorded(team)["reference"] == before["reference"], seconds=90)
    team.until_phase("second", "Gated", seconds=90)
    same = team.get("trainjob", job["metadata"]["name"])
    assert (same["metadata"]["uid"], same["spec"]["suspend"]) == (job["metadata"]["uid"], False)


def test_an_older_crd_that_refuses_a_phase_stops_no_job_and_its_leader_gives_the_lease_back(
    team: Team, account: Path
) -> None:
    team.allow_leases()
    lease = f"{team.namespace}/operator"
    arguments = ("--namespace", team.namespace, "--lease", lease)

    def holder() -> str | None:
        holder: str | None = json.loads(team.kubectl("get", "lease", "operator", "--output=json"))["spec"].get(
            "holderIdentity"
        )
        return holder

    with serving(account, *arguments) as operator:
        team.until_probed()
        assert holder()
        with older_crd(team, lambda status: status["phase"]["enum"].remove("Gated")):
            team.apply(make_start())
            until("it is told", lambda: "refuses status.phase: upgrade the CRDs" in operator.log.read_text())
            until("the Lease is given back", lambda: not holder())
            (job,) = jobs_of(team)
            team.apply(make_start("second", submission=2))
            throughout("the second waits", lambda: len(jobs_of(team)) == 1, seconds=3)
        until("it ends, to begin anew", lambda: not operator.runs, seconds=90)
        assert "it begins anew" in operator.log.read_text()
    with serving(account, *arguments):
        for name in ("llama-s1", "second"):
            team.until_phase(name, "Gated")
    assert {one["metadata"]["uid"] for one in jobs_of(team)} >= {job["metadata"]["uid"]}
    assert len(jobs_of(team)) == 2


@contextmanager
def older_crd(team: Team, make_older: Callable[[Object], object]) -> Iterator[None]:
    """Serve a CRD whose status knows less."""
    crd = yaml.safe_load(CRD.read_text())
    older = deepcopy(crd)
    make_older(older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"])
    kubectl_apply(team.cluster, [older], "--force-conflicts")
    try:
        yield
    finally:
        kubectl_apply(team.cluster, [crd], "--force-conflicts")


def jobs_of(team: Team) -> list[Object]:
    """Return the TrainJobs of DispatchStarts: a backend that was changed is probed, too."""
    return [job for job in team.all("trainjobs") if PROBE not in job["metadata"]["labels"]]


def _recorded(team: Team) -> dict[str, Any]:
    status = team.get("dispatchstart", "llama-s1")["status"]
    return {key: status.get(key) for key in ("reference", "copy", "source")}
