"""Whether the cluster stored the TrainJob that was written (docs/contract.md, Read-back)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from dispatch_operator.api import quantity
from dispatch_operator.api.group import (
    ANNOTATION_GATED_BY,
    LABEL_QUEUE,
    MULTI_KUEUE,
    PATCH_MANAGER,
    TRAINJOB_CONTROLLER,
)
from dispatch_operator.api.models.reading import Path, dotted
from dispatch_operator.api.names import gate_names
from dispatch_operator.api.quoting import LONGEST_QUOTE, escaped, quote, quote_both, shortened

_ABSENT = object()


def differences(
    written: Mapping[str, Any], stored: Mapping[str, Any], *, kueue: bool, may_be_open: bool = False
) -> tuple[str, ...]:
    """Return every path at which a stored TrainJob is not what was written, as ``path: wrote X, read Y``.

    Args:
        written: The body of the create.
        stored: What the API server returns for it.
        kueue: Whether Kueue owns ``spec.suspend``; it must have set it, or it does not handle the job.
        may_be_open: Whether an open gate is no difference.
    """
    return tuple(_differences(_opened(written, stored) if may_be_open else written, stored, kueue=kueue))


def _opened(written: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was written as it is once the gate was opened, where it was."""
    metadata, suspend = _object(written.get("metadata")), _object(stored.get("spec")).get("suspend")
    annotations = dict(_object(metadata.get("annotations")))
    gate = annotations.get(ANNOTATION_GATED_BY)
    if gate is not None:
        if gate in gate_names(_object(_object(stored.get("metadata")).get("annotations")).get(ANNOTATION_GATED_BY)):
            return written
        del annotations[ANNOTATION_GATED_BY]
        if suspend is None:
            # Kueue has never handled it.
            return {**written, "metadata": {**metadata, "annotations": annotations}}
    spec = {**_object(written.get("spec")), "suspend": suspend}
    return {**written, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _differences(written: Mapping[str, Any], stored: Mapping[str, Any], *, kueue: bool) -> Iterator[str]:
    wrote_meta, read_meta = _object(written.get("metadata")), _object(stored.get("metadata"))
    for key in ("labels", "annotations"):
        yield from _included(_object(wrote_meta.get(key)), _object(read_meta.get(key)), ("metadata", key))
    queue = _object(read_meta.get("labels")).get(LABEL_QUEUE)
    if not kueue and queue is not None:
        # Kueue gives it to jobs in a namespace with a LocalQueue named default, and sets spec.suspend from then on.
        path = ("metadata", "labels", LABEL_QUEUE)
        yield _difference(path, _ABSENT, queue) + "; Kueue would open the gate of this job by itself"
    yield from _owners(wrote_meta, read_meta)
    wrote, read = _object(written.get("spec")), _object(stored.get("spec"))
    for key in ("runtimeRef", "trainer", "activeDeadlineSeconds"):
        yield from _compared(wrote.get(key, _ABSENT), read.get(key, _ABSENT), ("spec", key))
    yield from _patch(wrote, read)
    if read.get("managedBy", TRAINJOB_CONTROLLER) != TRAINJOB_CONTROLLER:
        by_others = "; MultiKueue is not supported" if read["managedBy"] == MULTI_KUEUE else ""
        yield _difference(("spec", "managedBy"), _ABSENT, read["managedBy"]) + by_others
    if read.get("suspend") is not True and ("suspend" not in wrote or wrote["suspend"] is not read.get("suspend")):
        by_kueue = "; Kueue does not handle this job" if kueue else ""
        yield _difference(("spec", "suspend"), wrote.get("suspend", _ABSENT), read.get("suspend", _ABSENT)) + by_kueue


def _owners(wrote_meta: Mapping[str, Any], read_meta: Mapping[str, Any]) -> Iterator[str]:
    """Compare the owner references that were written; others may be added."""
    path: Path = ("metadata", "ownerReferences")
    read = {owner.get("uid"): owner for owner in read_meta.get("ownerReferences") or ()}
    for index, owner in enumerate(wrote_meta.get("ownerReferences") or ()):
        yield from _compared(owner, read.get(owner["uid"], _ABSENT), (*path, index))


def _patch(wrote: Mapping[str, Any], read: Mapping[str, Any]) -> Iterator[str]:
    """Compare the patch of dispatch's manager, whose time Trainer stamps; entries of others may be added."""
    path: Path = ("spec", "runtimePatches", f"manager={PATCH_MANAGER}")
    yield from _compared(_own_patch(wrote), _own_patch(read), path)


def _own_patch(spec: Mapping[str, Any]) -> object:
    for patch in spec.get("runtimePatches") or ():
        if patch.get("manager") == PATCH_MANAGER:
            return {key: value for key, value in patch.items() if key != "time"}
    return _ABSENT


def _included(wrote: Mapping[str, Any], read: Mapping[str, Any], path: Path) -> Iterator[str]:
    for key, value in wrote.items():
        if not (key == ANNOTATION_GATED_BY and value in gate_names(read.get(key))):
            # Others may gate the job too; only their names stay when ours is removed.
            yield from _compared(value, read.get(key, _ABSENT), (*path, key))


def _compared(wrote: object, read: object, path: Path) -> Iterator[str]:
    if isinstance(wrote, dict | list) and (text := _as_json(wrote)) is not None and text == _as_json(read):
        return
    if isinstance(wrote, Mapping) and isinstance(read, Mapping):
        for key in sorted({*wrote, *read}):
            yield from _compared(wrote.get(key, _ABSENT), read.get(key, _ABSENT), (*path, key))
    elif isinstance(wrote, list) and isinstance(read, list):
        yield from _lists(wrote, read, path)
    elif not (_is_same(wrote, read) or (_is_quantity(path) and _is_same_quantity(wrote, read))):
        yield _difference(path, wrote, read)


def _as_json(value: object) -> bytes | None:
    """Return a JSON value as text, in which ``true`` is not 1; None where it is none."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, RecursionError):
        return None


def _lists(wrote: list[Any], read: list[Any], path: Path) -> Iterator[str]:
    """Compare lists of named objects by name, so that one more names itself and not all that follow it."""
    wrote_names, read_names = _names(wrote), _names(read)
    if wrote_names is None or read_names is None:
        for index, (one, other) in enumerate(zip_longest(wrote, read, fillvalue=_ABSENT)):
            yield from _compared(one, other, (*path, index))
        return
    others = dict(zip(read_names, read, strict=True))
    for name, item in zip(wrote_names, wrote, strict=True):
        yield from _compared(item, others.get(name, _ABSENT), (*path, f"name={name}"))
    for name in read_names:
        if name not in wrote_names:
            yield from _compared(_ABSENT, others[name], (*path, f"name={name}"))
    if wrote_names != read_names and sorted(wrote_names) == sorted(read_names):
        yield _difference(path, wrote_names, read_names)


def _names(items: Sequence[Any]) -> list[str] | None:
    """Return the names of the items when each has one of its own."""
    names = [item["name"] for item in items if isinstance(item, Mapping) and isinstance(item.get("name"), str)]
    return names if len(set(names)) == len(items) else None


def _is_same(wrote: object, read: object) -> bool:
    """Compare scalars as JSON does: ``true`` is not 1, and ``1`` is ``1.0``."""
    return isinstance(wrote, bool) == isinstance(read, bool) and wrote == read


def _is_quantity(path: Path) -> bool:
    return path[-3:-1] in (("resourcesPerNode", "limits"), ("resourcesPerNode", "requests"))


def _is_same_quantity(wrote: object, read: object) -> bool:
    value = quantity.parse(wrote)
    return value is not None and value == quantity.parse(read)


def _difference(path: Path, wrote: object, read: object) -> str:
    if isinstance(wrote, str) and isinstance(read, str):
        shown = quote_both(wrote, read)
    else:
        shown = _shown(wrote), _shown(read)
    return f"{dotted(path)}: wrote {shown[0]}, read {shown[1]}"


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "nothing"
    if isinstance(value, Mapping | list):
        return escaped(shortened(json.dumps(value, default=str), LONGEST_QUOTE))
    return quote(value)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
