"""The objects that the control plane itself is installed with."""

import base64
import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from controlplane.ports import LOOPBACK
from controlplane.site import Site

Manifest: TypeAlias = dict[str, Any]

NAMESPACES = {"trainer": "kubeflow-system", "jobset": "jobset-system", "kueue": "kueue-system"}
CRD = "CustomResourceDefinition"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def namespaces(controllers: Iterable[str]) -> list[Manifest]:
    """The namespaces that controllers expect to be installed in."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACES[controller]}}
        for controller in controllers
    ]


def crds(site: Site, controllers: Iterable[str]) -> list[Manifest]:
    """The controllers' CRDs, converted between versions by the controllers on loopback, and altered as wanted."""
    found = []
    for controller in controllers:
        for crd in _of_kind(site, controller, CRD):
            conversion = crd["spec"].get("conversion", {}).get("webhook")
            if conversion:
                conversion["clientConfig"] = _on_loopback(site, controller, conversion["clientConfig"])
            site.variation.alter_crds(crd)
            found.append(crd)
    return found


def webhooks(site: Site, controllers: Iterable[str]) -> list[Manifest]:
    """The controllers' webhook configurations, called on loopback."""
    found = []
    for controller in controllers:
        for configuration in _of_kind(site, controller, *WEBHOOKS):
            # JobSet and Kueue use the same names, which their overlays prefix.
            configuration["metadata"]["name"] = f"{controller}-{configuration['metadata']['name']}"
            for webhook in configuration["webhooks"]:
                webhook["clientConfig"] = _on_loopback(site, controller, webhook["clientConfig"])
            found.append(configuration)
    return found


def as_list(objects: list[Manifest]) -> str:
    """Objects in one List, as kubectl reads it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _of_kind(site: Site, controller: str, *kinds: str) -> list[Manifest]:
    return [manifest for manifest in site.controllers.manifests(controller) if manifest["kind"] in kinds]


def _on_loopback(site: Site, controller: str, client_config: Manifest) -> Manifest:
    path = client_config["service"]["path"]
    return {
        "url": f"https://{LOOPBACK}:{site.ports.webhook(controller)}{path}",
        "caBundle": base64.b64encode(site.authority.pem).decode(),
    }
