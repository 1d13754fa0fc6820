"""Objects as text that every reader reads back exactly."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from dispatch_operator.documents.scalars import FALSE, NULL, TRUE

# A string that no reader of YAML 1.1 or 1.2 takes for anything else; others are quoted.
_PLAIN = re.compile(r"[A-Za-z/_][-A-Za-z0-9/_.:=@+$()]*(?: [A-Za-z0-9/_=@+$()][-A-Za-z0-9/_.:=@+$()]*)*(?<!:)")
_WORDS = TRUE | FALSE | NULL
_LITERAL = re.compile(r"[!-~](?:[ -~]*[!-~])?\n(?:(?:[ -~]*[!-~])?\n)*[ -~]*[!-~]\n?|[!-~](?:[ -~]*[!-~])?\n")


class _Dumper(yaml.SafeDumper):
    """Block style, strings quoted whenever any reader could take them for something else."""

    def ignore_aliases(self, data: object) -> bool:
        """Write equal parts out; a reader should not have to look for anchors."""
        del data
        return True


def _represented(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if _LITERAL.fullmatch(text):
        style: str | None = "|"
    else:
        style = None if _PLAIN.fullmatch(text) and text not in _WORDS else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represented)


def to_yaml(*documents: Mapping[str, Any]) -> str:
    """Return documents as one YAML stream, in ASCII, that YAML 1.1 and 1.2 readers read back exactly."""
    many = len(documents) > 1
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=sys.maxsize, explicit_start=many)


def to_json(*documents: Mapping[str, Any]) -> str:
    """Return documents as a JSON List, in ASCII."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    return json.dumps(listed, indent=2) + "\n"
