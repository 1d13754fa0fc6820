"""Markdown pages, as far as the tests of the docs read them: headings, tables, links, and what stands in backticks."""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^ *```(.*?)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+?)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_ROW = re.compile(r"^\|(.*)\|$")


class Block(NamedTuple):
    """What stands between fences."""

    language: str
    text: str
    line: int
    """Of the page, at which it begins."""


class Page:
    """One page; what stands in its fenced blocks is no heading, table or link."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text()
        self.prose = _FENCE.sub("", self.text)

    @property
    def headings(self) -> list[str]:
        """All headings, of any level, in order."""
        return _HEADING.findall(self.prose)

    @property
    def blocks(self) -> list[Block]:
        """The fenced blocks, in order."""
        return [
            Block(found[1], textwrap.dedent(found[2]), self.text.count("\n", 0, found.start()) + 1)
            for found in _FENCE.finditer(self.text)
        ]

    @property
    def anchors(self) -> set[str]:
        """What a link to a heading says behind its `#`."""
        found: set[str] = set()
        for heading in self.headings:
            anchor, number = anchor_of(heading), 1
            while anchor in found:
                anchor, number = f"{anchor_of(heading)}-{number}", number + 1
            found.add(anchor)
        return found

    @property
    def links(self) -> list[str]:
        """Where the links lead, as they are written; those in code are no links."""
        return _LINK.findall(_CODE.sub("", self.prose))

    @property
    def code(self) -> list[str]:
        """What stands in backticks."""
        return _CODE.findall(self.prose)

    def section(self, heading: str) -> str:
        """Return what stands between a heading and the next one, of any level."""
        parts = re.split(_HEADING, self.prose)
        return str(parts[parts.index(heading) + 1])

    def table(self, heading: str, number: int = 0) -> list[list[str]]:
        """Return the cells of a table's rows, without its head; `number` counts the tables of the section from 0."""
        tables: list[list[list[str]]] = []
        before = False
        for line in self.section(heading).splitlines():
            if row := _ROW.match(line.strip()):
                if not before:
                    tables.append([])
                tables[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", row[1])])
            before = row is not None
        return tables[number][2:]

    def words(self, heading: str, number: int = 0) -> list[str]:
        """Return what stands in backticks in the first column of a table."""
        return [word for row in self.table(heading, number) for word in words(row[0])]

    def row(self, heading: str, word: str) -> list[str]:
        """Return the row of a section's first table that begins with a word."""
        return next(row for row in self.table(heading) if words(row[0])[:1] == [word])


def words(text: str) -> list[str]:
    """Return what stands in backticks in a text."""
    return _CODE.findall(text)


def anchor_of(heading: str) -> str:
    """Return the anchor that a heading gets where repositories are shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
