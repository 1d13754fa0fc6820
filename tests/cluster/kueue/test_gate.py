"""The start gate in Kueue mode: nothing passes it while it is closed, and opening it is all that opening does."""

from collections.abc import Callable
from typing import Any

from support.builders import JOB, NAME, make_start
from support.kueue import CHECK, GATED_BY, START_GATE, checks_of, condition_of
from support.policies import mutate
from support.waiting import throughout, until
from support.watching import watching

from .conftest import QueuedTeam, train_job

Object = dict[str, Any]
QUOTA = 10
BURST = {f"burst-{number}": JOB[:-3] + f"{number:03d}" for number in range(30)}
TRAIN_JOBS = {train_job(1, job) for job in BURST.values()}


def holds_quota(workload: Object) -> bool:
    """Tell whether a Workload holds quota now: a finished one has given it back."""
    finished = condition_of(workload, "Finished").get("status") == "True"
    return condition_of(workload, "QuotaReserved").get("status") == "True" and not finished


def test_thirty_starts_wait_at_their_gates_and_then_run_in_the_order_and_number_that_quota_allows(
    make_team: Callable[..., QueuedTeam],
) -> None:
    team = make_team(gpus=QUOTA)
    team.until_probed()
    with watching(team.cluster, team.namespace, "workloads") as watch:

        def states() -> list[Object]:
            return [one for one in watch.states() if one["metadata"]["ownerReferences"][0]["name"] in TRAIN_JOBS]

        def quiet() -> bool:
            return team.all("pods") == [] and not any(holds_quota(workload) for workload in states())

        team.apply(*burst("Closed"))
        for name in BURST:
            team.until_phase(name, "Gated", seconds=120)
        throughout("no pod exists and no quota is reserved", quiet, seconds=10)
        assert {one["metadata"]["ownerReferences"][0]["name"] for one in states()} == TRAIN_JOBS
        assert pods_ever_created(team) == 0

        # All quota is taken while they are opened, so that they have the queue's order and not that of the opening.
        team.start("filler", forever=True, gpus=QUOTA, gate="Open")
        team.until_phase("filler", "Running")
        team.apply(*burst("Open"))
        for name in BURST:
            # Of jobs of one shape, Kueue tries one, and says of it alone that quota is lacking.
            team.until_told(name, "Succeeded", "Queued", "Kueue waits: Pending")
        until("Kueue has seen them open", lambda: not [one for one in team.all("workloads") if gates(one)])
        team.kubectl("delete", "dispatchstart", "filler")
        for name in BURST:
            team.until_phase(name, "Succeeded", seconds=120)
        assert max(held_at_once(states())) == QUOTA
        assert overtakers(states()) == []


def burst(gate: str) -> list[Object]:
    """Return all the DispatchStarts, of one node and one GPU each."""
    extensions = {
        "dispatch/Image": {"ref": "registry.example/llama:1"},
        "kubeflow/RuntimeRef": {"name": "torch-dispatch"},
    }
    return [make_start(name, gate=gate, job=job, gpusPerNode=1, extensions=extensions) for name, job in BURST.items()]


def pods_ever_created(team: QueuedTeam) -> int:
    """Count them, by the API server's own account."""
    return sum(
        (request.namespace, request.verb, request.resource) == (team.namespace, "create", "pods")
        for request in team.cluster.requests()
    )


def held_at_once(states: list[Object]) -> list[int]:
    """Return how many held quota, after each change."""
    now: dict[str, bool] = {}
    counts = []
    for workload in states:
        now[workload["metadata"]["uid"]] = holds_quota(workload)
        counts.append(sum(now.values()))
    return counts


def overtakers(states: list[Object]) -> list[tuple[str, str]]:
    """Return pairs of which the second was queued in an earlier second and got its quota in a later one."""
    reserved = {
        workload["metadata"]["name"]: (
            workload["metadata"]["creationTimestamp"],
            condition_of(workload, "QuotaReserved")["lastTransitionTime"],
        )
        for workload in states
        if holds_quota(workload)
    }
    assert len(reserved) == len(BURST)
    assert len({when for _, when in reserved.values()}) > 1
    return [
        (one, other)
        for one, (created, got) in reserved.items()
        for other, (created_before, got_after) in reserved.items()
        if created_before < created and got_after > got
    ]


def test_a_start_applied_open_runs_to_its_end(team: QueuedTeam) -> None:
    team.start(gate="Open")
    team.until_phase("llama-s1", "Succeeded")
    assert checks_of(team.workload()) == {CHECK: "Ready"}


def test_opening_takes_our_name_from_the_gates_and_leaves_others(team: QueuedTeam) -> None:
    other = "other.example/gate"
    team.until_probed()
    install_gate_policy(team, other)
    team.start()
    team.until_phase("llama-s1", "Gated")
    assert set(gates(team.get("trainjob", NAME))) == {START_GATE, other}
    team.set_gate("llama-s1", "Open")
    team.until_told("llama-s1", "Succeeded", "Queued", f"other gates hold it: {other}")
    assert gates(team.get("trainjob", NAME)) == [other]
    assert team.all("pods") == []
    team.kubectl("annotate", "trainjob", NAME, f"{GATED_BY}-")
    team.until_phase("llama-s1", "Succeeded")


def gates(obj: Object) -> list[str]:
    """Return the gates on a TrainJob or a Workload."""
    value: str = obj["metadata"].get("annotations", {}).get(GATED_BY, "")
    return [name for name in value.split(",") if name]


def install_gate_policy(team: QueuedTeam, gate: str) -> None:
    """Have the API server put another gate on everything gated that is created in the team's namespace."""
    key = GATED_BY.replace("/", "~1")
    value = f'object.metadata.annotations["{GATED_BY}"] + ",{gate}"'
    mutation = f'[JSONPatch{{op: "replace", path: "/metadata/annotations/{key}", value: {value}}}]'
    marked = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "tried", "annotations": {GATED_BY: START_GATE}},
    }
    mutate(
        team.cluster,
        team.namespace,
        {"patchType": "JSONPatch", "jsonPatch": {"expression": mutation}},
        resources=("trainjobs", "configmaps"),
        condition=f'"{GATED_BY}" in object.metadata.?annotations.orValue({{}})',
        tried=marked,
    )
