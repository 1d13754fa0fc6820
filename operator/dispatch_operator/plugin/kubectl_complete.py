"""The program `kubectl_complete-dispatch`, which kubectl calls to complete what stands after `kubectl dispatch`."""

import sys

from click.shell_completion import ShellComplete

from dispatch_operator.cli.output import print_out
from dispatch_operator.plugin.main import COMPLETE_VARIABLE, PROGRAM, main

NO_FILES, FILES = 4, 0
"""What kubectl's shell scripts do after the proposals: nothing, or propose files. They are cobra's directives."""


def run() -> None:
    """Print a proposal a line, with its help after a tab, and last what is to be done besides, as cobra does."""
    *before, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, PROGRAM, COMPLETE_VARIABLE).get_completions(before, incomplete)
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in found if item.type == "plain"]
    asks_for_files = any(item.type in {"file", "dir"} for item in found)
    print_out("".join(f"{line}\n" for line in (*lines, f":{FILES if asks_for_files else NO_FILES}")))
