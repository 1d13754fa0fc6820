"""Two shards share a namespace of the real control plane: nothing is handled twice, and nothing is left out."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import RELEASE_NAMESPACE, TIMEOUTS, Team
from cluster.faults.test_two_operators import job_id, one_job_each
from controlplane.audit import Request
from support.builders import make_backend, make_start
from support.rendering import target_name
from support.service import Service, serving

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
SHARDS = ("a", "b")


def start(number: int, shard: str) -> Object:
    made = make_start(f"start-{number}", job=job_id(number), gate="Open")
    made["metadata"]["labels"] = {"shard": shard}
    return made


class ShardedTeam(Team):
    """A team whose operators have an account each, so that the audit log tells them apart."""

    def accounts(self) -> dict[str, Path]:
        """Make the accounts, and return a kubeconfig of each shard's."""
        self.allow_leases()
        subjects = [{"kind": "ServiceAccount", "name": shard, "namespace": self.namespace} for shard in SHARDS]
        cluster_role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": f"{RELEASE_NAMESPACE}:dispatch-operator"}
        roles = [{"apiGroup": RBAC, "kind": "Role", "name": "leases"}, cluster_role]
        self.apply(
            *({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": shard}} for shard in SHARDS),
            *(
                {
                    "apiVersion": f"{RBAC}/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": f"shards-{role['kind'].lower()}"},
                    "roleRef": role,
                    "subjects": subjects,
                }
                for role in roles
            ),
        )
        # What has no namespace is read by the whole cluster's.
        self.kubectl(
            "create", "clusterrolebinding", self.namespace, f"--clusterrole={cluster_role['name']}",
            *(f"--serviceaccount={self.namespace}:{shard}" for shard in SHARDS),
        )  # fmt: skip
        return {shard: self.cluster.kubeconfig_for(self.namespace, shard) for shard in SHARDS}

    @contextmanager
    def shard(self, kubeconfig: Path, shard: str) -> Iterator[Service]:
        """Run a shard."""
        arguments = (f"--lease={self.namespace}/shards", f"--selector=shard={shard}")
        with serving(kubeconfig, "--namespace", self.namespace, *arguments) as service:
            yield service

    def writes(self, shard: str) -> list[Request]:
        """Return the writes that a shard has asked for, its Leases and Events aside."""
        return [
            request
            for request in self.cluster.requests(f"system:serviceaccount:{self.namespace}:{shard}")
            if request.verb in {"create", "patch", "delete"} and request.resource not in {"events", "leases"}
        ]

    def written(self, shard: str) -> list[str]:
        """Return what a shard has written, as "verb resource name".

        A create that a webhook denies, because it has not seen the copy yet, is made again.
        """
        return [
            f"{request.verb} {request.resource} {request.name}" for request in self.writes(shard) if request.code < 400
        ]

    def holder(self) -> str:
        """Return who cares for the rest."""
        return str(self.get("lease", "shards")["spec"].get("holderIdentity"))


@pytest.fixture
def sharded(team: Team) -> ShardedTeam:
    """A namespace that no operator serves yet."""
    return ShardedTeam(team.cluster, team.namespace)


def of_start(made: Object) -> set[str]:
    return {made["metadata"]["name"], str(target_name(made))}


def test_each_start_is_handled_by_its_shard_alone_and_the_backend_by_one(sharded: ShardedTeam) -> None:
    kubeconfigs = sharded.accounts()
    starts = [start(number, SHARDS[number % 2]) for number in range(12)]
    with ExitStack() as stack:
        for shard in SHARDS:
            stack.enter_context(sharded.shard(kubeconfigs[shard], shard))
        sharded.apply(*starts)
        for made in starts:
            sharded.until_phase(made["metadata"]["name"], "Succeeded", seconds=120)
        assert one_job_each(sharded, starts)
    named = {shard: {write.name for write in sharded.writes(shard)} for shard in SHARDS}
    written = {shard: sharded.written(shard) for shard in SHARDS}
    for made in starts:
        own = made["metadata"]["labels"]["shard"]
        (other,) = set(SHARDS) - {own}
        assert of_start(made) <= named[own]
        assert of_start(made).isdisjoint(named[other])
        assert written[own].count(f"create trainjobs {target_name(made)}") == 1
    probing = [shard for shard in SHARDS if "patch dispatchbackends default" in written[shard]]
    assert len(probing) == 1


def test_a_shard_that_is_killed_harms_no_other_and_what_it_cared_for_is_taken_over(sharded: ShardedTeam) -> None:
    kubeconfigs = sharded.accounts()
    starts = [start(number, SHARDS[number % 2]) for number in range(8)]
    with sharded.shard(kubeconfigs["a"], "a") as dying:
        sharded.until_probed()
        with sharded.shard(kubeconfigs["b"], "b"):
            assert "patch dispatchbackends default" not in sharded.written("b")
            held = sharded.holder()
            sharded.apply(*starts)
            dying.kill()
            for made in starts[1::2]:
                sharded.until_phase(made["metadata"]["name"], "Succeeded")
            # The rest is another's as soon as the Lease has expired.
            sharded.apply(make_backend("new", timeouts=TIMEOUTS))
            sharded.until_probed("new")
            assert sharded.holder() != held
            # The Starts of the dead one wait for it, and it goes on where it was.
            with sharded.shard(kubeconfigs["a"], "a"):
                for made in starts[::2]:
                    sharded.until_phase(made["metadata"]["name"], "Succeeded")
    assert one_job_each(sharded, starts)


def test_starts_that_move_between_shards_on_their_way_have_one_job_each(sharded: ShardedTeam) -> None:
    kubeconfigs = sharded.accounts()
    starts = [start(number, "a") for number in range(12)]
    with sharded.shard(kubeconfigs["a"], "a"), sharded.shard(kubeconfigs["b"], "b"):
        sharded.until_probed()
        for number, made in enumerate(starts):
            sharded.apply(made)
            if number >= 2:
                # Each at another point of its way.
                sharded.patch("dispatchstart", f"start-{number - 2}", {"metadata": {"labels": {"shard": "b"}}})
        for made in starts:
            sharded.until_phase(made["metadata"]["name"], "Succeeded", seconds=120)
    assert one_job_each(sharded, starts)
    # Both were at it.
    assert all(
        any(of_start(made) & {write.name for write in sharded.writes(shard)} for made in starts) for shard in SHARDS
    )
