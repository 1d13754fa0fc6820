"""YAML text as JSON values, as kubectl reads it, with the place of everything that is wrong."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import yaml

from dispatch_operator.api.quoting import escaped, quote
from dispatch_operator.documents.error import DocumentError, DuplicateKeyError
from dispatch_operator.documents.scalars import NOT_FINITE, resolved

MOST_VALUES = 1_000_000
"""The most values that a stream may hold, aliases expanded; with more it is refused."""

_DEEPEST = 200
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAG = "plain"
_TYPES: Mapping[str, tuple[type, ...]] = {
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}null": (type(None),),
}


def yaml_documents(source: str, text: str) -> Iterator[Any]:
    """Yield the documents of a YAML stream, null for an empty one.

    Raises:
        DocumentError: it is not YAML, has a duplicate key, or uses a number or a tag that JSON can't express.
    """
    return _Yaml(source).documents(text)


# PyYAML's composer, which leaves to us what a plain scalar without a tag stands for. It prefers libyaml, of which
# kubectl's go-yaml is a port: PyYAML's pure-Python parser treats tabs and colons differently.
_Loader: Any = type(
    "_Loader",
    (getattr(yaml, "CSafeLoader", yaml.SafeLoader),),
    {"yaml_implicit_resolvers": {None: [(_PLAIN_TAG, re.compile(""))]}},
)


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
            place = text.encode()[: error.position].count(b"\n") + 1
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
        value: Any = (
            self._mapping(node) if isinstance(node, yaml.MappingNode) else [self._value(item) for item in node.value]
        )
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
                raise DuplicateKeyError(str(self._error(key_node.start_mark, f"duplicate key {quote(key)}")))
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
            return f"{value:g}" if isinstance(value, float) else json.dumps(value)
        raise self._error(node.start_mark, "a key must be a string")

    def _scalar(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401 - any JSON scalar
        text = cast("str", node.value)
        if node.tag == f"{_TAG}str":
            return text
        if node.tag != _PLAIN_TAG and node.tag not in _TYPES:
            raise self._error(node.start_mark, f"the tag {node.tag} is not supported")
        if NOT_FINITE.fullmatch(text):
            raise self._error(node.start_mark, f"{text} is not a number that JSON can hold")
        value = resolved(text)
        if node.tag != _PLAIN_TAG and type(value) not in _TYPES[node.tag]:
            raise self._error(node.start_mark, f"{quote(text)} is not of the type {node.tag}")
        return value
