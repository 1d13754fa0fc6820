"""Which needed fields an OpenAPI document lacks."""

import copy
from typing import Any

import pytest

from dispatch_operator.checks.required_fields import NEEDED, lacking, needed_apis
from support.builders import make_backend
from support.openapi import document, without
from support.rendering import read_backend

Object = dict[str, Any]
TRAINER, JOBSET, KUEUE = NEEDED


@pytest.mark.parametrize("api", NEEDED)
def test_a_document_that_has_all_lacks_nothing(api: str) -> None:
    assert list(lacking(api, document(api))) == []


@pytest.mark.parametrize(
    ("api", "kind", "path"),
    [(api, kind, path) for api, kinds in NEEDED.items() for kind in kinds for path in kinds[kind]],
)
def test_every_needed_field_is_named_with_kind_and_version_when_it_is_missing(api: str, kind: str, path: str) -> None:
    (told,) = lacking(api, without(document(api), kind, path))
    assert told.startswith(f"{kind} of {api} lacks the field {path}; install ")


def test_a_missing_field_stands_for_all_that_it_holds() -> None:
    held = without(document(TRAINER), "TrainJob", "spec.runtimePatches")
    assert list(lacking(TRAINER, held)) == [
        f"TrainJob of {TRAINER} lacks the field spec.runtimePatches; install Kubeflow Trainer 2.3 or newer"
    ]


def test_every_missing_field_is_named() -> None:
    held = without(document(TRAINER), "TrainJob", "spec.activeDeadlineSeconds")
    held = without(without(held, "TrainJob", "spec.suspend"), "TrainingRuntime", "spec.template")
    assert len(list(lacking(TRAINER, held))) == 3


@pytest.mark.parametrize("held", [None, {}, {"components": {"schemas": {"other": {}}}}])
def test_what_is_not_served_is_named(held: Object | None) -> None:
    told = list(lacking(JOBSET, held))
    assert len(told) == 1
    assert "jobset.x-k8s.io/v1alpha2 is not served; install JobSet 0.12 or newer" in told[0]


def test_another_version_of_a_kind_is_not_the_kind() -> None:
    held = document(JOBSET)
    held["components"]["schemas"]["some.JobSet"]["x-kubernetes-group-version-kind"][0]["version"] = "v1"
    assert len(list(lacking(JOBSET, held))) == 1


@pytest.mark.parametrize(
    "wrap",
    [
        lambda schema: {"type": "array", "items": schema},
        lambda schema: {"default": {}, "allOf": [schema]},
        lambda schema: {"allOf": [{"$ref": "#/components/schemas/elsewhere"}], "description": str(schema)},
        lambda _schema: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        lambda _schema: {"type": "object", "additionalProperties": {"type": "string"}},
    ],
)
def test_lists_references_and_open_objects_are_looked_through(wrap: Any) -> None:
    held = copy.deepcopy(document(JOBSET))
    schemas = held["components"]["schemas"]
    spec = schemas["some.JobSet"]["properties"]["spec"]
    schemas["elsewhere"] = spec
    schemas["some.JobSet"]["properties"]["spec"] = wrap(spec)
    assert list(lacking(JOBSET, held)) == []


def test_a_reference_to_nothing_has_no_fields() -> None:
    held = document(JOBSET)
    held["components"]["schemas"]["some.JobSet"]["properties"]["spec"] = {"$ref": "#/components/schemas/gone"}
    assert all("spec." in told for told in lacking(JOBSET, held))
    assert list(lacking(JOBSET, held))


@pytest.mark.parametrize(
    ("kueue", "want"),
    [(None, (TRAINER, JOBSET)), ({"queue": "q", "admissionCheck": "c"}, (TRAINER, JOBSET, KUEUE))],
)
def test_kueue_is_only_needed_in_kueue_mode(kueue: Object | None, want: tuple[str, ...]) -> None:
    backend = make_backend(**({"kueue": kueue} if kueue else {}))
    assert needed_apis(read_backend(backend)) == want
