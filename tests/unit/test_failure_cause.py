"""Why a job failed, as its pods tell it: which pod, which container, whose fault."""

from typing import Any

import pytest

from dispatch_operator.api.enums import ErrorKind
from dispatch_operator.api.kinds import Kind
from dispatch_operator.reconcile.failure_cause import Cause, cause_of_failure, cause_of_restart
from dispatch_operator.records.base import KubeCondition
from dispatch_operator.records.core import Event, Pod
from dispatch_operator.records.reading import read_record

Object = dict[str, Any]
USER, SYSTEM, UNKNOWN = ErrorKind
FAILED = KubeCondition("Failed", "True", "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")
EARLY, LATE, LATER = (f"2026-11-30T17:00:0{second}Z" for second in (1, 5, 9))


def ended(code: int, reason: str = "Error", at: str = LATE, name: str = "node", message: str = "") -> Object:
    state = {"exitCode": code, "reason": reason, "finishedAt": at, "message": message}
    return {"name": name, "state": {"terminated": state}}


def disrupted(reason: str, at: str = LATE, status: str = "True") -> Object:
    message = f"{reason} said so"
    return {
        "type": "DisruptionTarget",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }


def pod(
    *containers: Object,
    name: str = "pod-0",
    init: tuple[Object, ...] = (),
    conditions: tuple[Object, ...] = (),
    attempt: str = "0",
    of: str = "node",
    **status: Any,
) -> Pod:
    labels = {"jobset.sigs.k8s.io/restart-attempt": attempt, "jobset.sigs.k8s.io/replicatedjob-name": of}
    raw = {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "phase": "Failed",
            "initContainerStatuses": init,
            "containerStatuses": containers,
            "conditions": conditions,
            **status,
        },
    }
    found = read_record(Kind.POD, raw)
    assert isinstance(found, Pod)
    return found


SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


@pytest.mark.parametrize(
    ("what", "pods", "want"),
    [
        ("an exit code", [pod(ended(3))], ("NonZeroExitCode", USER, "pod-0", "node", 3)),
        (
            "a sidecar that was killed does not hide the trainer's code",
            [pod(ended(1), init=(ended(137, name="proxy"),))],
            ("NonZeroExitCode", USER, "pod-0", "node", 1),
        ),
        (
            "a container beside the trainer's does not, wherever it stands",
            [pod(ended(137, "OOMKilled", EARLY, "exporter"), ended(1))],
            ("NonZeroExitCode", USER, "pod-0", "node", 1),
        ),
        (
            "a container beside a trainer that succeeded",
            [pod(ended(0), ended(2, name="exporter"))],
            ("OtherContainerFailed", UNKNOWN, "pod-0", "exporter", 2),
        ),
        (
            "an init container's code is not the training's",
            [pod(init=(ended(4, name="fetch-data"),))],
            ("InitContainerFailed", UNKNOWN, "pod-0", "fetch-data", 4),
        ),
        (
            "an init container that failed after another had succeeded",
            [pod(init=(ended(0, name="proxy"), ended(4, name="fetch-data")))],
            ("InitContainerFailed", UNKNOWN, "pod-0", "fetch-data", 4),
        ),
        (
            "a pod that ended well, init containers and all, tells nothing",
            [pod(ended(0), init=(ended(0, name="fetch-data"),)), pod(ended(3), name="pod-1")],
            ("NonZeroExitCode", USER, "pod-1", "node", 3),
        ),
        (
            "an initializer's code is not the training's",
            [pod(ended(4, name="dataset-initializer"), of="dataset-initializer")],
            ("OtherContainerFailed", UNKNOWN, "pod-0", "dataset-initializer", 4),
        ),
        (
            "a container called node of another replicated job is not the trainer's",
            [pod(ended(4), of="other")],
            ("OtherContainerFailed", UNKNOWN, "pod-0", "node", 4),
        ),
        (
            "in the same second, what ran out of memory took the other with it",
            [pod(ended(1), name="pod-0"), pod(ended(137, "OOMKilled"), name="pod-1")],
            ("OOMKilled", USER, "pod-1", "node", 137),
        ),
        (
            "in the same second, what was killed was dragged down",
            [pod(ended(143), name="pod-0"), pod(ended(1), name="pod-1")],
            ("NonZeroExitCode", USER, "pod-1", "node", 1),
        ),
        (
            "the first to fail took the others with it",
            [pod(ended(137, "OOMKilled"), name="pod-0"), pod(ended(7, at=EARLY), name="pod-1")],
            ("NonZeroExitCode", USER, "pod-1", "node", 7),
        ),
        ("nobody says who killed it", [pod(ended(137))], ("NonZeroExitCode", UNKNOWN, "pod-0", "node", 137)),
        (
            "no such program",
            [pod(ended(128, "StartError", message="no such file"))],
            ("StartError", USER, "pod-0", "node", 128),
        ),
        (
            "no such directory",
            [pod(ended(125, message="dispatch-prologue: the working directory can not be entered"))],
            ("WorkDirMissing", USER, "pod-0", "node", 125),
        ),
        (
            "a node that shuts down",
            [pod(ended(137), reason="Terminated", message=SHUTDOWN)],
            ("NodeShutdown", SYSTEM, "pod-0", None, None),
        ),
        (
            "preemption",
            [pod(ended(143), conditions=(disrupted("PreemptionByScheduler"),))],
            ("PreemptionByScheduler", SYSTEM, "pod-0", None, None),
        ),
        (
            "a taint",
            [pod(ended(137), conditions=(disrupted("DeletionByTaintManager"),))],
            ("DeletionByTaintManager", SYSTEM, "pod-0", None, None),
        ),
        (
            "a preemption whose pod still has its grace, and whose peers failed at once",
            [
                pod(name="pod-0", conditions=(disrupted("PreemptionByScheduler", EARLY),), phase="Running"),
                pod(ended(1), name="pod-1"),
            ],
            ("PreemptionByScheduler", SYSTEM, "pod-0", None, None),
        ),
        (
            "a program that had failed before its pod was taken",
            [pod(ended(1, at=EARLY), conditions=(disrupted("EvictionByEvictionAPI", LATER),))],
            ("NonZeroExitCode", USER, "pod-0", "node", 1),
        ),
        (
            "a process that was killed a moment before the node said why",
            [pod(ended(137, at=EARLY), conditions=(disrupted("TerminationByKubelet", LATER),))],
            ("TerminationByKubelet", SYSTEM, "pod-0", None, None),
        ),
        (
            "a disruption that was called off",
            [pod(ended(1), conditions=(disrupted("PreemptionByScheduler", EARLY, "False"),))],
            ("NonZeroExitCode", USER, "pod-0", "node", 1),
        ),
        (
            "an eviction",
            [pod(ended(137), conditions=(disrupted("TerminationByKubelet"),), reason="Evicted", message="low on disk")],
            ("Evicted", SYSTEM, "pod-0", None, None),
        ),
        (
            "a node that has not answered since",
            [pod(ended(137, "ContainerStatusUnknown"))],
            ("ContainerStatusUnknown", SYSTEM, "pod-0", "node", 137),
        ),
        *(
            (
                f"a node that does not take the pod: {reason}",
                [pod(reason=reason)],
                (reason, SYSTEM, "pod-0", None, None),
            )
            for reason in ("UnexpectedAdmissionError", "OutOfcpu", "NodeAffinity", "TopologyAffinityError")
        ),
        ("no pod shows why", [], ("PodDeleted", SYSTEM, None, None, None)),
        ("the others were still running", [pod(phase="Running")], ("PodDeleted", SYSTEM, None, None, None)),
        (
            "the last attempt is told, whatever the ones before came to",
            [pod(ended(1, at=EARLY), name="pod-0", attempt="0"), pod(ended(2), name="pod-1", attempt="1")],
            ("NonZeroExitCode", USER, "pod-1", "node", 2),
        ),
        (
            "a pod whose label somebody wrote is of the first attempt",
            [pod(ended(2), attempt="x")],
            ("NonZeroExitCode", USER, "pod-0", "node", 2),
        ),
    ],
)
def test_a_failure_has_one_cause(what: str, pods: list[Pod], want: tuple[Any, ...]) -> None:
    cause = cause_of_failure(FAILED, pods)
    assert (cause.reason, cause.kind, cause.pod, cause.container, cause.exit_code) == want, what
    assert cause.message


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        ([pod(reason="OutOfcpu", message="Node didn't have enough resource: cpu")], "didn't have enough resource: cpu"),
        ([pod(conditions=(disrupted("PreemptionByScheduler"),))], "PreemptionByScheduler said so"),
        ([pod(ended(1, message="ValueError: bad shape"))], "container node: exit code 1: ValueError: bad shape"),
        ([pod(ended(1, message="\x1b[31mred\x1b[0m\nand more"))], r"\x1b[31mred\x1b[0m and more"),
    ],
)
def test_a_cause_keeps_the_words_that_it_was_told_in(pods: list[Pod], want: str) -> None:
    assert want in cause_of_failure(FAILED, pods).message


