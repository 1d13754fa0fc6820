"""The image's files, as they were made without a container engine."""

from pathlib import Path
from typing import NamedTuple


class Image(NamedTuple):
    """What was made, and where."""

    root: Path
    """All that the image holds."""
    venv: Path
    """Its virtual environment, which a container has at /opt/dispatch-operator."""
