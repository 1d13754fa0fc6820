"""What the chart renders, without a cluster."""

import tomllib
from typing import Any

import pytest
import yaml

from dispatch_operator.kube.leader_election import Lease
from support.chart import CHART, ROOT, HelmError, Object, helm, of_kind, render

NAMESPACE = "dispatch"
SERVED = ["team-a", "team-b"]
READ = ("get", "list", "watch")
RIGHTS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def names(objects: list[Object]) -> list[tuple[str, str | None, str]]:
    return sorted(
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in objects
        if one["kind"] in RIGHTS and not aggregates(one)
    )


def rules(role: Object) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def only(objects: list[Object], kind: str) -> Object:
    (one,) = (one for one in of_kind(objects, kind) if not aggregates(one))
    return one


def aggregates(obj: Object) -> list[str]:
    """Return which of Kubernetes' roles gets what this one may."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    return [label.removeprefix(prefix) for label in obj["metadata"].get("labels", {}) if label.startswith(prefix)]


@pytest.mark.parametrize(
    "values", ["", "namespaces={team-a,team-b}", "serviceAccount.create=false", "rbac.create=false"]
)
def test_helm_finds_nothing_to_say(values: str) -> None:
    printed = helm("lint", "--strict", "--quiet", str(CHART), "--set", values)
    assert "[WARNING]" not in printed
    assert "[ERROR]" not in printed


def test_the_crds_are_the_generated_ones() -> None:
    generated = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert generated
    assert crds_of({"crds": {"keep": False}}) == generated
    assert crds_of({"crds": {"install": False}}) == []
    kept = crds_of({})
    for crd in kept:
        assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert kept == generated


def test_chart_and_image_bear_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
    image = only(render(namespace=NAMESPACE), "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"dispatch-operator:{version}"


LEASE = [(kind, NAMESPACE, "dispatch-operator-lease") for kind in ("Role", "RoleBinding")]


def test_the_operator_takes_the_lease_that_it_may_take() -> None:
    objects = render(namespace=NAMESPACE)
    assert f"--lease={NAMESPACE}/dispatch-operator" in arguments(objects)
    named = [rule for rule in only(objects, "Role")["rules"] if "resourceNames" in rule]
    assert [rule["resourceNames"] for rule in named] == [["dispatch-operator"]]


def test_shards_share_a_lease_and_each_has_one_more_that_only_it_may_take() -> None:
    taken = []
    for release, selector in (("one", "shard=a"), ("dispatch-operator", "shard notin (a, b)")):
        objects = render(namespace=NAMESPACE, release=release, values={"selector": selector})
        assert f"--selector={selector}" in arguments(objects)
        assert f"--lease={NAMESPACE}/dispatch-operator" in arguments(objects)
        (named,) = (rule["resourceNames"] for rule in only(objects, "Role")["rules"] if "resourceNames" in rule)
        lease = Lease(NAMESPACE, "dispatch-operator", "anybody")
        assert named == [lease.name, lease.of_shard(selector).name]
        taken.append(named[1])
    assert len({*taken}) == len(taken)


def test_the_lease_of_a_shard_has_a_name_that_the_operator_takes() -> None:
    objects = render(namespace=NAMESPACE, values={"selector": "shard=a", "nameOverride": "n" * 63})
    (named,) = (rule["resourceNames"] for rule in only(objects, "Role")["rules"] if "resourceNames" in rule)
    assert max(map(len, named)) <= 63


def test_the_whole_cluster_is_served_by_default() -> None:
    objects = render(namespace=NAMESPACE)
    name = "dispatch:dispatch-operator"
    assert names(objects) == [("ClusterRole", None, name), ("ClusterRoleBinding", None, name), *LEASE]
    assert arguments(objects)[:2] == ["run", "--all-namespaces"]


def test_named_namespaces_get_a_binding_each_and_nothing_else_is_seen_of_the_cluster() -> None:
    objects = render(namespace=NAMESPACE, values={"namespaces": SERVED})
    name = "dispatch:dispatch-operator"
    namespaced = f"{name}-namespaced"
    assert names(objects) == [
        ("ClusterRole", None, name),
        ("ClusterRole", None, namespaced),
        ("ClusterRoleBinding", None, name),
        *LEASE,
        ("RoleBinding", "team-a", namespaced),
        ("RoleBinding", "team-b", namespaced),
    ]
    runtimes = ("trainer.kubeflow.org", "clustertrainingruntimes")
    queues = {
        ("kueue.x-k8s.io", resource, "get")
        for resource in ("clusterqueues", "admissionchecks", "workloadpriorityclasses")
    }
    (whole,) = (one for one in of_kind(objects, "ClusterRole") if one["metadata"]["name"] == name)
    assert rules(whole) == {(*runtimes, verb) for verb in READ} | queues | {("", "namespaces", "get")}
    assert [rule["resourceNames"] for rule in whole["rules"] if "resourceNames" in rule] == [SERVED]
    assert arguments(objects)[:3] == ["run", "--namespace=team-a", "--namespace=team-b"]


def test_the_rights_in_a_namespace_are_those_in_the_cluster_but_for_being_a_checks_controller() -> None:
    whole = rules(only(render(namespace=NAMESPACE), "ClusterRole"))
    parts = render(namespace=NAMESPACE, values={"namespaces": SERVED})
    kueue = "kueue.x-k8s.io"
    checks = {
        (kueue, "admissionchecks", "list"),
        (kueue, "admissionchecks", "watch"),
        (kueue, "admissionchecks/status", "patch"),
        (kueue, "workloads/status", "patch"),
    }
    given = {right for role in of_kind(parts, "ClusterRole") if not aggregates(role) for right in rules(role)}
    assert whole - given == checks
    # Of what has no namespace it may ask of those that it serves whether they exist.
    assert given - whole == {("", "namespaces", "get")}


def test_whoever_makes_a_namespace_may_bind_the_rights_in_it() -> None:
    objects = render(namespace=NAMESPACE, values={"namespaces": SERVED, "rbac": {"bindNamespaces": False}})
    assert ("ClusterRole", None, "dispatch:dispatch-operator-namespaced") in names(objects)
    assert [one for one in names(objects) if one[0] == "RoleBinding"] == [LEASE[1]]


def test_every_binding_is_to_the_account_of_the_pod() -> None:
    for values in ({}, {"namespaces": SERVED}, {"serviceAccount": {"create": False, "name": "mine"}}):
        objects = render(namespace=NAMESPACE, release="mine", values=values)
        account = only(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
        bindings = [one for one in objects if one["kind"].endswith("Binding")]
        assert bindings
        for binding in bindings:
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
            assert binding["roleRef"]["name"] == binding["metadata"]["name"]
            roles = [(one["kind"], one["metadata"].get("namespace")) for one in objects if named_as(one, binding)]
            assert (binding["roleRef"]["kind"], None) in roles or ("Role", binding["metadata"]["namespace"]) in roles


def named_as(role: Object, binding: Object) -> bool:
    return not role["kind"].endswith("Binding") and role["metadata"]["name"] == binding["roleRef"]["name"]


def test_releases_of_one_name_in_two_namespaces_do_not_share_an_object() -> None:
    one, other = (names(render(namespace=name, values={"namespaces": SERVED})) for name in ("first", "second"))
    assert set(one).isdisjoint(other)


def test_only_the_pod_gets_a_token() -> None:
    objects = render(namespace=NAMESPACE)
    assert only(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    assert only(objects, "Deployment")["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


def test_the_pod_may_do_nothing_that_it_does_not_need() -> None:
    pod = only(render(namespace=NAMESPACE), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_every_probe_asks_where_the_operator_answers() -> None:
    (container,) = only(render(namespace=NAMESPACE), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "health", "containerPort": 8080}]
    assert "--health=0.0.0.0:8080" in container["args"]
    for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "health"}


def test_an_account_of_ones_own_is_not_made() -> None:
    nothing = {"serviceAccount": {"create": False}, "rbac": {"create": False}, "crds": {"install": False}}
    objects = render(namespace=NAMESPACE, values=nothing)
    assert [one["kind"] for one in objects] == ["Service", "Deployment", "Pod"]
    assert objects[1]["spec"]["template"]["spec"]["serviceAccountName"] == "default"


def test_every_value_arrives() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    objects = render(
        namespace=NAMESPACE,
        values={
            "image": {"repository": "registry.example/op", "tag": "x", "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "registry"}],
            "logFormat": "text",
            "selector": "!shard",
            "serviceAccount": {"name": "mine", "annotations": {"a": "b"}},
            "terminationGracePeriodSeconds": 7,
            "podSecurityContext": {"runAsUser": None},
            "podAnnotations": {"c": "d"},
            "podLabels": {"e": "f"},
            "priorityClassName": "high",
            "nodeSelector": {"g": "h"},
            "tolerations": [toleration],
            "affinity": {"nodeAffinity": {}},
            "resources": {"limits": {"memory": "1Gi"}},
            "fullnameOverride": "renamed",
        },
    )
    account = only(objects, "ServiceAccount")["metadata"]
    assert (account["name"], account["annotations"]) == ("mine", {"a": "b"})
    deployment = only(objects, "Deployment")
    assert deployment["metadata"]["name"] == "renamed"
    template = deployment["spec"]["template"]
    assert template["metadata"]["annotations"] == {"c": "d"}
    assert template["metadata"]["labels"]["e"] == "f"
    pod = template["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/op:x", "Always")
    assert "--log-format=text" in container["args"]
    assert "--selector=!shard" in container["args"]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["terminationGracePeriodSeconds"] == 7
    assert "runAsUser" not in pod["securityContext"]
    assert pod["priorityClassName"] == "high"
    assert pod["nodeSelector"] == {"g": "h"}
    assert pod["tolerations"] == [toleration]
    assert pod["affinity"] == {"nodeAffinity": {}}


def test_an_image_is_named_by_its_digest() -> None:
    digest = f"sha256:{'0' * 64}"
    (container,) = pod_of({"image": {"repository": "registry.example/op", "tag": "x", "digest": digest}})["containers"]
    assert container["image"] == f"registry.example/op@{digest}"


def test_what_the_chart_has_no_value_for_is_appended() -> None:
    volume = {"name": "ca", "configMap": {"name": "ca"}}
    mount = {"name": "ca", "mountPath": "/etc/ca"}
    env = {"name": "SSL_CERT_FILE", "value": "/etc/ca/ca.crt"}
    extra = {"extraVolumes": [volume], "extraVolumeMounts": [mount], "extraEnv": [env], "extraArgs": ["--x"]}
    pod = pod_of({**extra, "logLevel": "debug", "dnsPolicy": "Default"})
    (container,) = pod["containers"]
    assert (pod["volumes"], container["volumeMounts"], container["env"]) == ([volume], [mount], [env])
    assert container["args"][-2:] == ["--verbose", "--x"]
    assert pod["dnsPolicy"] == "Default"


def test_the_test_asks_the_service_whether_the_operator_is_ready() -> None:
    values = {"openshift": True, "imagePullSecrets": [{"name": "registry"}], "commonLabels": {"team": "ml"}}
    objects = render(namespace=NAMESPACE, release="mine", values=values)
    pod, deployment, service = (only(objects, kind) for kind in ("Pod", "Deployment", "Service"))
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["check-operator", f"{service['metadata']['name']}.{NAMESPACE}.svc:8080"]
    # It is the operator's own image, held as the operator is, and neither selected as one nor given a token.
    template = deployment["spec"]["template"]["spec"]
    for key in ("image", "imagePullPolicy", "securityContext"):
        assert container[key] == template["containers"][0][key]
    assert pod["spec"]["securityContext"] == template["securityContext"]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    # Without a Service nobody could be asked.
    assert of_kind(render(namespace=NAMESPACE, values={"metrics": {"service": False}}), "Pod") == []


def test_two_operators_are_spread_and_evicted_one_at_a_time() -> None:
    zones = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    objects = render(namespace=NAMESPACE, values={"replicas": 2, "topologySpreadConstraints": [zones]})
    spec = only(objects, "Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["topologySpreadConstraints"] == [{**zones, "labelSelector": spec["selector"]}]
    assert only(objects, "PodDisruptionBudget")["spec"] == {"maxUnavailable": 1, "selector": spec["selector"]}
    assert of_kind(render(namespace=NAMESPACE), "PodDisruptionBudget") == []


def test_a_cluster_that_assigns_users_is_asked_for_none() -> None:
    context = pod_of({"openshift": True})["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_every_object_bears_the_common_labels() -> None:
    everything = {"replicas": 2, "networkPolicy": {"enabled": True}, "namespaces": SERVED}
    objects = render(namespace=NAMESPACE, values={**everything, "commonLabels": {"team": "ml"}})
    made = [one for one in objects if one["kind"] != "CustomResourceDefinition"]
    assert {one["metadata"]["labels"].get("team") for one in made} == {"ml"}
    deployment = only(objects, "Deployment")["spec"]
    assert deployment["template"]["metadata"]["labels"]["team"] == "ml"
    assert "team" not in deployment["selector"]["matchLabels"]


def test_the_network_policy_lets_in_the_probes_and_out_to_names_and_the_api_server() -> None:
    asks = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    values = {"networkPolicy": {"enabled": True, "from": [asks], "apiServerPorts": [16443]}}
    objects = render(namespace=NAMESPACE, values=values)
    policy = only(objects, "NetworkPolicy")["spec"]
    (of_the_test,) = policy["ingress"][0]["from"][1:]
    assert of_the_test == {"podSelector": {"matchLabels": only(objects, "Pod")["metadata"]["labels"]}}
    assert policy["ingress"] == [{"ports": [{"port": "health", "protocol": "TCP"}], "from": [asks, of_the_test]}]
    (out,) = policy["egress"]
    assert [(one["port"], one["protocol"]) for one in out["ports"]] == [(53, "UDP"), (53, "TCP"), (16443, "TCP")]


@pytest.mark.parametrize("served", [[], SERVED])
def test_the_rights_to_kueue_are_given_only_when_wanted(served: list[str]) -> None:
    with_kueue, without = (
        {
            group
            for one in render(namespace=NAMESPACE, values={"namespaces": served, "kueue": {"enabled": enabled}})
            if one["kind"] in {"Role", "ClusterRole"}
            for group, _, _ in rules(one)
        }
        for enabled in (True, False)
    )
    assert with_kueue - without == {"kueue.x-k8s.io"}


def test_kubernetes_own_roles_get_what_their_names_say() -> None:
    given = {
        role: rules(one) for one in of_kind(render(namespace=NAMESPACE), "ClusterRole") for role in aggregates(one)
    }
    group, write = "dispatch.phpboyscout.uk", ("create", "update", "patch", "delete", "deletecollection")
    assert given == {
        "view": {(group, kind, verb) for kind in ("dispatchstarts", "dispatchbackends") for verb in READ},
        "edit": {(group, "dispatchstarts", verb) for verb in write},
        "admin": {(group, "dispatchbackends", verb) for verb in write},
    }
    silent = render(namespace=NAMESPACE, values={"rbac": {"aggregate": False}})
    assert not any(aggregates(one) for one in silent)


def test_a_parent_chart_may_switch_it_by_its_usual_words() -> None:
    assert render(namespace=NAMESPACE, values={"enabled": True, "global": {"x": 1}}) == render(namespace=NAMESPACE)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"logLevel": "trace"}, "/logLevel"),
        ({"networkPolicy": {"apiServerPorts": [0]}}, "/networkPolicy/apiServerPorts/0"),
        ({"namespace": "team-a"}, "namespace"),
        ({"image": {"tags": "x"}}, "tags"),
        ({"serviceAccount": {"create": "no"}}, "/serviceAccount/create"),
        ({"namespaces": "team-a"}, "/namespaces"),
        ({"namespaces": ["team-a", "team-a"]}, "/namespaces"),
        ({"namespaces": ["Team A"]}, "/namespaces/0"),
        ({"logFormat": "xml"}, "/logFormat"),
        ({"selector": "shard: a"}, "/selector"),
        ({"selector": {"shard": "a"}}, "/selector"),
        ({"podLabels": {"a": 1}}, "/podLabels/a"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(HelmError, match=f"'{named}'"):
        render(namespace=NAMESPACE, values=values)


def test_the_schema_knows_every_value_of_the_file() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(schema["properties"]) - {"global", "enabled"} == set(values)
    for key, inner in schema["properties"].items():
        if "properties" in inner:
            assert set(inner["properties"]) == set(values[key]), key


def crds_of(values: dict[str, Any]) -> list[Object]:
    found = of_kind(render(namespace=NAMESPACE, values=values), "CustomResourceDefinition")
    return sorted(found, key=lambda crd: str(crd["metadata"]["name"]))


def pod_of(values: dict[str, Any]) -> Object:
    pod: Object = only(render(namespace=NAMESPACE, values=values), "Deployment")["spec"]["template"]["spec"]
    return pod


def arguments(objects: list[Object]) -> list[str]:
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    args: list[str] = container["args"]
    return args