def test_a_time_limit_keeps_what_kept_the_job_from_running() -> None:
    deadline = KubeCondition("Failed", "True", "DeadlineExceeded", "it was active for too long")
    stuck = Cause("CreateContainerConfigError", 'secret "hf-token" not found', USER, "pod-0", "node")
    cause = cause_of_failure(deadline, [pod(ended(1))], stuck)
    assert (cause.reason, cause.kind, cause.pod) == ("DeadlineExceeded", USER, "pod-0")
    assert cause.message.startswith("it was active for too long; ")
    assert 'CreateContainerConfigError: secret "hf-token" not found' in cause.message
    assert cause_of_failure(deadline, [pod(ended(143))]).message == "it was active for too long"


def test_without_a_word_of_a_pod_the_train_jobs_own_reason_stands() -> None:
    own = KubeCondition("Failed", "True", "RuntimeGone", "no such runtime")
    assert cause_of_failure(own, []) == Cause("RuntimeGone", "no such runtime", UNKNOWN)
    assert cause_of_failure(None, []).reason == "Failed"


def warning(reason: str, message: str, at: str) -> Event:
    raw = {"metadata": {"name": reason}, "type": "Warning", "reason": reason, "message": message, "lastTimestamp": at}
    found = read_record(Kind.EVENT, raw)
    assert isinstance(found, Event)
    return found


def test_a_restart_is_explained_by_the_attempt_before() -> None:
    pods = [pod(ended(1), attempt="0"), pod(ended(2), attempt="1", name="pod-1"), pod(ended(3), attempt="2")]
    assert cause_of_restart(2, pods, []).pod == "pod-1"
    events = [
        warning("RestartJobSetFailurePolicyAction", "first failed job: node-0", EARLY),
        warning("RestartJobSetFailurePolicyAction", "first failed job: node-1", LATE),
        warning("FailedCreate", "no", LATER),
    ]
    assert "first failed job: node-1" in cause_of_restart(4, pods, events).message
    assert cause_of_restart(4, pods, []) == Cause("Unknown", "the pods that failed are gone")
