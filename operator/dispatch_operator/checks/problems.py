"""A refusal: one or more problems, each with its class and the field, extension or rule it concerns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.quoting import shortened

LONGEST_MESSAGE = 32_000
"""Characters: what the API takes is 32,768, and a condition may say something before it."""
LONGEST_NAMES = 200
"""Characters of what a refusal is about, where another condition has it in full."""
SEPARATOR = "; "


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (docs/contract.md, Error classes)."""

    error_class: ErrorClass
    name: str
    """A field of the request, an extension, the id of a runtime rule, or the word ``state``."""
    text: str
    """What is wrong, with the value and what is allowed; never ends with a full stop."""
    remedy: str = ""
    """What to write instead, where a rule for runtimes says so."""

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def class_of(problems: Sequence[Problem]) -> ErrorClass:
    """Return the class of a whole refusal: ErrInvalid when any problem is."""
    classes = [problem.error_class for problem in problems]
    return ErrorClass.INVALID if ErrorClass.INVALID in classes else classes[0]


def summary(problems: Iterable[Problem], limit: int = LONGEST_MESSAGE) -> str:
    """Join problems to one message of at most ``limit`` characters, whole problems only."""
    return joined([str(problem) for problem in problems], limit)


def joined(texts: Sequence[str], limit: int = LONGEST_MESSAGE) -> str:
    """Join texts to one message of at most ``limit`` characters: whole texts only, and how many are left out.

    Only a text that is too long by itself, and comes first, is cut.
    """
    whole = SEPARATOR.join(texts)
    if len(whole) <= limit:
        return whole
    room = limit - len(f"{SEPARATOR}and {len(texts)} more")
    shown = sum(length <= room for length in accumulate(len(text) + len(SEPARATOR) for text in texts))
    kept = texts[:shown] or [shortened(texts[0], max(room - len(shortened(texts[0], 0)), 0))]
    left = len(texts) - len(kept)
    return SEPARATOR.join([*kept, f"and {left} more"] if left else kept)


def fitting(message: str, limit: int) -> str:
    """Return a message as it is, or as many whole texts of it as fit, with how many are left out."""
    return message if len(message) <= limit else joined(message.split(SEPARATOR), limit)


def names_in(message: str) -> str:
    """Return what a joined message is about, without saying it: what stands before the colons of its texts."""
    heads = [head for head, colon, _ in (text.partition(": ") for text in message.split(SEPARATOR)) if colon]
    return joined(list(dict.fromkeys(heads)), LONGEST_NAMES)
