"""How a value of a user is shown in a message: short, unambiguous, on one line."""

import re

LONGEST_QUOTE = 60
LONGEST_NAME = 120
LINE_LIMIT = 1024
"""Characters of a foreign message, at most."""
LEAD = 20
"""Characters shown before a difference."""
_BREAK = re.compile(r"[ \t]*[\t-\r\x1c-\x1e\x85\u2028\u2029]\s*")


def escaped(text: str) -> str:
    """Return ``text`` with every control, format and unpaired surrogate character as a backslash escape.

    What is left can be printed by any terminal and written to any log without breaking its line.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def one_line(text: str) -> str:
    """Return foreign text on one line, with what a terminal would obey as backslash escapes."""
    # Every break is unprintable.
    return text.strip() if text.isprintable() else escaped(_BREAK.sub(" ", text).strip())


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``, saying how many there are when some are left out."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def short_line(text: str) -> str:
    """Return a foreign message on one line, its spaces and breaks as one space each, cut where it is too long."""
    line = escaped(" ".join(text.split()))
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"


def name(text: str) -> str:
    """Return the key of a request, such as an extension's, as the name of a problem."""
    return escaped(shortened(text, LONGEST_NAME))


def quote(value: object) -> str:
    """Return a JSON value as a message shows it: at most about 60 characters of it, escaped, strings in quotes."""
    if isinstance(value, str):
        shown = value[:LONGEST_QUOTE].replace("\\", "\\\\").replace('"', '\\"')
        rest = f" ({len(value)} characters)" if len(value) > LONGEST_QUOTE else ""
        return f'"{escaped(shown)}{"…" if rest else ""}"{rest}'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    return "a list" if isinstance(value, list | tuple) else "an object"


def quote_both(one: object, other: object) -> tuple[str, str]:
    """Return two JSON values as a message shows them; of two long texts the part around their first difference."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return quote(one), quote(other)
    pairs = enumerate(zip(one, other, strict=False))
    first = next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))
    begin = max(first - LEAD, 0)
    if max(len(one), len(other)) <= LONGEST_QUOTE or begin == 0:
        return quote(one), quote(other)
    return _from(one, begin), _from(other, begin)


def _from(text: str, begin: int) -> str:
    return f"…{quote(text[begin : begin + LONGEST_QUOTE])} (from character {begin + 1} of {len(text)})"


def _number(value: float) -> str:
    try:
        return shortened(str(value), LONGEST_QUOTE)
    except ValueError:  # Python refuses to write out integers of more than 4,300 digits.
        return "a number of thousands of digits"
