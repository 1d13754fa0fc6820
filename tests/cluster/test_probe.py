"""The preflight probe on the real control plane: what proves a backend, what does not, and that nothing is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.backends import unproven
from support.builders import make_backend, make_runtime, make_start
from support.kstatus import Kstatus
from support.operator import conditions, message
from support.policies import configuration, mutate
from support.service import Service, serving
from support.waiting import until

from .conftest import TIMEOUTS, Team

Object = dict[str, Any]
SLOW = {"hold": "20s"}
"""A probe that goes on until a test has done what it wants to do in its middle."""
PROBE = "dispatch.phpboyscout.uk/probe"
KINDS = ("trainjobs", "trainingruntimes", "jobsets", "pods", "configmaps")


def left(team: Team) -> list[str]:
    """Return what is there of probes: whatever bears a probe's name."""
    names = [(kind, one["metadata"]["name"]) for kind in KINDS for one in team.all(kind)]
    return [f"{kind}/{name}" for kind, name in names if name.startswith("dj-")]


def nothing_is_left(team: Team) -> None:
    until("nothing is left", lambda: not left(team))


def probes(team: Team) -> list[Object]:
    """Return the TrainJobs of probes."""
    return [one for one in team.all("trainjobs") if PROBE in one["metadata"].get("labels", {})]


def of_its_own(team: Team, **timeouts: str) -> Object:
    """Return a runtime of the team's own, and let its backend be probed on it."""
    runtime = make_runtime("mine")
    runtime["kind"] = "TrainingRuntime"
    reference = {"kind": "TrainingRuntime", "name": "mine"}
    team.apply(runtime, make_backend(runtimes=[reference], probeRuntime=reference, timeouts=timeouts or TIMEOUTS))
    return runtime


def start_on(name: str) -> Object:
    reference = {"kind": "TrainingRuntime", "name": name}
    return make_start(extensions={"dispatch/Image": {"ref": "i"}, "kubeflow/RuntimeRef": reference})


@pytest.mark.usefixtures("operator")
def test_a_backend_is_proven_and_nothing_is_left(team: Team, kstatus: Kstatus) -> None:
    backend = team.until_probed()
    status = backend["status"]
    assert [gate["name"] for gate in status["gates"]] == ["fields-kept", "start-gate", "collected"]
    assert kstatus.of(backend) == "Current"
    runtime = json.loads(team.kubectl("get", "clustertrainingruntime", "torch-dispatch", "--output=json"))["metadata"]
    assert status["proof"]["runtime"] == {
        "kind": "ClusterTrainingRuntime",
        **{key: runtime[key] for key in ("name", "uid", "generation")},
    }
    served = json.loads(team.kubectl("get", "--raw", "/openapi/v3"))["paths"]
    assert status["proof"]["served"] == [
        {"api": api, "hash": served[f"apis/{api}"]["serverRelativeURL"].split("hash=")[1]} if known else {"api": api}
        for api, known in (
            ("jobset.x-k8s.io/v1alpha2", True),
            ("kueue.x-k8s.io/v1beta2", False),
            ("trainer.kubeflow.org/v1alpha1", True),
        )
    ]
    nothing_is_left(team)
    header, row = (line.split() for line in team.kubectl("get", "dbackend").splitlines())
    assert header == ["NAME", "STATE", "QUEUE", "READY", "REASON", "AGE"]
    assert row[:4] == ["default", "Open", "True", "Proven"]
    until("the Event", lambda: "Proven" in team.kubectl("describe", "dbackend", "default").split("Events:")[1])
    assert "condition met" in team.kubectl("wait", "dbackend/default", "--for=condition=Ready", "--timeout=5s")


def test_a_start_waits_for_the_first_verdict(team: Team, account: Path) -> None:
    team.apply(make_backend(timeouts=SLOW), make_start())
    with serving(account, "--namespace", team.namespace):
        start = team.until_phase("llama-s1", "Pending")
        assert conditions(start)["Started"] == ("Unknown", "WaitingForProbe")
        team.apply(make_backend(timeouts=TIMEOUTS))
        team.until_phase("llama-s1", "Gated")


def test_a_restart_makes_no_probe(team: Team, account: Path) -> None:
    with serving(account, "--namespace", team.namespace):
        before = team.until_probed()["status"]
    made = len(team.requests())
    with serving(account, "--namespace", team.namespace):
        team.apply(make_start())
        team.until_phase("llama-s1", "Gated")
    assert team.get("dbackend", "default")["status"] == before
    assert not [request for request in team.requests()[made:] if "dispatchbackends" in request]


