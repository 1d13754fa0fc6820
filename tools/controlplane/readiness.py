"""Conditions that say whether a part of the control plane does its work, for a `Waiter` to poll."""

import json
from collections.abc import Iterable
from typing import Any

import yaml

from controlplane import kubectl
from controlplane.api import Api, describe
from controlplane.programs import DATA
from controlplane.site import Site
from controlplane.waiting import Condition

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

# What the API server says when a webhook did not answer, and what a webhook says that can't do its work yet.
NO_VERDICT = ("failed calling webhook", "cache is not started", "conversion webhook", "connection refused")


def server_ready(api: Api) -> Condition:
    """Whether the API server says that it is ready."""

    def condition() -> str | None:
        try:
            api.text("/readyz")
        except OSError as error:
            return describe(error)
        return None

    return condition


def crds_served(api: Api) -> Condition:
    """Whether every CRD is Established and in the discovery, by which garbage collection finds what to watch."""

    def condition() -> str | None:
        try:
            crds = api.get(CRDS)["items"]
            served = _served(api.get("/apis", DISCOVERY))
        except OSError as error:
            return describe(error)
        missing = [crd["metadata"]["name"] for crd in crds if not _established(crd) or _name(crd) not in served]
        return f"not served: {', '.join(missing)}" if missing else None

    return condition


def nodes_ready(api: Api) -> Condition:
    """Whether there are nodes, all Ready and without a taint that keeps pods away."""

    def condition() -> str | None:
        try:
            nodes = api.get("/api/v1/nodes")["items"]
        except OSError as error:
            return describe(error)
        waiting = [node["metadata"]["name"] for node in nodes if not _ready(node) or node["spec"].get("taints")]
        if not nodes:
            return "there are no nodes"
        return f"not Ready or tainted: {', '.join(waiting)}" if waiting else None

    return condition


def accounts_created(api: Api, namespaces: Iterable[str]) -> Condition:
    """Whether the controller manager has given namespaces their default service accounts."""
    waiting = list(namespaces)

    def condition() -> str | None:
        try:
            accounts = api.get("/api/v1/serviceaccounts?fieldSelector=metadata.name%3Ddefault")["items"]
        except OSError as error:
            return describe(error)
        missing = set(waiting) - {account["metadata"]["namespace"] for account in accounts}
        return f"no default service account in {', '.join(sorted(missing))}" if missing else None

    return condition


def webhook_answers(site: Site, controller: str) -> Condition:
    """Whether a controller's webhooks give a verdict on an object, whichever it is."""
    probe = json.dumps(yaml.safe_load((DATA / "probes.yaml").read_text())[controller])

    def condition() -> str | None:
        arguments = ("create", "--dry-run=server", "--validate=false", "-f", "-")
        try:
            kubectl.run(*arguments, input=probe, environment=site.environment)
        except kubectl.KubectlError as error:
            denied = "denied the request" in error.stderr and not any(words in error.stderr for words in NO_VERDICT)
            return None if denied else error.stderr.strip()
        return None

    return condition


def _established(crd: dict[str, Any]) -> bool:
    return _condition(crd, "Established")


def _ready(node: dict[str, Any]) -> bool:
    return _condition(node, "Ready")


def _condition(subject: dict[str, Any], kind: str) -> bool:
    conditions = subject.get("status", {}).get("conditions") or []
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


def _name(crd: dict[str, Any]) -> tuple[str, str]:
    return crd["spec"]["group"], crd["spec"]["names"]["plural"]


def _served(discovery: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (group["metadata"]["name"], resource["resource"])
        for group in discovery["items"]
        for version in group["versions"]
        for resource in version.get("resources") or []
    }
