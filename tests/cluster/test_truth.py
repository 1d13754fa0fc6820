"""What only the real API server, Trainer and JobSet can witness: bytes, sizes, races, webhooks, deletion, crashes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from controlplane.kubectl import KubectlError
from support.builders import JOB, NAME, make_backend, make_runtime, make_start
from support.container_expansion import expand
from support.operator import conditions, message
from support.policies import INJECTED, configuration, mutate
from support.rendering import target_name
from support.service import Service, serving
from support.waiting import until

from .conftest import Team

Object = dict[str, Any]


def job_id(number: int) -> str:
    """Return a different ULID for every number."""
    return JOB[:-3] + f"{number:03d}"


@pytest.mark.usefixtures("operator")
def test_fifty_starts_at_once_are_gated_with_seven_requests_each_at_most(team: Team) -> None:
    starts = [make_start(f"burst-{number}", job=job_id(number)) for number in range(50)]
    probed = len(team.requests())
    team.apply(*starts)
    for start in starts:
        team.until_phase(start["metadata"]["name"], "Gated", seconds=120)
    jobs, copies = team.all("trainjobs"), team.all("trainingruntimes")
    names = sorted(str(target_name(start)) for start in starts)
    assert sorted(job["metadata"]["name"] for job in jobs) == names
    assert sorted(copy["metadata"]["name"] for copy in copies) == names
    uids = {job["metadata"]["name"]: job["metadata"]["uid"] for job in jobs}
    for copy in copies:
        assert [owner["uid"] for owner in copy["metadata"]["ownerReferences"]] == [uids[copy["metadata"]["name"]]]
    assert len(team.requests()) - probed + 50 <= 50 * 7 + _race_retries(team)
    # A second reconcile at a settled object makes no write, and none is made for any other reason either.
    before, raced = len(team.requests()), _race_retries(team)
    team.kubectl("annotate", "dispatchstarts", "--all", "looked=again")
    team.apply(make_start("after", job=job_id(999)))
    team.until_phase("after", "Gated")
    writes = [request for request in team.requests()[before:] if not request.startswith("get")]
    assert len(writes) == 4 + _race_retries(team) - raced, writes


def _race_retries(team: Team) -> int:
    """Count the creates that a webhook denied because its cache had not seen the copy."""
    create = (team.namespace, "trainjobs", "create", 403)
    requests = team.cluster.requests()
    return sum((one.namespace, one.resource, one.verb, one.code) == create for one in requests)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("what", "spec"),
    [
        ("forty items of 7 KiB", {"command": ["run", *["x" * 7168] * 40]}),
        ("122 env entries", {"env": {f"KEY_{number}": "v" for number in range(122)}}),
        ("124 command items", {"command": ["run"] * 124}),
        # With a longer form than UTF-8 the request would be larger than the API server takes.
        ("eight items of 127 KiB that no ASCII holds", {"command": ["run", *["é" * 65_000] * 8]}),
        (
            "122 env entries and 124 items at once",
            {"env": {f"KEY_{number}": "" for number in range(122)}, "command": ["run"] * 124},
        ),
    ],
)
def test_a_large_request_works(team: Team, what: str, spec: Object) -> None:
    team.apply(make_start(gate="Open", **spec))
    assert team.until_phase("llama-s1", "Succeeded"), what


CHARACTERS = "".join(
    chr(point)
    for point in [*range(0x01, 0x7F), *range(0xA0, 0x250), 0x2028, 0x2029, 0xFEFF, 0xFFFD, 0xE000, 0x1F600, 0x10FFFF]
)
TEXTS = [
    CHARACTERS,
    "$$ $(HOME) $é $ $$(A) $$$(B) $",
    "two words, a \"quote\", a 'quote', a\nnewline, a\ttab, * ? [a] ~ \\ `x` $x ${x}",
    "",
]


@pytest.mark.usefixtures("operator")
def test_every_allowed_character_arrives_in_the_container(team: Team) -> None:
    env = {f"TEXT_{number}": text for number, text in enumerate(TEXTS)}
    team.create(make_start(gate="Open", command=["run", *TEXTS], env=env))
    team.until_phase("llama-s1", "Succeeded")
    (pod,) = team.all("pods")
    (container,) = pod["spec"]["containers"]
    held = {entry["name"]: expand(entry.get("value", "")).decode() for entry in container["env"]}
    # What the kubelet would expand with the container's environment, in which none of these names is set.
    arrived = [expand(item).decode() for item in container["command"]]
    assert arrived[4:] == ["run", *TEXTS]
    assert {key: held[key] for key in env} == env


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("character", ["\x7f", "\u0085", "\u009f", "\ufffe", "\uffff"])
def test_a_forbidden_character_is_refused(team: Team, character: str) -> None:
    team.create(make_start(command=["run", f"a{character}b"]))
    start = team.until_phase("llama-s1", "Refused")
    assert conditions(start)["RequestValid"] == ("False", "ErrInvalid")
    assert "command" in message(start, "RequestValid")


@pytest.mark.usefixtures("operator")
def test_a_runtime_is_copied_verbatim(team: Team) -> None:
    runtime = make_runtime("large")
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    pod["containers"][0] |= {
        "args": [],
        "env": [{"name": f"LONG_{number}", "value": "y" * 4000} for number in range(30)],
        "resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}},
    }
    pod |= {"nodeSelector": {}, "tolerations": [], "terminationGracePeriodSeconds": 0, "volumes": []}
    runtime["kind"] = "TrainingRuntime"
    reference = {"kind": "TrainingRuntime", "name": "large"}
    team.apply(runtime, make_backend(runtimes=[reference]))
    extensions = {"dispatch/Image": {"ref": "i"}, "kubeflow/RuntimeRef": reference}
    team.apply(make_start(extensions=extensions))
    team.until_phase("llama-s1", "Gated")
    assert team.get("trainingruntime", NAME)["spec"] == team.get("trainingruntime", "large")["spec"]
    assert (
        team.get("trainingruntime", "large")["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"][
            "template"
        ]["spec"]["volumes"]
        == []
    )


@pytest.mark.usefixtures("operator")
def test_an_env_that_a_policy_adds_is_caught_with_its_path(team: Team) -> None:
    mutate(team.cluster, team.namespace, configuration(INJECTED))
    team.apply(make_start())
    start = team.until_phase("llama-s1", "Refused")
    assert conditions(start)["ReadBack"] == ("False", "ErrRejected")
    assert "spec.trainer.env" in message(start, "ReadBack")
    assert "INJECTED" in message(start, "ReadBack")
    assert start["status"]["reference"]["name"] == f"{team.namespace}/{NAME}"
    until("nothing is left", lambda: not team.all("trainjobs") and not team.all("trainingruntimes"))


@pytest.mark.usefixtures("operator")
def test_another_managers_patch_is_no_difference(team: Team) -> None:
    expression = (
        'Object{spec: Object.spec{runtimePatches: [Object.spec.runtimePatches{manager: "example.com/other"}]}, '
        'metadata: Object.metadata{labels: {"added": "by-policy"}}}'
    )
    mutate(team.cluster, team.namespace, configuration(expression))
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    managers = [patch["manager"] for patch in team.get("trainjob", NAME)["spec"]["runtimePatches"]]
    assert "example.com/other" in managers


@pytest.mark.usefixtures("operator")
def test_a_train_job_of_a_human_is_refused_and_never_touched(team: Team) -> None:
    human = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": NAME},
        "spec": {"runtimeRef": {"name": "torch-dispatch"}, "suspend": True},
    }
    team.apply(human)
    before = team.get("trainjob", NAME)
    team.apply(make_start())
    start = team.until_phase("llama-s1", "Refused")
    # Before a copy is made when the watch has told of the TrainJob, by the create's answer when it has not.
    told = conditions(start)
    failed = "TrainJobCreated" if "TrainJobCreated" in told else "RuntimeCopied"
    assert told[failed] == ("False", "ErrRejected")
    assert "is not of this DispatchStart" in message(start, failed)
    after = team.get("trainjob", NAME)
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert team.all("trainingruntimes") == []


KINDS = ("trainjobs", "trainingruntimes", "jobsets", "pods")


def test_deleting_a_start_deletes_all_of_it_with_the_operator_down(team: Team, account: Path) -> None:
    with serving(account, "--namespace", team.namespace):
        team.apply(make_start(gate="Open"))
        team.until_phase("llama-s1", "Succeeded")
    team.kubectl("delete", "dispatchstart", "llama-s1", "--timeout=60s")
    until("all is collected", lambda: not any(team.all(kind) for kind in KINDS))


@pytest.mark.parametrize("kind", ["dispatchstart/llama-s1", f"trainjob/{NAME}"])
@pytest.mark.parametrize("operator_is", ["up", "down and then up"])
def test_deletion_in_the_foreground_finishes(team: Team, account: Path, kind: str, operator_is: str) -> None:
    delete = ("delete", kind, "--cascade=foreground", "--wait=false")
    with serving(account, "--namespace", team.namespace):
        team.apply(make_start(gate="Open"))
        team.until_phase("llama-s1", "Succeeded")
        if operator_is == "up":
            team.kubectl(*delete)
            until("all is collected", lambda: not any(team.all(kind) for kind in KINDS))
    if operator_is == "down and then up":
        team.kubectl(*delete)
        # Trainer's webhook now keeps the garbage collector from taking its finalizer off the TrainJob.
        until("the copy is collected", lambda: not team.all("trainingruntimes"))
        with serving(account, "--namespace", team.namespace):
            until("all is collected", lambda: not any(team.all(kind) for kind in KINDS))


@pytest.mark.usefixtures("operator")
def test_deleting_and_creating_again_runs_the_submission_again(team: Team) -> None:
    team.apply(make_start())
    first = team.until_phase("llama-s1", "Gated")["status"]["reference"]["uid"]
    team.kubectl("delete", "dispatchstart", "llama-s1", "--wait=false")
    until("it is gone", lambda: not team.all("dispatchstarts"))
    team.apply(make_start())
    assert team.until_phase("llama-s1", "Gated")["status"]["reference"]["uid"] != first


@pytest.mark.usefixtures("operator")
def test_a_train_job_that_is_deleted_by_hand_is_lost(team: Team) -> None:
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    team.kubectl("delete", "trainjob", NAME)
    start = team.until_phase("llama-s1", "Lost")
    assert conditions(start)["Stalled"] == ("True", "Lost")
    until("the copy is collected", lambda: not team.all("trainingruntimes"))
    assert team.all("trainjobs") == []


@pytest.mark.usefixtures("operator")
def test_a_copy_that_is_edited_while_gated_keeps_the_gate_closed_until_it_is_restored(team: Team) -> None:
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    team.patch("trainingruntime", NAME, {"spec": {"mlPolicy": {"numNodes": 2}}})
    until("it is told", lambda: conditions(team.get("dstart", "llama-s1"))["RuntimeCopied"][1] == "ErrRejected")
    team.set_gate("llama-s1", "Open")
    until("it is seen", lambda: team.get("dstart", "llama-s1")["status"]["observedGeneration"] == 2)
    assert team.get("trainjob", NAME)["spec"]["suspend"] is True
    team.patch("trainingruntime", NAME, {"spec": {"mlPolicy": {"numNodes": 1}}})
    team.until_phase("llama-s1", "Succeeded")


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("kind", ["backend", "runtime"])
def test_what_was_refused_for_now_is_started_when_it_can_be(team: Team, kind: str) -> None:
    runtime = make_runtime("mine")
    runtime["kind"] = "TrainingRuntime"
    reference = {"kind": "TrainingRuntime", "name": "mine"}
    extensions = {"dispatch/Image": {"ref": "i"}, "kubeflow/RuntimeRef": reference}
    if kind == "runtime":
        runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 3
        team.apply(make_backend(runtimes=[reference]))
    team.apply(runtime, make_start(extensions=extensions))
    start = team.until_phase("llama-s1", "Pending")
    assert conditions(start)["Started"] == ("False", "ErrUnsupported")
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    team.apply(make_backend(runtimes=[reference]), runtime)
    team.until_phase("llama-s1", "Gated")


def test_an_operator_that_is_killed_in_the_middle_leaves_one_job_each(team: Team, account: Path) -> None:
    starts = [make_start(f"burst-{number}", job=job_id(number), gate="Open") for number in range(30)]
    with serving(account, "--namespace", team.namespace) as first, ThreadPoolExecutor(1) as pool:
        applied = pool.submit(team.apply, *starts)
        until("some jobs exist", lambda: len(team.all("trainjobs")) >= 3)
        first.kill()
        applied.result()
    with serving(account, "--namespace", team.namespace):
        for start in starts:
            team.until_phase(start["metadata"]["name"], "Succeeded", seconds=120)
    jobs, copies = team.all("trainjobs"), team.all("trainingruntimes")
    assert sorted(job["metadata"]["name"] for job in jobs) == sorted(str(target_name(start)) for start in starts)
    assert all(len(copy["metadata"]["ownerReferences"]) == 1 for copy in copies)
    assert len(copies) == len(jobs)


def test_a_restart_of_the_operator_writes_nothing(team: Team, account: Path) -> None:
    with serving(account, "--namespace", team.namespace):
        team.apply(make_start(), make_start("bad", submission=2, nodes=0))
        team.until_phase("llama-s1", "Gated")
        team.until_phase("bad", "Refused")
    before = team.requests()
    with serving(account, "--namespace", team.namespace):
        team.apply(make_start("after", submission=3))
        team.until_phase("after", "Gated")
    made = team.requests()[len(before) :]
    assert [request for request in made if not request.startswith("get")].count("patch dispatchstarts/status") == 1


def test_the_uid_is_a_precondition_of_opening(team: Team, operator: Service) -> None:
    team.apply(make_start())
    team.until_phase("llama-s1", "Gated")
    assert operator.stop() == 0
    with pytest.raises(KubectlError) as refused:
        team.patch("trainjob", NAME, {"metadata": {"uid": "another"}, "spec": {"suspend": False}})
    assert "Conflict" in str(refused.value) or "uid" in str(refused.value)
    assert team.get("trainjob", NAME)["spec"]["suspend"] is True
    with pytest.raises(KubectlError):
        team.patch("trainjob", "another", {"metadata": {"uid": "another"}})


@pytest.mark.usefixtures("operator")
def test_a_copy_that_a_crash_left_behind_is_collected(team: Team) -> None:
    runtime = make_runtime(NAME)
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"] |= {
        "labels": {
            "app.kubernetes.io/managed-by": "dispatch-operator",
            "dispatch.phpboyscout.uk/job-id": JOB,
            "dispatch.phpboyscout.uk/submission": "1",
        },
        "annotations": {
            "dispatch.phpboyscout.uk/start": "gone",
            "dispatch.phpboyscout.uk/start-uid": "00000000-0000-0000-0000-000000000000",
        },
    }
    team.apply(runtime)
    until("it is collected", lambda: not team.all("trainingruntimes"))


@pytest.mark.usefixtures("operator")
def test_a_job_whose_jobset_a_quota_denies_says_so(team: Team) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/jobsets.jobset.x-k8s.io": "0"}},
    }
    team.apply(quota)
    until("the quota is in force", lambda: team.get("resourcequota", "none").get("status", {}).get("hard"))
    team.apply(make_start(gate="Open"))
    team.until_phase("llama-s1", "Queued")
    until(
        "the quota is told",
        lambda: "exceeded quota" in message(team.get("dstart", "llama-s1"), "Succeeded"),
        seconds=120,
    )
