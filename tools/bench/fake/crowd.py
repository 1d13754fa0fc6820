"""A crowd: many objects that differ in their names and UIDs only, each of which is made of one when it is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass

SEED = 0
"""The number of the one that the others are made of."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Clones of one stored object."""

    seed: bytes
    metadata_only: bytes
    count: int
    labelled: bool = True
    """Whether a watch of the objects of Starts selects them."""

    def members(self, *, only_metadata: bool) -> Iterator[bytes]:
        """Make them one after the other."""
        seed = self.metadata_only if only_metadata else self.seed
        return (cloned(seed, number) for number in range(1, self.count + 1))


def cloned(seed: bytes, number: int) -> bytes:
    """Return an object of another number."""
    for text in (start_name, job, uid_prefix):
        seed = seed.replace(text(SEED).encode(), text(number).encode())
    return seed.replace(job(SEED).lower().encode(), job(number).lower().encode())


def start_name(number: int) -> str:
    """Return the name of a DispatchStart."""
    return f"start-{number:06}"


def job(number: int) -> str:
    """Return the job of a DispatchStart, a ULID."""
    return f"01J9ZQ4V8Y3N5T7R2C6W{number:06}"


def uid_prefix(number: int) -> str:
    """Return what the UIDs of all objects of one Start begin with."""
    return f"{number:08}-0000-4000-8000-"
