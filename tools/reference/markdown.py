"""The few forms that the pages are made of."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, its cells on one line each."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def code(text: object) -> str:
    """Return what is to be read as it is written."""
    return f"`{text}`"


def block(text: str, language: str = "") -> str:
    """Return several lines to be read as they are written."""
    return f"```{language}\n{text.strip()}\n```\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", r"\|")
