"""keepEnded on the real control plane: what belongs to an ended job goes, its record stays, and nothing comes again."""

import json
from pathlib import Path

import pytest

from controlplane.kubectl import KubectlError
from support.builders import NAME, make_backend, make_start
from support.service import serving
from support.waiting import until

from .conftest import TIMEOUTS, Object, Team
from .test_main_path import runtime_as_wanted

KINDS = ("trainjobs", "trainingruntimes", "jobsets", "pods")
AT_ONCE = {"spec": {"keepEnded": "1s"}}


def left(team: Team) -> dict[str, list[str]]:
    """Return the names of what there is of jobs."""
    return {kind: [obj["metadata"]["name"] for obj in team.all(kind)] for kind in KINDS}


@pytest.mark.parametrize(("outcome", "phase"), [({}, "Succeeded"), ({"outcome": "oom"}, "Failed")], ids=str)
def test_what_belongs_to_an_ended_job_goes_and_its_record_stays(
    team: Team, account: Path, outcome: dict[str, str], phase: str
) -> None:
    with serving(account, "--namespace", team.namespace, "--verbose"):
        extensions = runtime_as_wanted(team, outcome)
        team.until_probed()
        team.apply(make_start(gate="Open", extensions=extensions))
        recorded = team.until_phase("llama-s1", phase)
        assert all(left(team).values())
        team.patch("dispatchbackend", "default", AT_ONCE)
        team.until_probed()
        gone: dict[str, list[str]] = {kind: [] for kind in KINDS} | {"trainingruntimes": ["as-wanted"]}
        until("only the source runtime and the DispatchStart are left", lambda: left(team) == gone)
        until("the Event", lambda: "TrainJobDeleted" in json.dumps(team.all("events")))
        assert team.get("dispatchstart", "llama-s1") == recorded
    made = len(team.requests())
    with serving(account, "--namespace", team.namespace):
        # The second one shows that the operator has looked at both.
        team.apply(make_start("second", submission=2, command=[], extensions=extensions))
        team.until_phase("second", "Refused")
        assert {one for one in team.requests()[made:] if not one.startswith("get ")} == {"patch dispatchstarts/status"}
        team.patch("dispatchstart", "llama-s1", {"spec": {"gate": "Held"}})
        until("it is seen", lambda: team.get("dispatchstart", "llama-s1")["status"]["observedGeneration"] == 2)
    assert left(team) == gone
    assert team.get("dispatchstart", "llama-s1")["status"]["phase"] == phase


def test_an_end_that_somebody_wrote_deletes_no_running_job(team: Team, account: Path) -> None:
    with serving(account, "--namespace", team.namespace, "--verbose"):
        extensions = runtime_as_wanted(team, {"outcome": "run-forever"})
        team.patch("dispatchbackend", "default", AT_ONCE)
        team.until_probed()
        team.apply(make_start(gate="Open", extensions=extensions))
        team.until_phase("llama-s1", "Running")
        job = team.get("trainjob", NAME)
        told: Object = {"status": {"phase": "Succeeded", "outcome": {"state": "Succeeded", "message": "it is done"}}}
        team.kubectl(
            "patch", "dispatchstart", "llama-s1", "--subresource=status", "--type=merge", f"--patch={json.dumps(told)}"
        )
        running = team.until_phase("llama-s1", "Running")
        assert "outcome" not in running["status"]
        same = team.get("trainjob", NAME)
        assert same["metadata"]["uid"] == job["metadata"]["uid"]
        assert "deletionTimestamp" not in same["metadata"]


@pytest.mark.parametrize("kept", ["0s", "0", "-1h", "a week"])
def test_what_can_not_be_meant_is_refused_with_the_way_out(team: Team, kept: str) -> None:
    with pytest.raises(KubectlError, match="greater than zero, such as 168h; leave it out to keep ended jobs for ever"):
        team.apply(make_backend(timeouts=TIMEOUTS, keepEnded=kept))
