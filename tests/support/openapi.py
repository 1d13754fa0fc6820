"""OpenAPI documents that have just what the operator needs, and documents that lack a field."""

import copy
from typing import Any

from dispatch_operator.checks.required_fields import NEEDED

Object = dict[str, Any]


def served() -> dict[str, Object]:
    """Return a document for each API version that the operator needs."""
    return {api: document(api) for api in NEEDED}


def document(api: str) -> Object:
    """Return a document that has all that is needed of an API version."""
    group, version = api.split("/")
    schemas: Object = {}
    for kind, paths in NEEDED[api].items():
        schema: Object = {"x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}]}
        for path in paths:
            at = schema
            for step in path.split("."):
                at = at.setdefault("properties", {}).setdefault(step, {})
        schemas[f"some.{kind}"] = schema
    return {"components": {"schemas": schemas}}


def without(held: Object, kind: str, path: str) -> Object:
    """Return a document that lacks a field."""
    made = copy.deepcopy(held)
    *outer, last = path.split(".")
    at = made["components"]["schemas"][f"some.{kind}"]
    for step in outer:
        at = at["properties"][step]
    del at["properties"][last]
    return made
