"""Write the CRDs' files from the models: `python -m generate_crds DIRECTORY ...`."""

import sys
from pathlib import Path

from dispatch_operator.api.crds import crds, file_name
from dispatch_operator.documents import to_yaml


def write(directory: Path) -> None:
    """Write a file for each CRD."""
    for crd in crds():
        (directory / file_name(crd)).write_text(to_yaml(crd), encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        write(Path(argument))
