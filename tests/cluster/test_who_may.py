"""Who may do what: Kubernetes' own roles, and the policies of deploy/samples, on the real API server."""

import json
from pathlib import Path

from controlplane.kubectl import KubectlError
from support.builders import make_backend, make_start
from support.waiting import until

from .conftest import Object, Team

POLICIES = Path(__file__).parents[2] / "deploy" / "samples" / "policies"
SUPERVISOR = ("--as=anna", "--as-group=system:masters", "--as-group=supervisors")
ADMIN = ("--as=ben", "--as-group=system:masters")


def refused(team: Team, obj: Object, *who: str) -> str:
    """Try to create an object without its being kept, and return why it was refused, or nothing."""
    try:
        team.cluster.kubectl(
            "create", f"--namespace={team.namespace}", "--dry-run=server", "--filename=-", *who, input=json.dumps(obj)
        )
    except KubectlError as error:
        return str(error)
    return ""


def of(team: Team, obj: Object) -> Object:
    """Put an object into the team's namespace."""
    obj["metadata"]["namespace"] = team.namespace
    obj.pop("status", None)
    obj["metadata"].pop("creationTimestamp", None)
    return obj


def test_editors_submit_and_admins_say_what_may_be_submitted(team: Team) -> None:
    for role in ("view", "edit", "admin"):
        team.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}")
    start = of(team, make_start())
    backend = of(team, make_backend("second"))
    # Kubernetes adds to its roles a moment after the chart's are made.
    until("editors may submit", lambda: refused(team, start, "--as=edit") == "")
    until("admins may write backends", lambda: refused(team, backend, "--as=admin") == "")
    assert "cannot create resource" in refused(team, start, "--as=view")
    assert "cannot create resource" in refused(team, backend, "--as=edit")
    assert team.kubectl("get", "dispatchbackends", "--as=view", "--output=name")


def test_the_policies_of_the_samples_refuse_what_they_say_and_nothing_else(team: Team) -> None:
    team.cluster.kubectl("label", "namespace", team.namespace, "dispatch-policy=strict")
    team.cluster.kubectl("apply", *(f"--filename={file}" for file in sorted(POLICIES.glob("*.yaml"))))
    other = of(team, make_start())
    other["spec"]["request"]["spec"]["extensions"]["dispatch/Image"]["ref"] = "elsewhere.example/llama:1"
    # A policy is asked a moment after it is there.
    until("images are looked at", lambda: refused(team, other, *ADMIN))
    assert "dispatch/Image elsewhere.example/llama:1: images come from registry.example/ here" in refused(
        team, other, *ADMIN
    )
    assert refused(team, of(team, make_start()), *ADMIN) == ""
    opened = of(team, make_start(gate="Open"))
    until("gates are looked at", lambda: refused(team, opened, *ADMIN))
    assert "only the group supervisors may move spec.gate" in refused(team, opened, *ADMIN)
    assert refused(team, opened, *SUPERVISOR) == ""
    without = of(team, make_start())
    del without["spec"]["request"]["spec"]["extensions"]
    assert "images come from" in refused(team, without, *ADMIN)
