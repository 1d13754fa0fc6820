"""`python -m reference DIRECTORY`: write the generated pages."""

import sys
from pathlib import Path

from reference import chart, command_line, kinds, metrics


def write(directory: Path) -> None:
    """Write every page, each beside a note that it is generated."""
    pages = {**kinds.pages(), **chart.pages(), **command_line.pages(), **metrics.pages()}
    for name, text in pages.items():
        title, _, rest = text.partition("\n")
        (directory / name).write_text(f"{title}\n<!-- Written by `make reference`. -->\n{rest}", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
