"""What the plugin prints: rich on a terminal, plain lines where it is piped, or JSON."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dispatch_operator.api.quoting import escaped
from dispatch_operator.cli.output import print_out, tell

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
GOOD, BAD, WAITING, QUIET, COMMAND = "green", "bold red", "yellow", "dim", "cyan"
_STYLES: Mapping[str, str] = {
    **dict.fromkeys(
        ("Succeeded", "Complete", "Running", "Proven", "Admitted", "Finished", "Owned", "Active", "ok"), GOOD
    ),
    **dict.fromkeys(("Failed", "Refused", "Lost", "Missing", "Gone", "Closed", "ObserveOnly", "Foreign"), BAD),
    **dict.fromkeys(("Stopping", "Inactive", "problem", "Altered"), BAD),
    **dict.fromkeys(("NotRead", "unknown", "skipped", "Cancelled", "NotMade", "Deleted"), QUIET),
}


def style_of(state: str) -> str:
    """Return how a state is shown: good, bad, or waiting, which is any other."""
    return _STYLES.get(state, WAITING)


def is_terminal() -> bool:
    """Tell whether a person reads what is printed."""
    return sys.stdout.isatty()


def console() -> "Console | None":
    """Return what prints on a terminal; None where it is piped, or rich is not installed, which is told."""
    if not is_terminal():
        return None
    try:
        from rich.console import Console  # noqa: PLC0415 - only needed on a terminal.
    except ImportError:
        tell("note: plain output, because rich is not installed; pip install rich brings it")
        return None
    return Console(highlight=False)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, with what a terminal would obey as backslash escapes."""
    print_out("".join(f"{escaped(line)}\n" for line in lines))


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print a value as JSON, for programs."""
    print_out(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
