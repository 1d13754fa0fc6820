"""`kubectl dispatch` on the real control plane: what a person asks, and what is said of what went wrong."""

import json
import signal

import pytest

from support.builders import NAME, make_start
from support.kubectl_plugin import Person
from support.waiting import until

from .conftest import Team
from .test_told import allow, runtime, start

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture
def person(team: Team) -> Person:
    return Person(team.cluster.kubeconfig, team.namespace)


def test_a_start_is_shown_opened_held_and_cancelled(team: Team, person: Person) -> None:
    allow(team, runtime("forever"))
    name = start(team, 1, "forever", nodes=2)
    person.until_told("explain", name, says=f"{name} is Running: 2 of 2 of the trainer's pods run.")
    shown = person.told("status", name).splitlines()
    assert shown[0] == f"DispatchStart/{name} Running: 2 of 2 of the trainer's pods run"
    assert shown[1:4] == [
        "  DispatchBackend/default Proven",
        f"  TrainingRuntime/{NAME} Owned: copied from TrainingRuntime/forever",
        f"  TrainJob/{NAME} Running",
    ]
    assert shown[4] == f"    JobSet/{NAME} Active"
    assert [line.split()[1] for line in shown[5:]] == ["Running", "Running"]
    timed_out = person.ask("wait", name, "--timeout", "1s", "-o", "json")
    assert timed_out.returncode == 124
    assert json.loads(timed_out.stdout)["phase"] == "Running"
    # The nodes are simulated, and have no kubelet to ask.
    logs = person.ask("logs", name, "--tail", "1")
    assert (logs.returncode, logs.stdout) == (1, "")
    assert logs.stderr.count(f"{NAME}-node-0-") >= 2
    assert "the gate was Open, and is Held now" in person.told("hold", name)
    person.until_told("explain", name, says=f"{name} is Held: its job is stopped")
    assert person.told("open", name).startswith(f"dispatchstart/{name}: the gate was Held, and is Open now")
    team.until_phase(name, "Running")
    assert "is Cancelled now" in person.told("cancel", name, "--yes")
    ended = person.ask("wait", name, "--timeout", "60s")
    assert (ended.returncode, ended.stdout.startswith(f"{name} is Cancelled: ")) == (5, True)
    again = person.ask("open", name)
    assert (again.returncode, "has ended (Cancelled)" in again.stderr) == (1, True)
    assert person.told("check-backend").startswith("DispatchBackend/default takes Starts\n")


def test_each_end_is_waited_for_while_a_table_follows(team: Team, person: Person) -> None:
    allow(team, runtime("succeeds", "succeed"), runtime("fails", "fail"), runtime("forever"))
    with person.running("watch") as watching:
        succeeds, fails, forever = start(team, 1, "succeeds"), start(team, 2, "fails"), start(team, 3, "forever")
        team.apply(make_start("refused", submission=4, nodes=0))
        team.until_phase(forever, "Running")
        team.kubectl("delete", "trainjob", f"{NAME[:-1]}3", "--wait=false")
        for name, code in ((succeeds, 0), ("refused", 1), (fails, 3), (forever, 4)):
            assert person.ask("wait", name, "--timeout", "60s").returncode == code, name
        watching.send_signal(signal.SIGINT)
        lines = watching.communicate(timeout=30)[0].splitlines()
    assert watching.returncode == 130
    for name, phase in ((succeeds, "Succeeded"), ("refused", "Refused"), (fails, "Failed"), (forever, "Lost")):
        assert any(line.startswith(f"{name} {phase} ") for line in lines), (name, lines)
    assert "the cause is NonZeroExitCode, exit code 1" in person.told("explain", fails)


def test_what_went_wrong_is_explained_before_the_operator_asks(team: Team, person: Person) -> None:
    allow(team, runtime("unpulled", "image-pull"), runtime("denied", serviceAccountName="trainer"))
    unpulled, denied = start(team, 1, "unpulled"), start(team, 2, "denied")
    said = person.until_told("explain", unpulled, says="ImagePullBackOff: pod ")
    assert f"kubectl describe pod {NAME}-node-0-0-" in said
    assert "The image registry.example/llama:1 can't be had" in said
    assert "ImagePullBackOff: container node: Back-off pulling image" in person.told("status", unpulled)
    said = person.until_told("explain", denied, says="FailedCreate: Job ")
    assert f"kubectl create serviceaccount trainer -n {team.namespace}" in said
    team.kubectl("create", "quota", "none", "--hard=count/trainjobs.trainer.kubeflow.org=2")
    until("the quota is counted", lambda: "used" in team.get("resourcequota", "none").get("status", {}))
    refused = start(team, 3, "unpulled")
    team.until_phase(refused, "Refused")
    said = person.told("explain", refused)
    assert "exceeded quota: none" in said
    assert f"kubectl describe resourcequota -n {team.namespace}" in said


def test_what_a_person_may_not_read_is_told_and_left_out(team: Team, person: Person) -> None:
    allow(team, runtime("unpulled", "image-pull"))
    name = start(team, 1, "unpulled")
    person.until_told("explain", name, says="ImagePullBackOff")
    team.kubectl("create", "serviceaccount", "eve")
    team.kubectl("create", "role", "eve", "--verb=get", "--resource=dispatchstarts,trainjobs")
    team.kubectl("create", "rolebinding", "eve", "--role=eve", f"--serviceaccount={team.namespace}:eve")
    eve = Person(team.cluster.kubeconfig_for(team.namespace, "eve"), team.namespace)
    until("eve has her rights", lambda: eve.ask("explain", name).returncode == 0)
    said = eve.told("explain", name)
    assert said.startswith(f"{name} is Queued: its gate is open, and ")
    assert f"note: not looked at: you may not list pods in {team.namespace}\n" in said
    shown = eve.told("status", name)
    assert "  DispatchBackend/default NotRead\n" in shown
    assert f"not looked at: you may not get DispatchBackend {team.namespace}/default\n" in shown
    denied = eve.ask("hold", name)
    assert denied.returncode == 2
    assert f"you may not patch DispatchStart {team.namespace}/{name}" in denied.stderr
    assert eve.ask("check-backend").returncode == 2


def test_a_backend_and_its_runtimes_are_checked_live(team: Team, person: Person) -> None:
    unfit = runtime("unfit", terminationGracePeriodSeconds=1)
    unfit["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 2
    allow(team, unfit)
    checked = person.ask("check-backend")
    assert checked.returncode == 1
    assert "  problem: TrainingRuntime/unfit: no-pod-retry: " in checked.stdout
    assert "  ok: ClusterTrainingRuntime/torch-dispatch: it is fit for Starts\n" in checked.stdout
    runtimes = person.ask("check-runtime", "TrainingRuntime/unfit")
    assert (runtimes.returncode, runtimes.stderr.startswith("ErrUnsupported: no-pod-retry: ")) == (1, True)
