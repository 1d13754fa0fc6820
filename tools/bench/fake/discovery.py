"""What the fake API server says of the APIs that it serves: all that a Start needs, of any content."""

from typing import Any

from dispatch_operator.checks.required_fields import NEEDED

Object = dict[str, Any]


def discovered(path: str) -> Object:
    """Return what is served at a path that leads to no object."""
    if path == "/openapi/v3":
        return {"paths": {f"apis/{api}": {"serverRelativeURL": f"/openapi/v3/apis/{api}?hash=1"} for api in NEEDED}}
    api = path.removeprefix("/openapi/v3/apis/")
    if api in NEEDED:
        return {"components": {"schemas": {kind: _schema(api, kind) for kind in NEEDED[api]}}}
    return {"versions": [], "groups": []}


def _schema(api: str, kind: str) -> Object:
    group, version = api.split("/")
    names = {"group": group, "version": version, "kind": kind}
    return {"x-kubernetes-group-version-kind": [names], "x-kubernetes-preserve-unknown-fields": True}
