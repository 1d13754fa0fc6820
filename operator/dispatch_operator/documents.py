"""Kubernetes objects in files, read as kubectl reads them and written so that every reader agrees (section 14)."""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn, cast

import yaml

from dispatch_operator.quoting import escaped, quote

STDIN = "-"
MOST_VALUES = 1_000_000
"""Values of one document, aliases expanded, after which it is taken for an attack."""

_DEEPEST = 200
_TAG = "tag:yaml.org,2002:"
# What sigs.k8s.io/yaml resolves (its go-yaml v2): YAML 1.1 words, YAML 1.2 octals, neither base 60 nor dates.
_TRUE = frozenset("y Y yes Yes YES true True TRUE on On ON".split())
_FALSE = frozenset("n N no No NO false False FALSE off Off OFF".split())
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"[-+]?0(?P<base>[xX]|[bB]|[oO]?)(?P<digits>[0-9a-fA-F]+)")
_BASES = {"": 8, "o": 8, "b": 2, "x": 16}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_FLOAT_OR_BASED = re.compile(f"{_FLOAT.pattern}|[-+]?0[xXbBoO][0-9a-fA-F]+")
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
_MOST_DIGITS = 64
"""Binary digits of the largest integer; more are a float."""

_PLAIN_TAG = "plain"
_TYPES: Mapping[str, tuple[type, ...]] = {
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}null": (type(None),),
}

# A string that no reader of YAML 1.1 or 1.2 takes for anything else; others are quoted.
_PLAIN = re.compile(r"[A-Za-z/_][-A-Za-z0-9/_.:=@+$()]*(?: [A-Za-z0-9/_=@+$()][-A-Za-z0-9/_.:=@+$()]*)*(?<!:)")
_WORDS = _TRUE | _FALSE | _NULL
_LITERAL = re.compile(r"[!-~](?:[ -~]*[!-~])?\n(?:(?:[ -~]*[!-~])?\n)*[ -~]*[!-~]\n?|[!-~](?:[ -~]*[!-~])?\n")


class DocumentError(Exception):
    """A file that can't be used; the message names the file and, where there is one, the line and column."""


def read_object(source: str, api_version: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Read the one object of a YAML or JSON file, or of standard input.

    Raises:
        DocumentError: it can't be read, is not exactly one object of these kinds, or its identity is not text.
    """
    document = _only_document(source, _text(source))
    if document.get("apiVersion") != api_version or document.get("kind") not in kinds:
        found = f"{quote(document.get('kind'))} of {quote(document.get('apiVersion'))}"
        raise DocumentError(f"{source}: must be a {' or '.join(kinds)} of {api_version}, not {found}")
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise DocumentError(f"{source}: metadata.name must be a string")
    for key in ("namespace", "uid"):
        if not isinstance(metadata.get(key, ""), str | None):
            raise DocumentError(f"{source}: metadata.{key} must be a string, not {quote(metadata[key])}")
    return document


def _text(source: str) -> str:
    try:
        data = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DocumentError(f"{source}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{source}: is not UTF-8, at byte {error.start}") from error


def _only_document(source: str, text: str) -> dict[str, Any]:
    try:
        documents = [document for document in _documents(source, text) if document is not None]
    except RecursionError as error:
        raise DocumentError(f"{source}: is nested too deeply") from error
    if len(documents) != 1:
        raise DocumentError(f"{source}: must hold one object, not {len(documents)}")
    (document,) = documents
    if not isinstance(document, dict):
        raise DocumentError(f"{source}: must hold an object, not {quote(document)}")
    return document


def _documents(source: str, text: str) -> Iterator[Any]:
    """Yield the documents; what begins like JSON is read as JSON, and as YAML when it is none."""
    if text.lstrip().startswith("{"):
        try:
            yield _json(source, text)
        except json.JSONDecodeError as error:
            if source.endswith(".json"):
                raise DocumentError(f"{source}:{error.lineno}:{error.colno}: {error.msg}") from error
        else:
            return
    yield from _Yaml(source).documents(text)


def _json(source: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) != len(dict(pairs)):
            # JSON's parser does not say where; YAML's does.
            list(_Yaml(source).documents(text))
            raise DocumentError(f"{source}: has a duplicate key")
        return dict(pairs)

    def number(digits: str) -> float | int:
        integer = _integer(digits)
        if integer is None and math.isinf(float(digits)):
            raise DocumentError(f"{source}: {quote(digits)} is not a number that JSON can hold")
        return float(digits) if integer is None else integer

    def refuse(word: str) -> NoReturn:
        raise DocumentError(f"{source}: {word} is not a number that JSON can hold")

    return json.loads(text, object_pairs_hook=unique, parse_int=number, parse_float=number, parse_constant=refuse)




class _Loader(yaml.SafeLoader):
    """PyYAML's composer, leaving to us what a plain scalar without a tag stands for."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {
        None: [(_PLAIN_TAG, re.compile("")),],
    }


