"""Cancelling on the real control plane: what runs is stopped, nothing is left but the record, and it is for good."""

from collections.abc import Callable

import pytest

from controlplane.kubectl import KubectlError
from support.builders import JOB, make_start
from support.invariants import broken_invariants
from support.records import condition
from support.waiting import until

from .conftest import Object, Team
from .test_main_path import runtime_as_wanted

pytestmark = pytest.mark.usefixtures("operator")


def until_cancelled(team: Team, name: str = "llama-s1") -> Object:
    """Wait until a DispatchStart has ended as cancelled, with nothing left of it, and return it."""
    start = team.until_phase(name, "Cancelled")
    assert broken_invariants(start["status"]) == []
    assert start["status"]["outcome"]["state"] == "Cancelled"
    assert "condition met" in team.kubectl("wait", f"dispatchstart/{name}", "--for=condition=Finished", "--timeout=5s")
    assert left(team, "trainjobs") == []
    until("the copy and the pods are collected", lambda: not left(team, "trainingruntimes") + left(team, "pods"))
    return start


def left(team: Team, resource: str) -> list[str]:
    """Return the names of what a Start has made; a probe of the backend may be under way beside it."""
    names = (str(obj["metadata"]["name"]) for obj in team.all(resource))
    return [name for name in names if name.startswith(f"dj-{JOB.lower()}-")]


def gated(team: Team) -> None:
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")


def running(team: Team) -> None:
    team.apply(make_start(gate="Open", extensions=runtime_as_wanted(team, {"outcome": "run-forever"})))
    team.until_phase("llama-s1", "Running")


def held(team: Team) -> None:
    running(team)
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")


@pytest.mark.parametrize("come_to", [gated, running, held])
def test_a_started_job_is_cancelled(team: Team, come_to: Callable[[Team], None]) -> None:
    come_to(team)
    uid = team.get("dispatchstart", "llama-s1")["status"]["reference"]["uid"]
    team.set_gate("llama-s1", "Cancelled")
    start = until_cancelled(team)
    assert condition(start, "Started")["status"] == "True"
    assert start["status"]["reference"]["uid"] == uid


def test_what_is_cancelled_before_it_starts_creates_nothing_and_stays_so(team: Team) -> None:
    # There is no such backend, so that it waits.
    waits = make_start("waits", submission=2)
    waits["spec"]["backend"] = "missing"
    team.apply(make_start(gate="Cancelled"), waits)
    team.until_phase("waits", "Pending")
    team.set_gate("waits", "Cancelled")
    for name in ("llama-s1", "waits"):
        start = until_cancelled(team, name)
        assert condition(start, "Started")["status"] == "False"
        for gate in ("Open", "Held", "Closed", None):
            with pytest.raises(KubectlError, match="a Cancelled gate can't be changed any more") as refused:
                team.patch("dispatchstart", name, {"spec": {"gate": gate}})
            assert "go back to Closed" not in refused.value.stderr
        assert "reference" not in start["status"]
    told = team.kubectl("describe", "dispatchstart", "llama-s1")
    assert "nothing of this Start is left in the cluster" in told


def test_a_status_that_is_nulled_starts_nothing_that_was_cancelled(team: Team) -> None:
    gated(team)
    team.set_gate("llama-s1", "Cancelled")
    until_cancelled(team)
    team.kubectl(
        "patch", "dispatchstart", "llama-s1", "--subresource=status", "--type=merge", '--patch={"status": null}'
    )
    assert "reference" not in until_cancelled(team)["status"]


def test_an_end_that_was_recorded_stays(team: Team) -> None:
    team.apply(make_start(gate="Open"))
    team.until_phase("llama-s1", "Succeeded")
    team.set_gate("llama-s1", "Cancelled")

    def is_seen() -> bool:
        start = team.get("dispatchstart", "llama-s1")
        return bool(start["status"]["observedGeneration"] == start["metadata"]["generation"])

    until("the change was seen", is_seen)
    start = team.get("dispatchstart", "llama-s1")
    assert (start["status"]["phase"], start["status"]["outcome"]["state"]) == ("Succeeded", "Succeeded")
    assert left(team, "trainjobs")
