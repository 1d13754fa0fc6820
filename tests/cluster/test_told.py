"""What a person is told of a job that does not run, or fails, in Kubernetes' own words, on the real control plane."""

import json
from typing import Any

import pytest

from support.builders import JOB, NAME, make_backend, make_runtime, make_start
from support.service import Service
from support.waiting import until

from .conftest import OUTCOME, TIMEOUTS, Team

Object = dict[str, Any]
WITHIN = 75.0
"""Seconds: a minute, and what a machine with few cores takes."""
AT = "2026-11-30T17:00:05Z"
pytestmark = pytest.mark.usefixtures("operator")


def runtime(name: str, outcome: str = "run-forever", **pod_spec: Any) -> Object:
    """Return a TrainingRuntime whose JobSet is not restarted."""
    made = make_runtime(name, pod_annotations={OUTCOME: outcome}) | {"kind": "TrainingRuntime"}
    made["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 0
    job = made["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["spec"] |= pod_spec
    return made


def with_initializer(name: str) -> Object:
    """Return a runtime whose trainer waits for an initializer that never ends."""
    made = runtime(name)
    jobs = made["spec"]["template"]["spec"]["replicatedJobs"]
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}
    pod = {"restartPolicy": "Never", "containers": [{"name": "dataset-initializer", "image": "x"}]}
    template = {"metadata": {"annotations": {OUTCOME: "run-forever"}}, "spec": pod}
    job = {"metadata": {"labels": step}, "spec": {"backoffLimit": 0, "template": template}}
    jobs.insert(0, {"name": "dataset-initializer", "replicas": 1, "template": job})
    jobs[1]["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
    return made


def start(team: Team, submission: int, runtime_name: str, **request: Any) -> str:
    """Apply an open DispatchStart on a runtime of the namespace, and return its name."""
    reference = {"kind": "TrainingRuntime", "name": runtime_name}
    extensions = {"dispatch/Image": {"ref": "registry.example/llama:1"}, "kubeflow/RuntimeRef": reference}
    name = f"s{submission}"
    team.apply(make_start(name, gate="Open", submission=submission, extensions=extensions, **request))
    return name


def allow(team: Team, *runtimes: Object) -> None:
    references = [{"kind": "TrainingRuntime", "name": one["metadata"]["name"]} for one in runtimes]
    team.apply(*runtimes, make_backend(runtimes=references, timeouts=TIMEOUTS))


def pod_of(team: Team, submission: int) -> str:
    """Return the name of the only pod of a submission, once there is one."""

    def found() -> str:
        name = f"{NAME[:-1]}{submission}-"
        return next(
            (pod["metadata"]["name"] for pod in team.all("pods") if pod["metadata"]["name"].startswith(name)), ""
        )

    return until(f"a pod of submission {submission}", found)


def set_status(team: Team, submission: int, status: Object) -> None:
    """Write the status of a submission's pod, as a kubelet would."""
    patch = json.dumps({"status": status})
    team.kubectl("patch", "pod", pod_of(team, submission), "--subresource=status", "--type=merge", f"--patch={patch}")


def container(state: Object, name: str = "node") -> Object:
    return {"name": name, "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}


def ended(code: int, reason: str = "Error", message: str = "") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "startedAt": AT, "finishedAt": AT}}


def told(team: Team, name: str) -> tuple[str, str]:
    """Return the phase, and what Succeeded says."""
    status = team.get("dispatchstart", name)["status"]
    said = [f"{one['reason']}: {one['message']}" for one in status.get("conditions", []) if one["type"] == "Succeeded"]
    return status.get("phase", ""), "".join(said)


def test_queued_says_within_a_minute_what_keeps_a_job(team: Team) -> None:
    runtimes = (
        runtime("denied", serviceAccountName="does-not-exist"),
        runtime("unpulled", "image-pull"),
        runtime("fits-nowhere", nodeSelector={"no": "node"}),
        with_initializer("steps"),
    )
    allow(team, *runtimes)
    denied, unpulled = start(team, 1, "denied"), start(team, 2, "unpulled")
    nowhere, config = start(team, 3, "fits-nowhere"), start(team, 4, "unpulled", timeLimit="70s")
    steps = start(team, 5, "steps")
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hf-token" not found'}}
    pod_of(team, 4)
    set_status(team, 4, {"containerStatuses": [container(waiting)]})
    for name, word, said in (
        (denied, "FailedCreate", 'serviceaccount "does-not-exist" not found'),
        (unpulled, "ImagePullBackOff", "Back-off pulling image"),
        (nowhere, "Unschedulable", "nodes are available"),
        (config, "CreateContainerConfigError", 'secret "hf-token" not found'),
        (steps, "Queued", "dataset-initializer runs, and the trainer's pods do not yet"),
    ):

        def says(name: str = name, word: str = word, said: str = said) -> bool:
            phase, message = told(team, name)
            return phase == "Queued" and message.startswith(f"{word}: ") and said in message

        until(f"{name} says {word}", says, seconds=WITHIN)
    outcome = team.until_phase(config, "Failed")["status"]["outcome"]
    assert (outcome["cause"], outcome["errorKind"]) == ("DeadlineExceeded", "User")
    assert "CreateContainerConfigError: pod" in outcome["message"]
    assert "ImagePullBackOff" in team.kubectl("get", "dstart", unpulled)


def disrupted(reason: str) -> Object:
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m", "lastTransitionTime": AT}


SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
FAILURES = [
    (
        {
            "initContainerStatuses": [container(ended(137), "proxy")],
            "containerStatuses": [container(ended(1, message="ValueError: bad shape"))],
        },
        {"cause": "NonZeroExitCode", "errorKind": "User", "container": "node", "exitCode": 1},
    ),
    (
        {"initContainerStatuses": [container(ended(4), "proxy")]},
        {"cause": "InitContainerFailed", "errorKind": "Unknown", "container": "proxy", "exitCode": 4},
    ),
    (
        {"reason": "Terminated", "message": SHUTDOWN, "containerStatuses": [container(ended(137))]},
        {"cause": "NodeShutdown", "errorKind": "System"},
    ),
    (
        {"conditions": [disrupted("PreemptionByScheduler")], "containerStatuses": [container(ended(143))]},
        {"cause": "PreemptionByScheduler", "errorKind": "System"},
    ),
    (
        {"conditions": [disrupted("DeletionByTaintManager")], "containerStatuses": [container(ended(137))]},
        {"cause": "DeletionByTaintManager", "errorKind": "System"},
    ),
    (
        {"reason": "UnexpectedAdmissionError", "message": "Allocate failed due to no GPU"},
        {"cause": "UnexpectedAdmissionError", "errorKind": "System"},
    ),
]


def test_an_outcome_names_the_pod_the_container_and_whose_fault_it_was(team: Team) -> None:
    proxy = {"name": "proxy", "image": "x", "restartPolicy": "Always"}
    allow(team, runtime("forever", initContainers=[proxy]))
    deleted = len(FAILURES) + 1
    names = [start(team, number, "forever") for number in range(1, deleted + 1)]
    for name in names:
        team.until_phase(name, "Running")
    for number, (status, _) in enumerate(FAILURES, start=1):
        set_status(team, number, {"phase": "Failed", **status})
    team.kubectl("delete", "pod", pod_of(team, deleted), "--wait=false")
    for number, (_, want) in enumerate(FAILURES, start=1):
        outcome = team.until_phase(f"s{number}", "Failed")["status"]["outcome"]
        assert {**want, "pod": outcome["pod"]} == {key: outcome[key] for key in (*want, "pod")}
        assert outcome["pod"].startswith(f"dj-{JOB.lower()}-s{number}-node-0-0-")
    outcome = team.until_phase(names[-1], "Failed")["status"]["outcome"]
    assert (outcome["cause"], outcome["errorKind"]) == ("PodDeleted", "System")
    assert "condition met" in team.kubectl("wait", "dstart", "--all", "--for=condition=Finished", "--timeout=5s")


def test_a_restart_is_told_with_its_cause(team: Team, operator: Service) -> None:
    assert operator.stop
    fails = runtime("fails", "fail")
    fails["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 1
    allow(team, fails)
    status = team.until_phase(start(team, 1, "fails"), "Failed")["status"]
    assert (status["restarts"], status["lastRestart"]["number"]) == (1, 1)
    assert status["lastRestart"]["cause"] in {"NonZeroExitCode", "Unknown"}
    assert status["outcome"]["cause"] == "NonZeroExitCode"