class _Yaml:
    """One YAML stream on its way to JSON values."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._values = 0
        self._open: list[yaml.Node] = []

    def documents(self, text: str) -> Iterator[Any]:
        """Yield the documents of the stream, null for an empty one."""
        try:
            for node in yaml.compose_all(text, _Loader):
                yield self._value(node)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._error(mark, str(error.problem)) from error
        except yaml.reader.ReaderError as error:
            place = text.count("\n", 0, error.position) + 1
            raise DocumentError(f"{self._source}:{place}: YAML has no character U+{error.character:04X}") from error

    def _error(self, mark: Any, problem: str) -> DocumentError:  # noqa: ANN401 - PyYAML's marks have no types
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        return DocumentError(f"{self._source}{place}: {escaped(problem)}")

    def _value(self, node: yaml.Node) -> Any:  # noqa: ANN401 - any JSON value
        self._values += 1
        if self._values > MOST_VALUES or len(self._open) > _DEEPEST:
            raise self._error(node.start_mark, "too many values, or nested too deeply")
        if node in self._open:
            raise self._error(node.start_mark, "an alias must not contain itself")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.append(node)
        if node.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            raise self._error(node.start_mark, f"the tag {node.tag} is not supported")
        is_mapping = isinstance(node, yaml.MappingNode)
        value = self._mapping(node) if is_mapping else [self._value(item) for item in node.value]
        self._open.pop()
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN_TAG and key_node.value == "<<":
                merged = {**self._merged(value_node), **merged}
                continue
            key = self._key(key_node)
            if key in own:
                raise self._error(key_node.start_mark, f"duplicate key {quote(key)}")
            own[key] = self._value(value_node)
        return {**merged, **own}

    def _merged(self, node: yaml.Node) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values: dict[str, Any] = {}
        for source in sources:
            value = self._value(source)
            if not isinstance(value, dict):
                raise self._error(source.start_mark, "<< must be an object or a list of objects")
            values = {**value, **values}
        return values

    def _key(self, node: yaml.Node) -> str:
        """Return a key as JSON has it: a number or a boolean becomes its text, as in sigs.k8s.io/yaml."""
        value = self._value(node)
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        raise self._error(node.start_mark, "a key must be a string")

    def _scalar(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401 - any JSON scalar
        text = cast("str", node.value)
        if node.tag == f"{_TAG}str":
            return text
        if node.tag != _PLAIN_TAG and node.tag not in _TYPES:
            raise self._error(node.start_mark, f"the tag {node.tag} is not supported")
        if _NOT_FINITE.fullmatch(text):
            raise self._error(node.start_mark, f"{text} is not a number that JSON can hold")
        value = _resolved(text)
        if node.tag != _PLAIN_TAG and type(value) not in _TYPES[node.tag]:
            raise self._error(node.start_mark, f"{quote(text)} is not of the type {node.tag}")
        return value


def _resolved(text: str) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return what a plain scalar stands for in sigs.k8s.io/yaml."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _NULL:
        return None
    # Underscores are dropped, but not from what begins with a dot.
    digits = text if text.startswith(".") else text.replace("_", "")
    if text[0] not in ".+-0123456789" or not _FLOAT_OR_BASED.fullmatch(digits):
        return text
    if (number := _integer(digits)) is not None:
        return number
    if not _FLOAT.fullmatch(digits) or math.isinf(float(digits)):
        return text
    return float(digits)


def _integer(digits: str) -> int | None:
    """Return an integer in Go's syntax when it fits 64 bits."""
    based = _BASED.fullmatch(digits)
    base = _BASES[based["base"].lower()] if based else 10
    bare = digits.lstrip("+-") if based is None else based["digits"]
    if len(bare) > _MOST_DIGITS or not (based or _DECIMAL.fullmatch(digits)):
        return None
    try:
        value = int(bare, base)
    except ValueError:  # Such as 08, which is no octal.
        return None
    value = -value if digits.startswith("-") else value
    return value if _LEAST_INT <= value <= _MOST_INT else None


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
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


_Dumper.add_representer(str, _represented)


def to_yaml(*documents: Mapping[str, Any]) -> str:
    """Return documents as one YAML stream, in ASCII, that YAML 1.1 and 1.2 readers read back exactly."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=sys.maxsize, explicit_start=len(documents) > 1)


def to_json(*documents: Mapping[str, Any]) -> str:
    """Return documents as a JSON List, in ASCII."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    return json.dumps(listed, indent=2) + "\n"
