"""`python -m bench`: measures, prints the table, and writes it into docs/performance.md; see `--help`."""

import argparse
import os
import platform
import resource
import subprocess
import sys
import time

from bench import page, table
from bench.burst import measure_bursts, measure_kueue
from bench.crowd import measure_bare, measure_crowd, measure_others
from bench.table import Run

RESIDENTS, QUICK_RESIDENTS = (300, 1_000, 3_000, 10_000), (300, 3_000)
OTHERS = 5_000
IMPORTS = 3


def _import_seconds() -> float:
    """Return the CPU that the command needs until it knows what to do, the least of some tries."""
    spent = []
    for _ in range(IMPORTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "dispatch_operator.cli.main", "run", "--help"]
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure less, and write no page")
    parser.add_argument("--fake-only", action="store_true", help="leave out what needs the real control plane")
    arguments = parser.parse_args()
    begun, quick = time.monotonic(), arguments.quick
    burst, singles = (60, 10) if quick else (300, 20)
    _tell("the bare client, over a fake API server")
    bare, single_bare = measure_bare(burst=burst, singles=singles)
    crowds = []
    for residents in QUICK_RESIDENTS if quick else RESIDENTS:
        _tell(f"the operator with {residents:,} settled Starts, over a fake API server")
        crowds.append(measure_crowd(residents, burst=burst, singles=singles))
    _tell("objects of others")
    others = measure_others(OTHERS)
    bursts = kueue = None
    if not arguments.fake_only:
        _tell("a burst on the real control plane")
        bursts = measure_bursts(60 if quick else 1_000, singles=singles)
        if not quick:
            _tell("a burst through Kueue")
            kueue = measure_kueue(100)
    run = Run(crowds, bare, single_bare, others, _import_seconds(), bursts, kueue)
    print(table.as_markdown(table.rows(run)), table.growth(crowds), sep="\n\n")
    if not quick:
        page.write(run, f"{os.cpu_count()} cores, Python {platform.python_version()}")
    _tell(f"done in {time.monotonic() - begun:.0f} s")


def _tell(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
