"""The name that the copy and the TrainJob of a submission share, and the names of gates.

See docs/contract.md, Names, labels and annotations.
"""

import re

MOST_SUBMISSIONS = 999_999
_ULID = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
_OBJECT_NAME = re.compile("dj-[0-7][0-9a-hjkmnp-tv-z]{25}-s[1-9][0-9]{0,5}")


def is_job(job: str) -> bool:
    """Tell whether a job is a ULID: 26 characters of upper-case Crockford base32, the first one 0 to 7."""
    return _ULID.fullmatch(job) is not None


def is_submission(submission: int) -> bool:
    """Tell whether a submission can stand in a name and in an epoch."""
    return 1 <= submission <= MOST_SUBMISSIONS


def object_name(job: str, submission: int | str) -> str:
    """Return ``dj-<lower-case job>-s<N>``, at most 37 characters."""
    return f"dj-{job.lower()}-s{submission}"


def is_object_name(name: str) -> bool:
    """Tell whether a name is one that `object_name` returns for a job and a submission that can be."""
    return _OBJECT_NAME.fullmatch(name) is not None


def gate_names(annotation: object) -> tuple[str, ...]:
    """Return the names in Kueue's gate annotation, which others write too, with blanks and empty ones."""
    return tuple(name.strip() for name in str(annotation or "").split(",") if name.strip())
