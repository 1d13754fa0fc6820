"""How long to wait before what failed is tried again."""

import random

FIRST_SECONDS, LAST_SECONDS = 1.0, 60.0
"""The bounds of the exponential backoff (docs/contract.md, Retries)."""
LONGEST_REFUSED_SECONDS = 600.0
"""What is refused for good is tried again all the same: somebody may have made room, or upgraded a CRD."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
"""A server that asks for more, by mistake or by malice, is asked again after this time all the same."""


def backoff(failures: int, retry_after: float | None = None, *, longest: float = LAST_SECONDS) -> float:
    """Return the seconds to wait after so many failures in a row.

    The wait doubles with each failure, and half of it is random, so that what failed together is not repeated together.

    Args:
        failures: In a row; at least one.
        retry_after: The seconds that the server asked for at least, however many, or None.
        longest: Seconds, unless the server asks for more.
    """
    whole = min(2.0 * FIRST_SECONDS * 2.0 ** min(failures - 1, 10), longest)
    wait = whole * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads requests and protects nothing.
    return max(wait, bounded(retry_after))


def bounded(retry_after: float | None) -> float:
    """Return for how many seconds a server may keep us waiting, when it asks for so many."""
    return min(retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS)
