"""The main job on the real control plane: kubectl apply, Gated, Open, Succeeded; and what a person sees of it."""

import json
from typing import Any

import pytest

from controlplane.kubectl import KubectlError
from support.builders import JOB, NAME, make_backend, make_runtime, make_start
from support.invariants import broken_invariants
from support.service import Service
from support.waiting import until

from .conftest import Team

Object = dict[str, Any]
pytestmark = pytest.mark.usefixtures("operator")


def test_a_start_is_gated_opened_and_succeeds(team: Team) -> None:
    team.apply(make_start(nodes=2))
    gated = team.until_phase("llama-s1", "Gated")
    assert team.all("pods") == []
    job, copy = team.get("trainjob", NAME), team.get("trainingruntime", NAME)
    assert gated["status"]["reference"] == {"name": f"{team.namespace}/{NAME}", "uid": job["metadata"]["uid"]}
    assert [owner["uid"] for owner in copy["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
    assert "condition met" in team.kubectl("wait", "dispatchstart/llama-s1", "--for=condition=Started", "--timeout=5s")
    team.set_gate("llama-s1", "Open")
    team.until_phase("llama-s1", "Running", "Succeeded")
    done = team.until_phase("llama-s1", "Succeeded")
    assert done["status"]["outcome"]["state"] == "Succeeded"
    assert broken_invariants(done["status"]) == []
    assert len(team.all("pods")) == 2
    assert "condition met" in team.kubectl(
        "wait", "dispatchstart/llama-s1", "--for=condition=Succeeded", "--timeout=5s"
    )


def test_a_start_applied_open_runs_to_its_end(team: Team) -> None:
    team.apply(make_start(gate="Open"))
    team.until_phase("llama-s1", "Succeeded")


def test_a_person_reads_the_story(team: Team) -> None:
    team.apply(make_start(gate="Open"), make_start("bad", submission=2, nodes=0, command=[]))
    team.until_phase("llama-s1", "Succeeded")
    team.until_phase("bad", "Refused")
    header, *rows = team.kubectl("get", "dstart").splitlines()
    assert header.split() == ["NAME", "PHASE", "JOB", "SUBMISSION", "TRAINJOB", "REASON", "AGE"]
    bad, good = sorted(row.split() for row in rows)
    assert bad[:2] == ["bad", "Refused"]
    assert "ErrInvalid" in bad
    assert good[1:5] == ["Succeeded", "01J9ZQ4V8Y3N5T7R2C6W1X0ABK", "1", f"{team.namespace}/{NAME}"]
    found = ("get", "dstart", "--output=name", "--field-selector")
    assert team.kubectl(*found, "status.phase=Refused").split() == ["dispatchstart.dispatch.phpboyscout.uk/bad"]
    by_job = f"spec.request.job={JOB},spec.request.submission=1"
    assert team.kubectl(*found, by_job).split() == ["dispatchstart.dispatch.phpboyscout.uk/llama-s1"]
    until("the Events", lambda: "Succeeded" in team.kubectl("describe", "dstart", "llama-s1").split("Events:")[1])
    told = team.kubectl("describe", "dstart", "llama-s1").split("Events:")[1]
    assert [word for word in ("Gated", "Queued", "Succeeded") if word in told] == ["Gated", "Queued", "Succeeded"]
    refused = until("the refusal's Event", lambda: _event(team, "bad"))
    assert "nodes" in refused
    assert "command" in refused
    # What is wrong is told once, and everything else says where.
    told = team.kubectl("describe", "dstart", "bad")
    assert told.count("must be 1 to 100,000, not 0") == 1
    assert told.count("see the condition RequestValid") >= 4


def _event(team: Team, name: str) -> str:
    return (
        team.kubectl("get", "events", f"--field-selector=involvedObject.name={name},type=Warning", "--output=json")
        if (team.all("events") and any(event["involvedObject"]["name"] == name for event in team.all("events")))
        else ""
    )


def test_held_stops_the_job_and_open_releases_it(team: Team) -> None:
    team.apply(make_start(gate="Open", extensions=runtime_as_wanted(team, {"outcome": "run-forever"})))
    team.until_phase("llama-s1", "Running")
    team.set_gate("llama-s1", "Held")
    team.until_phase("llama-s1", "Held")
    until("no pod runs", lambda: not team.all("pods"))
    team.set_gate("llama-s1", "Open")
    team.until_phase("llama-s1", "Running")
    # What happens a second time is counted in the Event of the first.
    team.set_gate("llama-s1", "Held")
    until(
        "the Event of the hold is counted", lambda: 2 in [one["count"] for one in team.all("events") if _is_hold(one)]
    )


def _is_hold(event: dict[str, Any]) -> bool:
    return event["involvedObject"]["name"] == "llama-s1" and event["reason"] == "Held"


@pytest.mark.parametrize(
    ("annotations", "want_cause", "want_code"),
    [
        ({"outcome": "fail", "exit-code": "3"}, "NonZeroExitCode", 3),
        ({"outcome": "oom"}, "OOMKilled", 137),
        ({"outcome": "evicted"}, "Evicted", None),
        (
            {
                "outcome": "fail",
                "exit-code": "125",
                "message": "dispatch-prologue: the working directory can not be entered",
            },
            "WorkDirMissing",
            125,
        ),
    ],
)
def test_a_failed_job_names_its_cause(
    team: Team, annotations: dict[str, str], want_cause: str, want_code: int | None
) -> None:
    team.apply(make_start(gate="Open", extensions=runtime_as_wanted(team, annotations, restarts=0)))
    failed = team.until_phase("llama-s1", "Failed")
    outcome = failed["status"]["outcome"]
    assert (outcome["state"], outcome["cause"], outcome.get("exitCode")) == ("Failed", want_cause, want_code)


def test_an_image_that_can_not_be_pulled_is_told_when_the_time_limit_ends_the_job(team: Team) -> None:
    start = make_start(gate="Open", timeLimit="3s", extensions=runtime_as_wanted(team, {"outcome": "image-pull"}))
    team.apply(start)
    outcome = team.until_phase("llama-s1", "Failed")["status"]["outcome"]
    assert outcome["cause"] == "DeadlineExceeded"


def test_restarts_are_counted(team: Team) -> None:
    team.apply(
        make_start(gate="Open", extensions=runtime_as_wanted(team, {"outcome": "fail", "exit-code": "1"}, restarts=2))
    )
    assert team.until_phase("llama-s1", "Failed")["status"]["restarts"] == 2


def runtime_as_wanted(team: Team, annotations: dict[str, str], restarts: int = 0) -> Object:
    """Create a TrainingRuntime whose pods end as wanted, allow it, and return the extensions that name it."""
    runtime = make_runtime(
        "as-wanted", pod_annotations={f"test.kwok.x-k8s.io/{key}": v for key, v in annotations.items()}
    )
    runtime["kind"] = "TrainingRuntime"
    runtime["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = restarts
    reference = {"kind": "TrainingRuntime", "name": "as-wanted"}
    team.apply(runtime, make_backend(runtimes=[reference]))
    return {"dispatch/Image": {"ref": "registry.example/llama:1"}, "kubeflow/RuntimeRef": reference}


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"request": {"attempt": 7}}, "can.t be changed"),
        ({"backend": "another"}, "can.t be changed"),
    ],
)
def test_what_was_submitted_can_not_be_changed(team: Team, change: Object, want: str) -> None:
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    with pytest.raises(KubectlError, match=want):
        team.patch("dispatchstart", "llama-s1", {"spec": change})


