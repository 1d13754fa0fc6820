"""The text of a YAML file with some values changed, and everything else, comments too, as it was."""

import io
import re
import sys
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString
from ruamel.yaml.tokens import CommentToken

from dispatch_operator.api.edit import REMOVED, Edit, Path, at, make, removal

# Comments, and perhaps a document's beginning, before the first line of the object.
_HEAD = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*---[ \t]*(?:#[^\n]*)?\n")
_LIST = re.compile(
    r"^(?P<key> *)(?:- +)*[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*(?P<item> *)- ", re.MULTILINE
)
# Where ruamel keeps the comment that follows an entry, and those that come before it.
_AFTER = {True: 2, False: 0}
_BEFORE = 1


def rewritten(text: str, edits: Sequence[Edit]) -> str:
    """Return a text of one document with edits made.

    Raises:
        Exception: of whatever kind ruamel.yaml has for a text that it can't keep as it is.
    """
    head = match[0] if (match := _HEAD.match(text)) else ""
    yaml = _like(text)
    tree = yaml.load(text[len(head) :])
    for edit in edits:
        if edit.value is REMOVED:
            _keep_comment(tree, removal(tree, edit.path))
        make(tree, edit)
    written = io.StringIO()
    yaml.dump(tree, written)
    return head + written.getvalue()


def _like(text: str) -> YAML:
    """Return a reader and writer that indents lists as a text does."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    found = _LIST.search(text)
    offset = max(len(found["item"]) - len(found["key"]), 0) if found else 0
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    return yaml


def _keep_comment(tree: Any, path: Path) -> None:  # noqa: ANN401 - ruamel's tree
    """Move the comment lines below a part, which are about what follows it, to where they outlive the part."""
    holder, key = at(tree, path[:-1]), path[-1]
    lines = _lines_after(*_last_leaf(holder, key))
    keys = list(holder) if isinstance(holder, CommentedMap) else list(range(len(holder)))
    position = keys.index(key)
    if lines and position + 1 < len(keys):
        _put_before(holder, keys[position + 1], lines)
    elif lines and position > 0:
        _put_after(*_last_leaf(holder, keys[position - 1]), lines)


def _last_leaf(holder: Any, key: str | int) -> tuple[Any, Any]:  # noqa: ANN401 - ruamel's tree
    """Return where the last line of an entry is: the comment that follows the entry is kept there."""
    value = holder[key]
    while isinstance(value, CommentedMap | CommentedSeq) and len(value) and not value.fa.flow_style():
        holder, key = value, list(value)[-1] if isinstance(value, CommentedMap) else len(value) - 1
        value = holder[key]
    return holder, key


def _lines_after(holder: Any, key: str | int) -> list[str]:  # noqa: ANN401 - ruamel's tree
    """Return the comment lines below an entry, without what is on its own last line."""
    token = holder.ca.items.get(key, [None] * 4)[_AFTER[isinstance(holder, CommentedMap)]]
    lines = token.value.split("\n") if token else []
    return [line for line in lines[0 if _is_block(holder[key]) else 1 :] if line.strip()]


def _is_block(value: object) -> bool:
    """Whether a value ends its own last line, so that no comment can be on it."""
    return isinstance(value, LiteralScalarString | FoldedScalarString)


def _put_before(holder: Any, key: str | int, lines: list[str]) -> None:  # noqa: ANN401 - ruamel's tree
    mark = CommentMark(holder.lc.col)
    items = holder.ca.items.setdefault(key, [None] * 4)
    items[_BEFORE] = [*(CommentToken(f"{line.strip()}\n", mark, None) for line in lines), *(items[_BEFORE] or [])]


def _put_after(holder: Any, key: str | int, lines: list[str]) -> None:  # noqa: ANN401 - ruamel's tree
    text = "".join(f"{line}\n" for line in lines)
    items, after = holder.ca.items.setdefault(key, [None] * 4), _AFTER[isinstance(holder, CommentedMap)]
    if items[after] is None:
        items[after] = CommentToken("" if _is_block(holder[key]) else "\n", CommentMark(0), None)
    items[after].value += text
