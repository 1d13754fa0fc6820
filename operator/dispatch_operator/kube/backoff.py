"""How long to wait before a request that failed is made again."""

import random

FIRST_SECONDS, LAST_SECONDS = 0.8, 30.0
"""The bounds of the exponential backoff, which are those of client-go's reflector."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
"""A server that asks for more, by mistake or by malice, is asked again after this time all the same."""


def backoff(failures: int, retry_after: float | None = None) -> float:
    """Return the seconds to wait after so many failures in a row.

    The wait doubles with each failure, and half of it is random, so that what failed together is not repeated together.

    Args:
        failures: In a row; at least one.
        retry_after: The seconds that the server asked for, however many, or None.
    """
    whole = min(FIRST_SECONDS * 2.0 ** min(failures - 1, 10), LAST_SECONDS)
    wait = whole * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads requests and protects nothing.
    return max(wait, min(retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS))
