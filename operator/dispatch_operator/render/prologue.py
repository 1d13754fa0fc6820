"""The constant text between ``/bin/sh -c`` and the job's command (docs/contract.md, Prologue)."""

from functools import cache
from importlib import resources

ARGV0 = "dispatch-prologue"


@cache
def prologue() -> str:
    """Return the text of ``prologue.sh``, part of this package."""
    return (resources.files(__package__) / "prologue.sh").read_text(encoding="ascii")