@pytest.mark.usefixtures("operator")
def test_another_runtime_is_probed_again_while_the_old_verdict_stands(team: Team) -> None:
    runtime = of_its_own(team)
    first = team.until_probed()["status"]
    team.patch("dbackend", "default", {"spec": {"timeouts": SLOW}})
    until("it is probed again", lambda: probes(team))
    team.apply(start_on("mine"))
    team.until_phase("llama-s1", "Gated")
    assert unproven(team.get("dbackend", "default")["status"]) == {}
    team.patch("dbackend", "default", {"spec": {"timeouts": TIMEOUTS}})
    runtime["spec"]["mlPolicy"]["numNodes"] = 2
    team.apply(runtime)
    until(
        "the runtime's new generation is proven",
        lambda: team.until_probed()["status"]["proof"]["runtime"]["generation"] == 2,
    )
    assert first["proof"]["runtime"]["generation"] == 1
    until("no probe is left", lambda: not probes(team))


@pytest.mark.usefixtures("operator")
def test_a_runtime_that_breaks_rules_makes_the_backend_observe_only_until_it_is_mended(team: Team) -> None:
    runtime = of_its_own(team)
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    job |= {"backoffLimit": 3, "ttlSecondsAfterFinished": 60}
    team.apply(runtime)
    status = team.until_probed(proven=False)["status"]
    assert all(rule in unproven(status)["fields-kept"] for rule in ("no-pod-retry", "no-ttl"))
    assert unproven(status).keys() == {"fields-kept", "start-gate", "collected"}
    team.apply(make_start())
    start = team.until_phase("llama-s1", "Pending")
    assert conditions(start)["Started"] == ("False", "ErrUnsupported")
    assert all(f"{gate} is not proven" in message(start, "Started") for gate in unproven(status))
    nothing_is_left(team)
    job |= {"backoffLimit": 0}
    del job["ttlSecondsAfterFinished"]
    runtime["metadata"].pop("managedFields", None)
    team.apply(runtime)
    team.until_probed()
    # It may use that runtime, and not the one that it names: the refusal is another one now.
    until("it is reconciled again", lambda: "kubeflow/RuntimeRef" in message(team.get("dstart", "llama-s1"), "Started"))
    team.patch("dbackend", "default", {"spec": {"runtimes": [{"name": "torch-dispatch"}]}})
    team.until_phase("llama-s1", "Gated")


def test_a_probe_whose_operator_is_killed_leaves_nothing_once_another_runs(team: Team, account: Path) -> None:
    team.apply(make_backend(timeouts=SLOW))
    with serving(account, "--namespace", team.namespace) as first:
        until("the probe has its JobSet", lambda: team.all("jobsets"))
        first.kill()
    assert len(probes(team)) == 1
    assert left(team)
    team.apply(make_backend(timeouts=TIMEOUTS))
    with serving(account, "--namespace", team.namespace):
        team.until_probed()
        nothing_is_left(team)


def test_a_backend_that_is_deleted_takes_its_probe_along(team: Team, account: Path) -> None:
    team.apply(make_backend(timeouts=SLOW))
    with serving(account, "--namespace", team.namespace):
        until("the probe has its JobSet", lambda: team.all("jobsets"))
        team.kubectl("delete", "dbackend", "default", "--timeout=30s")
        nothing_is_left(team)


@pytest.mark.usefixtures("operator")
def test_a_gate_that_somebody_opens_is_not_proven_and_no_pod_of_it_runs(team: Team) -> None:
    team.apply(make_backend(timeouts=SLOW))
    (probe,) = until("the probe", lambda: [job for job in probes(team) if team.all("jobsets")])
    team.patch("trainjob", probe["metadata"]["name"], {"spec": {"suspend": False}})
    status = team.until_probed(proven=False)["status"]
    assert unproven(status).keys() == {"start-gate"}
    assert any(word in unproven(status)["start-gate"] for word in ("was resumed", "exists behind"))
    team.apply(make_backend(timeouts=TIMEOUTS))
    team.until_probed()
    nothing_is_left(team)
    assert team.all("pods") == []


@pytest.mark.usefixtures("operator")
def test_a_start_that_is_stored_changed_is_the_last_until_it_is_proven_again(team: Team) -> None:
    expression = "Object{spec: Object.spec{activeDeadlineSeconds: 7}}"
    mutate(team.cluster, team.namespace, configuration(expression), but_probes=True)
    before = team.get("dbackend", "default")["status"]["gates"]
    team.apply(make_start())
    start = team.until_phase("llama-s1", "Refused")
    assert conditions(start)["ReadBack"] == ("False", "ErrRejected")
    # The probe, which nobody changes, proves it again.
    backend = team.until_probed()
    assert backend["status"]["gates"] != before
    until("the story", lambda: "ObserveOnly" in team.kubectl("describe", "dbackend", "default").split("Events:")[1])
    assert "DispatchStart llama-s1 failed" in team.kubectl("describe", "dbackend", "default")
    nothing_is_left(team)


def test_the_operator_ends_in_the_middle_of_a_probe(team: Team, account: Path, operator: Service) -> None:
    team.apply(make_backend(timeouts=SLOW))
    until("the probe", lambda: probes(team))
    assert operator.stop() == 0
    team.apply(make_backend(timeouts=TIMEOUTS))
    with serving(account, "--namespace", team.namespace):
        team.until_probed()
        nothing_is_left(team)
