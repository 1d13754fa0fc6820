"""What docs/security.md says of the operator's account is what the chart gives it, neither more nor less."""

import re
from collections.abc import Iterator

import pytest

from support.chart import ROOT, Object, of_kind, render

SERVED = ["team-a", "team-b"]
Right = tuple[str, str]
"""A resource, with its subresource, and a verb."""


def tables() -> dict[str, set[Right]]:
    """Return the rights in each table of docs/security.md, by the table's heading."""
    found: dict[str, set[Right]] = {}
    heading = ""
    for line in (ROOT / "docs" / "security.md").read_text().splitlines():
        match line.strip("| ").split(" | "):
            case [heading, "verbs"]:
                found[heading] = set()
            case [what, verbs] if heading in found and "`" in what:
                found[heading] |= {(one, verb) for one in re.findall("`([^`]+)`", what) for verb in verbs.split(", ")}
    return found


def rights(roles: list[Object]) -> set[Right]:
    return {
        (resource, verb)
        for role in roles
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def roles(*, served: list[str]) -> Iterator[Object]:
    values = {"namespaces": served, "rbac": {"aggregate": False}}
    objects = render(namespace="dispatch", values=values)
    yield from (*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role"))


@pytest.mark.parametrize(
    ("served", "headings"),
    [([], "of the cluster, when it serves all of it"), (SERVED, "of the cluster, when it serves named namespaces")],
)
def test_the_account_has_the_rights_that_the_page_says(served: list[str], headings: str) -> None:
    told = tables()
    common = ("in each namespace that it serves", "of the cluster", "in its own namespace, for its Lease")
    assert rights([*roles(served=served)]) == set().union(*(told[heading] for heading in (*common, headings)))


def test_in_the_namespaces_that_it_serves_it_has_those_of_the_first_table_and_no_binding_elsewhere() -> None:
    (namespaced,) = (role for role in roles(served=SERVED) if role["metadata"]["name"].endswith("-namespaced"))
    assert rights([namespaced]) == tables()["in each namespace that it serves"]
    bindings = of_kind(render(namespace="dispatch", values={"namespaces": SERVED}), "RoleBinding")
    bound = [
        one["metadata"]["namespace"] for one in bindings if one["roleRef"]["name"] == namespaced["metadata"]["name"]
    ]
    assert bound == SERVED


def test_what_it_has_no_right_on_stands_in_no_rule() -> None:
    given = rights([*roles(served=[]), *roles(served=SERVED)])
    resources = {resource for resource, _ in given}
    never = {"secrets", "configmaps", "nodes", "customresourcedefinitions", "pods/log", "pods/exec", "serviceaccounts"}
    assert not resources & never
    assert not {resource for resource in resources if "role" in resource}
    assert "*" not in {part for right in given for part in right}
    assert {verb for resource, verb in given if resource == "pods"} == {"list"}
    own = {"dispatchstarts", "dispatchbackends"}
    assert not {verb for resource, verb in given if resource in own} & {"create", "update", "patch", "delete"}


def test_of_named_objects_it_may_only_use_those() -> None:
    named = {
        (resource, name)
        for role in roles(served=SERVED)
        for rule in role["rules"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert named == {("leases", "dispatch-operator"), *(("namespaces", name) for name in SERVED)}


def test_without_kueue_it_has_none_of_its_rights() -> None:
    objects = render(namespace="dispatch", values={"kueue": {"enabled": False}, "rbac": {"aggregate": False}})
    groups = {group for one in of_kind(objects, "ClusterRole") for rule in one["rules"] for group in rule["apiGroups"]}
    assert "kueue.x-k8s.io" not in groups
