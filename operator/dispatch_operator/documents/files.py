"""The one object that a file holds (docs/contract.md, Files and exit codes)."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dispatch_operator.api.quoting import quote
from dispatch_operator.documents.error import DocumentError, DuplicateKeyError
from dispatch_operator.documents.json_text import json_document
from dispatch_operator.documents.yaml_text import yaml_documents

STDIN = "-"
_TEMPLATE = re.compile(r"\$\{[^}\n]*\}|\{\{[^\n]*?\}\}")
"""What envsubst and Helm put a value in the place of."""


def read_object(source: str, api_version: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Read the one object of a YAML or JSON file, or of standard input; an empty namespace or UID is absent.

    Raises:
        DocumentError: it can't be read, is not exactly one object of these kinds, or its identity has a wrong type.
    """
    return parse_object(source, read_text(source), api_version, kinds)


def parse_object(source: str, text: str, api_version: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Return the one object that the text of a file holds, as `read_object` does.

    Raises:
        DocumentError: it is not exactly one object of these kinds, or its identity has a wrong type.
    """
    document = _only_document(source, text)
    if document.get("apiVersion") != api_version or document.get("kind") not in kinds:
        found = f"{quote(document.get('kind'))} of {quote(document.get('apiVersion'))}"
        raise DocumentError(f"{source}: must be a {' or '.join(kinds)} of {api_version}, not {found}")
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise DocumentError(f"{source}: metadata.name must be a string")
    for key in ("namespace", "uid"):
        if not isinstance(metadata.get(key, ""), str | None):
            raise DocumentError(f"{source}: metadata.{key} must be a string, not {quote(metadata[key])}")
    if type(metadata.get("generation", 0)) not in (int, type(None)):
        raise DocumentError(f"{source}: metadata.generation must be an integer, not {quote(metadata['generation'])}")
    # The API server, too, takes an empty one for absent.
    stated = {key: value for key, value in metadata.items() if key not in ("namespace", "uid") or value}
    return {**document, "metadata": stated}


def read_text(source: str) -> str:
    """Return the text of a file or of standard input.

    Raises:
        DocumentError: it can't be read, or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DocumentError(f"{source}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{source}: is not UTF-8, at byte {error.start}") from error


def _only_document(source: str, text: str) -> dict[str, Any]:
    try:
        documents = [document for document in _rendered_documents(source, text) if document is not None]
    except RecursionError as error:
        raise DocumentError(f"{source}: is nested too deeply") from error
    if len(documents) != 1:
        raise DocumentError(f"{source}: must hold one object, not {len(documents)}")
    (document,) = documents
    if not isinstance(document, dict):
        raise DocumentError(f"{source}: must hold an object, not {quote(document)}")
    return document


def _rendered_documents(source: str, text: str) -> Iterator[Any]:
    """Yield the documents; one that does not parse is perhaps a template, and then is told so."""
    try:
        yield from _documents(source, text)
    except DuplicateKeyError:
        raise
    except DocumentError as error:
        if (found := _TEMPLATE.search(text)) is None:
            raise
        line = text.count("\n", 0, found.start()) + 1
        hint = f"line {line} has {quote(found[0])}: it looks like a template, which must be rendered first"
        raise DocumentError(f"{error}; {hint}") from error


def _documents(source: str, text: str) -> Iterator[Any]:
    """Yield the documents; what begins like JSON is read as JSON, and as YAML when it is none."""
    if not text.lstrip().startswith("{"):
        yield from yaml_documents(source, text)
        return
    try:
        yield json_document(source, text)
    except json.JSONDecodeError as error:
        yield from _yaml_like_json(source, text, error)


def _yaml_like_json(source: str, text: str, error: json.JSONDecodeError) -> Iterator[Any]:
    """Yield the documents of a text that begins like JSON and is none, or say in JSON's words what is wrong."""
    told = DocumentError(f"{source}:{error.lineno}:{error.colno}: {error.msg}")
    if error.msg == "Extra data":
        told = DocumentError(f"{told}: a file must hold one JSON object, and more follows the first")
    if source.endswith(".json"):
        raise told from error
    try:
        yield from yaml_documents(source, text)
    except DocumentError:
        if error.msg != "Extra data":
            raise
        raise told from error