@pytest.mark.parametrize(
    ("timeout", "says", "not_said"),
    [
        ("100000h", "must be at most 1h", "greater than zero"),
        (f"{'9' * 60}h", "must be at most 1h", "greater than zero"),
        ("59m61s", "must be at most 1h", "greater than zero"),
        ("0s", "must be a duration greater than zero", "at most"),
        ("soon", "must be a duration greater than zero", "at most"),
    ],
)
def test_a_timeout_is_bounded_and_told_in_our_own_words(team: Team, timeout: str, says: str, not_said: str) -> None:
    with pytest.raises(KubectlError) as refused:
        team.patch("dispatchbackend", "default", {"spec": {"timeouts": {"hold": timeout}}})
    assert says in str(refused.value)
    assert not_said not in str(refused.value)
    team.patch("dispatchbackend", "default", {"spec": {"timeouts": {"hold": "1h"}}})


def test_an_opened_gate_does_not_go_back_to_closed(team: Team) -> None:
    team.apply(make_start(gate="Open"))
    team.until_phase("llama-s1", "Succeeded")
    with pytest.raises(KubectlError, match="Held"):
        team.set_gate("llama-s1", "Closed")


def test_the_operator_stops_on_sigterm(operator: Service) -> None:
    assert operator.stop() == 0


def test_kubectl_explain_describes_every_field(team: Team) -> None:
    for kind in ("dispatchstart", "dispatchbackend"):
        told = team.kubectl("explain", kind, "--recursive")
        assert "spec" in told
    crd = json.loads(team.cluster.kubectl("get", "crd", "dispatchstarts.dispatch.phpboyscout.uk", "--output=json"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert list(_undescribed(schema["properties"]["spec"], "spec")) == []
    assert list(_undescribed(schema["properties"]["status"], "status")) == []


def _undescribed(schema: Object, path: str) -> Any:
    if not schema.get("description"):
        yield path
    for name, part in schema.get("properties", {}).items():
        yield from _undescribed(part, f"{path}.{name}")
    items = schema.get("items")
    for name, part in (items or {}).get("properties", {}).items():
        yield from _undescribed(part, f"{path}[].{name}")
