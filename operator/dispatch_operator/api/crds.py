"""The CustomResourceDefinitions, generated from the models (docs/contract.md, Objects)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dispatch_operator.api.group import GROUP, VERSION
from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.models.backend import Backend, BackendSpec
from dispatch_operator.api.models.base import Model
from dispatch_operator.api.models.start import Start, StartSpec
from dispatch_operator.api.models.status import UNSEEN, BackendStatus, StartStatus, Status

# What pydantic says and a structural schema has no place for; examples are read by people only.
_DROPPED = frozenset({"title", "examples"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    path: str
    type: str = "string"


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind of our group."""

    kind: Kind
    short_name: str
    description: str
    spec: type[Model]
    status: type[Status]
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    """The paths that ``kubectl get --field-selector`` takes, from Kubernetes 1.31 on; older ones ignore them."""

    @property
    def singular(self) -> str:
        """The name of one in the API's paths."""
        return self.kind.lower()

    @property
    def plural(self) -> str:
        """The name of many in the API's paths."""
        return f"{self.singular}s"


def _ready(what: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{what}'


AGE = Column("Age", ".metadata.creationTimestamp", "date")

DEFINITIONS = (
    Definition(
        Kind.DISPATCH_START,
        "dstart",
        (Start.__doc__ or "").strip(),
        StartSpec,
        StartStatus,
        (
            Column("Phase", ".status.phase"),
            Column("Job", ".spec.request.job"),
            Column("Submission", ".spec.request.submission", "integer"),
            Column("TrainJob", ".status.reference.name"),
            Column("Reason", _ready("reason")),
            AGE,
        ),
        (".spec.request.job", ".spec.request.submission", ".status.phase"),
    ),
    Definition(
        Kind.DISPATCH_BACKEND,
        "dbackend",
        (Backend.__doc__ or "").strip(),
        BackendSpec,
        BackendStatus,
        (
            Column("State", ".spec.state"),
            Column("Queue", ".spec.kueue.queue"),
            Column("Ready", _ready("status")),
            Column("Reason", _ready("reason")),
            AGE,
        ),
    ),
)


def crds() -> tuple[dict[str, Any], ...]:
    """Return the CustomResourceDefinitions to apply, as structural schemas."""
    return tuple(_crd(definition) for definition in DEFINITIONS)


def _crd(definition: Definition) -> dict[str, Any]:
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root(definition)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path} for column in definition.columns
        ],
    }
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": str(definition.kind),
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.singular,
                "shortNames": [definition.short_name],
            },
            "versions": [version],
        },
    }


def _root(definition: Definition) -> dict[str, Any]:
    return {
        "description": definition.description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}"},
            "kind": {"type": "string", "description": str(definition.kind)},
            "metadata": {"type": "object"},
            "spec": _structural(definition.spec, definition.spec.model_json_schema(by_alias=True)),
            "status": {
                **_structural(definition.status, _without_defaults(msgspec.json.schema(definition.status))),
                "default": {"observedGeneration": UNSEEN},
            },
        },
    }


def _structural(model: type[object], schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.pop("$defs", {})
    resolved = _resolved(schema, definitions)
    return {**resolved, "description": (model.__doc__ or "").strip()}


def _without_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave the defaults out, which only a spec has: what a status lacks is not known."""
    for definition in schema["$defs"].values():
        if not definition.get("required", True):
            del definition["required"]
        for value in definition.get("properties", {}).values():
            value.pop("default", None)
    return schema


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references, without the null of optional fields, and without titles."""
    merged = dict(schema)
    if "$ref" in merged:
        merged = {**definitions[merged.pop("$ref").removeprefix("#/$defs/")], **merged}
    if "anyOf" in merged:
        (some,) = (one for one in merged.pop("anyOf") if one != {"type": "null"})
        merged = {**some, **merged}
        return _resolved(merged, definitions)
    if merged.get("type") == "integer":
        merged["format"] = "int64"
    kept = (key for key in sorted(merged, key=_place) if key not in _DROPPED)
    return {
        key: _resolved_value(key, merged[key], definitions)
        for key in kept
        if not (key == "default" and merged[key] is None)
    }


def _place(key: str) -> tuple[int, str]:
    """Put what a reader looks for first."""
    first = ("description", "type", "default", "enum", "required")
    return (first.index(key), "") if key in first else (len(first), key)


def _resolved_value(key: str, value: Any, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401 - part of a schema
    if key == "properties":
        return {name: _resolved(schema, definitions) for name, schema in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _resolved(value, definitions)
    return value


def file_name(crd: Mapping[str, Any]) -> str:
    """Return the name of the file that holds a CRD, as controller-gen would call it."""
    return f"{GROUP}_{crd['spec']['names']['plural']}.yaml"
