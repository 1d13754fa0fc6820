"""What Argo CD makes of an object: the health check that deploy/gitops has for it, run in Lua itself."""

import json
from pathlib import Path
from typing import Any

import yaml
from lupa import LuaRuntime

CONFIG = Path(__file__).parents[2] / "deploy" / "gitops" / "argo-cd" / "argocd-cm.yaml"
PREFIX = "resource.customizations.health.dispatch.phpboyscout.uk_"


def checks() -> dict[str, str]:
    """Return the text of the check of each kind."""
    return {key.removeprefix(PREFIX): text for key, text in yaml.safe_load(CONFIG.read_text())["data"].items()}


def health(obj: dict[str, Any]) -> tuple[str, str]:
    """Return the status and the message that Argo CD shows."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    # The library takes an object that is there twice for a loop, which JSON does not know.
    table = lua.table_from(json.loads(json.dumps(obj)), recursive=True)
    shown: Any = lua.execute(f"local obj = ...\n{checks()[obj['kind']]}", table)
    return shown["status"], shown["message"]
