"""Command lines as the documentation has them: read as a shell reads them, without running any."""

import re
import shlex
from collections.abc import Iterator

PROMPT = re.compile(r"^\s*\$ ", re.MULTILINE)
_CONTROL = {"|", "||", "&&", ";", "&", "(", ")", "<", ">", "<<", ">>"}


def commands(text: str, *, transcript: bool = False) -> Iterator[list[str]]:
    """Yield the words of each command, in a pipe of each part.

    Args:
        text: What stands in a block.
        transcript: Whether only the lines with a prompt are commands, and the others what was printed.
    """
    joined = re.sub(r"(\\|\|)\n\s*", lambda found: "| " if found[1] == "|" else "", text)
    for line in joined.splitlines():
        if transcript and not PROMPT.match(line):
            continue
        yield from _parts(PROMPT.sub("", line))


def _parts(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        # A quoted text goes over several lines: of its first line, what stands before it.
        words = line.partition("'")[0].split()
    part: list[str] = []
    for word in [*words, ";"]:
        if word in _CONTROL:
            if part:
                yield part
            part = []
        else:
            part.append(word)


def options(words: list[str]) -> list[str]:
    """Return the options among a command's words, without their values."""
    return [word.partition("=")[0] for word in words if re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", word, re.DOTALL)]
