"""The job id of a probe: a fresh ULID each time, so that no two probes share a name.

Written here and not taken from a package: the operator makes ULIDs, and never reads the time out of one.
"""

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 26
RANDOM_BITS = 80
_TIME_BITS = 48


def ulid(now: float, random: int) -> str:
    """Return a ULID.

    Args:
        now: Seconds since the epoch.
        random: A number of `RANDOM_BITS` bits.
    """
    value = (int(now * 1000) % (1 << _TIME_BITS)) << RANDOM_BITS | random
    return "".join(CROCKFORD[value >> 5 * place & 31] for place in reversed(range(LENGTH)))
