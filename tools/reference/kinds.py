"""The pages of the two kinds, from their CRDs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dispatch_operator.api.crds import DEFINITIONS, Definition, crds
from dispatch_operator.api.group import GROUP, VERSION
from reference.markdown import block, code, table
from reference.schema import default_of, limits_of, type_of

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"
EXAMPLES = {"DispatchStart": "start.yaml", "DispatchBackend": "backend.yaml"}

Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """Return a page for each kind."""
    both = zip(DEFINITIONS, crds(), strict=True)
    return {f"{definition.singular}.md": _page(definition, crd) for definition, crd in both}


def _page(definition: Definition, crd: Schema) -> str:
    root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    names = f"{code(definition.plural)}, short {code(definition.short_name)}, in {code(f'{GROUP}/{VERSION}')}"
    columns = ", ".join(column.name for column in definition.columns)
    parts = [
        f"# {definition.kind}",
        f"{root['description']} Its names are {names}; {code('kubectl get')} shows {columns}.\n",
        block((SAMPLES / EXAMPLES[definition.kind]).read_text(), "yaml"),
    ]
    if definition.selectable:
        paths = ", ".join(code(path.removeprefix(".")) for path in definition.selectable)
        parts.append(f"From Kubernetes 1.31 on {code('kubectl get --field-selector')} takes {paths}.\n")
    for name in ("spec", "status"):
        parts += _objects(name, root["properties"][name])
    return "\n".join(parts)


def _objects(path: str, schema: Schema) -> Iterator[str]:
    """Yield a section for an object, and then one for each object inside it."""
    yield f"## {path}"
    yield schema["description"] + "\n"
    required = schema.get("required", ())
    rows = [_row(name, field, required=name in required) for name, field in schema["properties"].items()]
    yield table(("field", "type", "default", "meaning"), rows)
    if rules := [rule["message"] for rule in schema.get("x-kubernetes-validations", ()) if "message" in rule]:
        yield "The API server refuses what breaks one of these rules:\n"
        yield "\n".join(f"- {rule}" for rule in dict.fromkeys(rules)) + "\n"
    for name, field in schema["properties"].items():
        inner = field.get("items", field)
        if "properties" in inner:
            yield from _objects(f"{path}.{name}{'[]' if inner is not field else ''}", inner)


def _row(name: str, field: Schema, *, required: bool) -> tuple[str, ...]:
    default = "required" if required else default_of(field["default"]) if "default" in field else ""
    limits = limits_of(field)
    rules = [rule["message"] for rule in field.get("x-kubernetes-validations", ()) if "message" in rule]
    meaning = field["description"] + (f" ({limits})" if limits else "")
    if rules and "properties" not in field:
        meaning += " Rule: " + "; ".join(dict.fromkeys(rules)) + "."
    return code(name), type_of(field), default, meaning
