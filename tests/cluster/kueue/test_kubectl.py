"""`kubectl dispatch` on the real control plane with Kueue: what it says of a queue."""

from support.kubectl_plugin import Person
from support.kueue import CHECK

from .conftest import QUEUE, QueuedTeam


def test_what_kueue_keeps_back_is_explained(team: QueuedTeam) -> None:
    team.start(gate="Open", gpus=101)
    person = Person(team.cluster.kubeconfig, team.namespace)
    said = person.until_told("explain", "llama-s1", says="maximum capacity (100)")
    assert said.startswith("llama-s1 is Queued: its gate is open, and it waits in Kueue's queue.\n")
    assert f"kubectl describe workload {team.workload()['metadata']['name']} -n {team.namespace}" in said
    shown = person.told("status", "llama-s1")
    assert f"    Workload/{team.workload()['metadata']['name']} Pending: " in shown
    checked = person.told("check-backend")
    right = f"its ClusterQueue has the admission check {CHECK} for all flavors, and both are active"
    assert f"  ok: kueue: LocalQueue {QUEUE}: {right}\n" in checked


def test_a_queue_that_is_stopped_is_explained(proven: QueuedTeam) -> None:
    person = Person(proven.cluster.kubeconfig, proven.namespace)
    proven.start(gate="Open")
    proven.until_phase("llama-s1", "Running", "Succeeded")
    proven.change_queue(checks=(CHECK,), stopPolicy="Hold")
    proven.start("next", gate="Open", submission=2)
    person.until_told("explain", "next", says=f"ClusterQueue {proven.namespace} is not active")
    checked = person.ask("check-backend")
    assert checked.returncode == 1
    assert f"  problem: kueue: ClusterQueue {proven.namespace} is not active: " in checked.stdout
