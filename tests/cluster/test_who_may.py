"""Who may do what: Kubernetes' own roles, and the policies of deploy/samples, on the real API server."""

import json
from pathlib import Path

import pytest

from controlplane.kubectl import KubectlError
from support.builders import make_backend, make_start
from support.policies import TRAIN_JOB
from support.waiting import until

from .conftest import Object, Team

POLICIES = Path(__file__).parents[2] / "deploy" / "samples" / "policies"
SUPERVISOR = ("--as=anna", "--as-group=system:masters", "--as-group=supervisors")
CREATOR = "dispatch.phpboyscout.uk/creator"
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


def annotated(team: Team, obj: Object, *who: str) -> str:
    """Try to create an object without its being kept, and return whom it would name as creator."""
    create = ("create", f"--namespace={team.namespace}", "--dry-run=server", "--output=json", "--filename=-")
    stored: Object = json.loads(team.cluster.kubectl(*create, *who, input=json.dumps(obj)))
    return str(stored["metadata"].get("annotations", {}).get(CREATOR, ""))


@pytest.mark.usefixtures("operator")
def test_the_job_names_who_asked_for_it_and_nobody_can_say_otherwise(team: Team) -> None:
    team.cluster.kubectl("label", "namespace", team.namespace, "dispatch-policy=strict")
    team.cluster.kubectl("apply", f"--filename={POLICIES / 'who-created-it.yaml'}")
    forged = of(team, make_start())
    forged["metadata"]["annotations"] = {CREATOR: "somebody else"}
    until("creators are noted", lambda: annotated(team, forged, *SUPERVISOR) == "anna")

    waiting = of(team, make_start("waiting", submission=2))
    waiting["spec"]["backend"] = "missing"
    create = ("create", f"--namespace={team.namespace}", "--filename=-", *SUPERVISOR)
    team.cluster.kubectl(*create, input=json.dumps(waiting))
    uid = team.get("dispatchstart", "waiting")["metadata"]["uid"]
    job = {**TRAIN_JOB, "metadata": {"name": "tried", "annotations": {"dispatch.phpboyscout.uk/start-uid": uid}}}
    # The policy is asked, and knows the DispatchStarts, a moment after it is there.
    until("jobs are looked at", lambda: annotated(team, job) == "anna")

    team.cluster.kubectl(*create, input=json.dumps(forged))
    team.until_phase("llama-s1", "Gated")
    (job,) = team.all("trainjobs")
    assert job["metadata"]["annotations"][CREATOR] == "anna"
    team.patch("dispatchstart", "llama-s1", {"metadata": {"annotations": {CREATOR: "ben"}}})
    assert team.get("dispatchstart", "llama-s1")["metadata"]["annotations"][CREATOR] == "anna"


@pytest.mark.usefixtures("operator")
def test_the_operator_itself_copies_no_annotation(team: Team) -> None:
    start = of(team, make_start())
    start["metadata"]["annotations"] = {CREATOR: "whoever", "argocd.argoproj.io/tracking-id": "x"}
    team.apply(start)
    team.until_phase("llama-s1", "Gated")
    (job,) = team.all("trainjobs")
    assert not {CREATOR, "argocd.argoproj.io/tracking-id"} & set(job["metadata"]["annotations"])
