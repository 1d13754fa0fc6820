"""The page of the chart's values, from values.yaml, its comments, and values.schema.json."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from reference.markdown import block, code, table
from reference.schema import default_of, limits_of, type_of

CHART = Path(__file__).parents[2] / "deploy" / "chart" / "dispatch-operator"
INTRODUCTION = """\
What `helm install --set` and `--values` take. A key that is not listed here is refused. For example:

```
helm upgrade --install dispatch-operator deploy/chart/dispatch-operator --namespace dispatch-system \\
  --create-namespace --set image.repository=registry.example/dispatch-operator --set replicas=2
```
"""

Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """Return the one page."""
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    root = yaml.compose(text, yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise TypeError("values.yaml holds no mapping")
    values = list(_values(root, schema, schema["definitions"], text.splitlines(), ""))
    rows = [(path, kind, "see below" if "\n" in value else value, meaning) for path, kind, value, meaning in values]
    long = [f"The default of {path}:\n\n{value}" for path, _, value, _ in values if "\n" in value]
    shown = table(("value", "type", "default", "meaning"), rows)
    return {"chart-values.md": "\n".join(["# Values of the chart", INTRODUCTION, shown, *long])}


def _values(
    node: yaml.MappingNode, schema: Schema, definitions: Schema, lines: Sequence[str], path: str
) -> Iterator[tuple[str, str, str, str]]:
    """Yield path, type, default and meaning of each value that can be set."""
    for key, value in node.value:
        part = _resolved(schema["properties"][key.value], definitions)
        meaning = _comment(lines, key.start_mark.line)
        name = f"{path}{key.value}"
        if isinstance(value, yaml.MappingNode) and value.value and "properties" in part:
            if meaning:
                yield code(name), "", "", meaning
            yield from _values(value, part, definitions, lines, f"{name}.")
        else:
            yield code(name), type_of(part), _default(value), " ".join(filter(None, (meaning, _limits(part))))


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    return definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _limits(schema: Schema) -> str:
    limits = limits_of(schema)
    return f"({limits})" if limits else ""


def _comment(lines: Sequence[str], line: int) -> str:
    """Return the comment that ends just above a line."""
    found: list[str] = []
    while line and (comment := re.fullmatch(r"\s*# ?(.*)", lines[line - 1])):
        found.insert(0, comment[1])
        line -= 1
    return " ".join(found)


def _default(node: yaml.Node) -> str:
    value = yaml.SafeLoader("").construct_object(node, deep=True)
    if isinstance(value, dict) and value:
        return block(yaml.safe_dump(value, sort_keys=False), "yaml")
    return default_of(value)
