"""`kubectl dispatch explain` and `status`: what is told of each phase and reason, byte for byte, piped."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from dispatch_operator.api.enums import Phase
from dispatch_operator.plugin.main import main
from dispatch_operator.reconcile.backend.status import NOT_PROBED
from dispatch_operator.reconcile.steps import await_workload
from support.builders import NAME, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, always, refusal, unanswered
from support.operator import NOW
from support.plugin import Scenario, World, suspended, world_of

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "kubectl"
Object = dict[str, Any]
DENIED = (
    'dispatch is forbidden: User "eve" cannot {verb} resource "{resource}" in API group "" in the namespace "team-a"'
)


async def unseen(world: World) -> None:
    world.begin()
    world.operator.now = NOW + 3600


async def created_a_moment_ago(world: World) -> None:
    world.begin()
    world.operator.now = NOW + 2


async def backend_missing(world: World) -> None:
    world.put(make_runtime(), make_start())
    await world.operator.settle()


async def backend_closed(world: World) -> None:
    world.begin(backend=make_backend(state="Closed"))
    await world.operator.settle()


async def backend_observe_only(world: World) -> None:
    backend = make_backend()
    reason = "the cluster changed spec.trainer.image"
    backend["status"]["gates"][0] |= {"proven": False, "reason": reason}
    told = f"fields-kept is not proven: {reason}"
    backend["status"]["conditions"] = [make_condition("Ready", "False", "ObserveOnly", told)]
    world.begin(backend=backend)
    await world.operator.settle()


async def backend_of_which_one_gate_was_probed(world: World) -> None:
    backend = make_backend()
    reason = "the cluster changed spec.trainer.image"
    gates = {"fields-kept": reason, "start-gate": NOT_PROBED, "collected": NOT_PROBED}
    for gate in backend["status"]["gates"]:
        gate |= {"proven": False, "reason": gates[gate["name"]]}
    told = "; ".join(f"{gate} is not proven: {why}" for gate, why in gates.items())
    backend["status"]["conditions"] = [make_condition("Ready", "False", "ObserveOnly", told)]
    world.begin(backend=backend)
    await world.operator.settle()


async def backend_not_probed(world: World) -> None:
    backend = make_backend()
    backend["status"]["gates"] = []
    world.begin(backend=backend)
    await world.operator.settle()


async def runtime_unfit(world: World) -> None:
    runtime = make_runtime()
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    job |= {"backoffLimit": 3, "ttlSecondsAfterFinished": 60}
    world.begin(runtime=runtime)
    await world.operator.settle()


async def runtime_missing(world: World) -> None:
    world.put(make_backend(), make_start())
    await world.operator.settle()


async def runtime_not_listed(world: World) -> None:
    world.begin(backend=make_backend(runtimes=[]))
    await world.operator.settle()


async def above_a_guard_rail(world: World) -> None:
    world.begin(make_start(nodes=8), make_backend(maxNodes=4, images=["other/*"]))
    await world.operator.settle()


async def refused_invalid(world: World) -> None:
    await world.started(nodes=0, command=[], env={"A B": "x"})


async def refused_never_again(world: World) -> None:
    world.begin(make_start(retry="Never"), make_backend(state="ReadOnly"))
    await world.operator.settle()


async def refused_by_a_quota(world: World) -> None:
    said = 'trainjobs "x" is forbidden: exceeded quota: jobs, requested: count/trainjobs=1, used: 3, limited: 3'
    world.api.before = always("create", "TrainJob", refusal("create", "TrainJob", 403, "Forbidden", said))
    await world.started()


async def refused_for_what_was_stored(world: World) -> None:
    def admit(request: Any, body: Object) -> Object:
        if request.kind == "TrainJob":
            body["spec"]["trainer"]["image"] = "mirror.example/llama:1"
        return body

    world.api.admit = admit
    await world.started()


async def starting_again_and_again(world: World) -> None:
    said = "etcdserver: leader changed"
    world.api.before = always("get", "TrainJob", refusal("get", "TrainJob", 503, "ServiceUnavailable", said))
    world.begin()
    await world.operator.reconcile()


async def in_flight(world: World) -> None:
    world.api.before = always("create", "TrainJob", unanswered())
    world.begin()
    await world.operator.reconcile()


async def gated(world: World) -> None:
    await world.started()


async def gated_with_another_copy(world: World) -> None:
    await world.started()
    world.api.edit("TrainingRuntime", lambda copy: copy["spec"].update(mlPolicy={"numNodes": 2, "torch": {}}))
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Open"))
    await world.operator.settle()


async def gated_with_another_copy_and_another_source(world: World) -> None:
    await gated_with_another_copy(world)
    world.api.edit("ClusterTrainingRuntime", lambda runtime: runtime["spec"].update(mlPolicy={"numNodes": 3}))
    world.api.edit("ClusterTrainingRuntime", lambda runtime: runtime["metadata"].update(generation=2))


async def gated_without_its_copy(world: World) -> None:
    await world.started()
    world.api.remove("TrainingRuntime", "team-a", NAME)
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Open"))
    await world.operator.settle()


async def gated_with_a_copy_in_its_place(world: World) -> None:
    await world.started()
    copy = world.api.one("TrainingRuntime")
    world.api.remove("TrainingRuntime", "team-a", NAME)
    world.api.put({**copy, "metadata": {**copy["metadata"], "uid": "another"}})
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Open"))
    await world.operator.settle()


async def held_before_it_was_open(world: World) -> None:
    await world.started(gate="Held")


async def submission_taken(world: World) -> None:
    world.put(named("TrainJob", NAME, spec={}))
    await world.started()


async def queued_without_an_image(world: World) -> None:
    await world.opened()
    world.waiting_pod("ImagePullBackOff", 'Back-off pulling image "registry.example/llama:1": not found')
    await world.asked()


async def queued_without_a_secret(world: World) -> None:
    await world.opened()
    world.waiting_pod("CreateContainerConfigError", 'secret "hf-token" not found')
    await world.asked()


async def queued_without_a_node(world: World) -> None:
    await world.opened()
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    world.pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}])
    await world.asked()


async def queued_without_a_service_account(world: World) -> None:
    await world.opened()
    said = 'Error creating: pods "x" is forbidden: error looking up service account team-a/sa: serviceaccount "sa" not found'
    world.warn(f"Job/{NAME}-node-0", "FailedCreate", said)
    await world.asked()


async def queued_behind_a_quota(world: World) -> None:
    await world.opened()
    said = (
        'Error creating: pods "x" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4'
    )
    world.warn(f"Job/{NAME}-node-0", "FailedCreate", said)
    await world.asked()


async def queued_and_pods_start(world: World) -> None:
    await world.opened()
    world.trainer(active=1)
    world.pod()
    await world.asked()


async def running(world: World) -> None:
    await world.opened(nodes=2)
    world.trainer(active=1, ready=1)
    world.pod(phase="Running")
    world.pod(f"{NAME}-node-0-1-fghij", phase="Running")
    world.put(named("JobSet", NAME, status={"restarts": 1}))
    await world.asked()


async def running_in_part(world: World) -> None:
    await world.opened(nodes=2)
    world.trainer(active=1)
    world.pod(phase="Running")
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
    world.pod(f"{NAME}-node-0-1-fghij", conditions=[unschedulable])
    job = {"kind": "Job", "metadata": {"name": f"{NAME}-node-0", "namespace": "team-a"}}
    world.put({**job, "status": {"ready": 1}})
    await world.asked()


async def held(world: World) -> None:
    await world.opened()
    await world.asked()
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Held"))
    await world.operator.settle()


async def succeeded(world: World) -> None:
    await world.opened()
    world.trainer(
        0, 0, {"type": "Complete", "status": "True", "reason": "JobsCompleted", "message": "trainjob completed"}
    )
    await world.operator.settle()


async def succeeded_and_was_cleared_away(world: World) -> None:
    await succeeded(world)
    world.api.remove("TrainJob", "team-a", NAME)
    world.api.remove("TrainingRuntime", "team-a", NAME)


def ended(code: int, reason: str) -> list[Object]:
    terminated = {"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T00:00:05Z"}
    return [{"name": "node", "state": {"terminated": terminated}}]


FAILED = {
    "type": "Failed",
    "status": "True",
    "reason": "FailedJobs",
    "message": "jobset failed due to one or more job failures",
}


async def failed_out_of_memory(world: World) -> None:
    await world.opened()
    world.pod(phase="Failed", containerStatuses=ended(137, "OOMKilled"))
    world.trainer(0, 0, FAILED)
    await world.operator.settle()


async def failed_by_its_program(world: World) -> None:
    await world.opened()
    world.pod(phase="Failed", containerStatuses=ended(1, "Error"))
    world.trainer(0, 0, FAILED)
    await world.operator.settle()


async def failed_with_its_node(world: World) -> None:
    await world.opened()
    world.pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    world.trainer(0, 0, FAILED)
    await world.operator.settle()


async def failed_and_was_cleared_away(world: World) -> None:
    await failed_by_its_program(world)
    world.api.remove("TrainJob", "team-a", NAME)


async def failed_before_it_ran(world: World) -> None:
    await queued_without_a_secret(world)
    said = "Trainjob exceeded its active deadline"
    world.trainer(0, 0, {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": said})
    await world.operator.settle()


async def lost(world: World) -> None:
    await world.started()
    world.api.remove("TrainJob", "team-a", NAME)
    await world.operator.settle()


async def cancelled(world: World) -> None:
    await world.opened()
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    await world.operator.settle()


async def cancelled_before_it_was_started(world: World) -> None:
    await backend_closed(world)
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    await world.operator.settle()


async def cancelled_and_nobody_looked_at_it(world: World) -> None:
    await backend_closed(world)
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))


async def cancelled_and_unseen(world: World) -> None:
    world.begin(make_start(gate="Cancelled"))


async def being_cancelled_in_flight(world: World) -> None:
    await in_flight(world)
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    await world.operator.reconcile()


async def being_cancelled_without_a_job(world: World) -> None:
    denied = refusal("create", "TrainJob", 429, "TooManyRequests", "busy")
    world.api.before = always("create", "TrainJob", denied)
    world.begin()
    await world.operator.reconcile()
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    denied = refusal("delete", "TrainingRuntime", 503, "ServiceUnavailable", "etcd")
    world.api.before = always("delete", "TrainingRuntime", denied)
    await world.operator.reconcile()


async def being_cancelled(world: World) -> None:
    await world.opened()
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Cancelled"))
    world.api.before = always("delete", "TrainJob", refusal("delete", "TrainJob", 503, "ServiceUnavailable", "etcd"))
    await world.operator.reconcile()


async def reference_lost(world: World) -> None:
    await world.opened()
    await world.operator.settle()

    def forget(start: Object) -> None:
        del start["status"]["reference"]
        start["status"].pop("copy", None)

    world.api.edit("DispatchStart", forget)
    world.api.edit("TrainJob", lambda job: job["metadata"]["annotations"].pop("dispatch.phpboyscout.uk/opened"))
    await world.operator.settle()


async def a_change_that_nobody_looked_at(world: World) -> None:
    await world.started()
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Open"))
    world.api.edit("DispatchStart", lambda start: start["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


async def without_rights(world: World) -> None:
    await queued_without_an_image(world)

    def forbid(request: Any) -> Any:
        if request.kind in {"Pod", "Event", "Job", "JobSet", "TrainingRuntime"}:
            said = DENIED.format(verb=request.verb, resource=f"{request.kind.lower()}s")
            return refusal(request.verb, f"{request.kind} team-a", 403, "Forbidden", said)
        return None

    world.api.before = forbid


def reserved(status: str, reason: str, said: str) -> Object:
    return {"conditions": [{"type": "QuotaReserved", "status": status, "reason": reason, "message": said}]}


def named(kind: str, name: str, **fields: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name, "namespace": "team-a"}, **fields}


ACTIVE = {"conditions": [{"type": "Active", "status": "True", "reason": "Ready"}]}


async def kueue_waits_for_quota(world: World) -> None:
    await world.queued()
    world.put(named("LocalQueue", "team-a", spec={"clusterQueue": "gpus"}))
    said = "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed"
    world.kueue_says(**reserved("False", "Pending", said))
    await world.operator.settle()


async def kueue_lacks_the_queue(world: World) -> None:
    await world.queued()
    world.put(named("AdmissionCheck", "dispatch-start", status=ACTIVE))
    world.kueue_says(**reserved("False", "Inadmissible", "LocalQueue team-a doesn't exist"))
    await world.operator.settle()


async def kueue_deactivated_it(world: World) -> None:
    await world.queued()
    world.kueue_says(
        conditions=[{"type": "Evicted", "status": "True", "reason": "DeactivatedDueToRequeuingLimitExceeded"}]
    )
    world.api.edit("Workload", lambda workload: workload["spec"].update(active=False))
    await world.operator.settle()


async def kueue_waits_for_a_check(world: World) -> None:
    await world.queued()
    checks = [{"name": "budget", "state": "Retry", "message": "over the month's budget"}]
    world.kueue_says(**reserved("True", "QuotaReserved", ""), admissionChecks=checks)
    await world.operator.settle()


async def kueue_does_not_hold_it_yet(world: World) -> None:
    await world.queued()
    admitted = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""}
    world.kueue_says(conditions=[admitted])
    world.api.edit("TrainJob", lambda job: job["spec"].update(suspend=False))
    world.trainer(active=1, ready=1)
    await world.operator.settle()
    world.api.edit("DispatchStart", lambda start: start["spec"].update(gate="Held"))
    await world.operator.settle()


async def kueue_does_not_handle_it(world: World) -> None:
    world.begin(backend=make_backend(kueue={"queue": "team-a", "admissionCheck": "dispatch-start"}))
    await world.operator.settle()


async def kueue_has_no_workload(world: World) -> None:
    world.api.admit = suspended
    kueue = {"queue": "team-a", "admissionCheck": "dispatch-start"}
    world.begin(make_start(gate="Open"), make_backend(kueue=kueue))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(await_workload, "FIRST_WAIT", 0.01)
        await world.operator.reconcile()


SCENARIOS: list[Scenario] = [
    kueue_waits_for_quota,
    kueue_lacks_the_queue,
    kueue_deactivated_it,
    kueue_waits_for_a_check,
    kueue_does_not_hold_it_yet,
    kueue_does_not_handle_it,
    kueue_has_no_workload,
    unseen,
    created_a_moment_ago,
    backend_missing,
    backend_closed,
    backend_observe_only,
    backend_of_which_one_gate_was_probed,
    backend_not_probed,
    runtime_unfit,
    runtime_missing,
    runtime_not_listed,
    above_a_guard_rail,
    refused_invalid,
    refused_never_again,
    refused_by_a_quota,
    refused_for_what_was_stored,
    starting_again_and_again,
    in_flight,
    gated,
    gated_with_another_copy,
    gated_with_another_copy_and_another_source,
    gated_without_its_copy,
    gated_with_a_copy_in_its_place,
    held_before_it_was_open,
    submission_taken,
    queued_without_an_image,
    queued_without_a_secret,
    queued_without_a_node,
    queued_without_a_service_account,
    queued_behind_a_quota,
    queued_and_pods_start,
    running,
    running_in_part,
    held,
    succeeded,
    succeeded_and_was_cleared_away,
    failed_out_of_memory,
    failed_by_its_program,
    failed_with_its_node,
    failed_and_was_cleared_away,
    failed_before_it_ran,
    lost,
    cancelled,
    cancelled_before_it_was_started,
    cancelled_and_nobody_looked_at_it,
    cancelled_and_unseen,
    being_cancelled_in_flight,
    being_cancelled_without_a_job,
    being_cancelled,
    reference_lost,
    a_change_that_nobody_looked_at,
    without_rights,
]


def told(world: World) -> str:
    """Return what both commands print."""
    shown = []
    for command in ("explain", "status"):
        result = world.ask(command, "llama-s1")
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        shown.append(f"$ kubectl dispatch {command} llama-s1\n{result.stdout}")
    return "\n".join(shown)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_each_phase_and_reason_is_explained(scenario: Scenario) -> None:
    """Every byte; UPDATE_GOLDEN=1 writes it anew, but not in CI."""
    printed, golden = told(world_of(scenario)), GOLDEN / f"{scenario.__name__}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        assert not os.environ.get("CI")
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(printed)
    assert printed == golden.read_text()


def test_every_golden_file_is_of_a_scenario() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {scenario.__name__ for scenario in SCENARIOS}


def test_every_phase_is_explained() -> None:
    shown = {
        json.loads(world_of(scenario).ask("explain", "llama-s1", "-o", "json").stdout)["phase"]
        for scenario in SCENARIOS
    }
    assert shown - {None} == set(Phase)


def test_what_may_go_on_is_cancelled_or_deleted_before_it_is_submitted_again() -> None:
    """Two submissions of one job would both run, once what refused the first was mended."""
    advised = 0
    for scenario in SCENARIOS:
        told = json.loads(world_of(scenario).ask("explain", "llama-s1", "-o", "json").stdout)
        steps, phase = told["next"], told["phase"]
        if any("another submission number" in step["do"] for step in steps) and not (phase and Phase(phase).is_end):
            commands = [step["command"] or "" for step in steps]
            stops = ("kubectl dispatch cancel llama-s1", "kubectl delete dispatchstart llama-s1")
            assert any(command.startswith(stops) for command in commands), scenario.__name__
            advised += 1
    assert advised > 5


def test_every_command_of_ours_that_is_named_can_be_called_so() -> None:
    called, root = set(), click.Context(main, **main.context_settings)
    for scenario in SCENARIOS:
        for step in json.loads(world_of(scenario).ask("explain", "llama-s1", "-o", "json").stdout)["next"]:
            for words in map(shlex.split, (step["command"] or "").split(" | ")):
                if words[:2] == ["kubectl", "dispatch"]:
                    command = main.get_command(root, words[2])
                    assert command, words
                    command.make_parser(click.Context(command, parent=root)).parse_args(words[3:])
                    called.add(words[2])
    assert called >= {"cancel", "check-backend", "check-runtime", "adapt-runtime", "explain", "logs", "open", "render"}


def test_explaining_writes_nothing() -> None:
    for scenario in SCENARIOS:
        world = world_of(scenario)
        world.api.requests.clear()
        told(world)
        assert world.api.writes() == [], scenario.__name__


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_programs_are_told_the_same(scenario: Scenario) -> None:
    world = world_of(scenario)
    explained = json.loads(world.ask("explain", "llama-s1", "-o", "json").stdout)
    assert explained.keys() == {"name", "namespace", "phase", "reason", "summary", "problems", "next", "notes"}
    assert (explained["name"], explained["namespace"]) == ("llama-s1", "team-a")
    assert explained["summary"]
    assert all(step.keys() == {"do", "command"} and step["do"] for step in explained["next"])
    tree = json.loads(world.ask("status", "llama-s1", "-o", "json").stdout)
    assert all(note.startswith("not looked at: ") for note in tree.pop("notes"))
    nodes = [tree]
    for node in nodes:
        assert node.keys() == {"kind", "name", "state", "waitsFor", "children"}
        nodes += node["children"]
    assert (tree["kind"], tree["name"]) == ("DispatchStart", "llama-s1")


def test_what_is_not_there_is_told() -> None:
    world = World(FakeApi())
    for command in ("explain", "status", "open", "hold", "wait", "logs"):
        result = world.ask(command, "nope")
        assert (result.exit_code, result.stdout) == (2, "")
        want = (
            'there is no DispatchStart "nope" in the namespace team-a; kubectl get dispatchstarts -n team-a lists them'
        )
        assert result.stderr == f"Error: {want}\n"


def test_who_may_not_read_it_is_told_so() -> None:
    world = world_of(gated)
    said = DENIED.format(verb="get", resource="dispatchstarts")
    denied = refusal("get", "DispatchStart team-a/llama-s1", 403, "Forbidden", said)
    world.api.before = always("get", "DispatchStart", denied)
    result = world.ask("explain", "llama-s1")
    assert (result.exit_code, result.stdout) == (2, "")
    want = "you may not get DispatchStart team-a/llama-s1; ask whoever gives rights in this cluster"
    assert result.stderr == f"Error: {want}\n"
