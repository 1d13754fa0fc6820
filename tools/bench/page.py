"""docs/performance.md: the bench writes its figures between two marks, and its plot beside it."""

from pathlib import Path

from bench import table
from bench.plot import Curve, svg
from bench.starts import ROOT
from bench.table import Run

PAGE, PLOT = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.svg"
BEGIN, END = "<!-- Written by make bench. -->", "<!-- The end of what make bench writes. -->"


def write(run: Run, machine: str) -> None:
    """Write the figures of a run into the page, and its plot."""
    figures = (
        f"Measured on {machine}.\n\n{table.as_markdown(table.rows(run))}\n\n"
        f"### Growth\n{table.growth(run.crowds)}\n\n"
        f"![How it grows]({PLOT.name})\n\nThe dashed lines are the goals."
    )
    _write_between(PAGE, figures)
    PLOT.write_text(svg(_curves(run)))


def _write_between(page: Path, figures: str) -> None:
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{figures}\n{END}{after}")


def _curves(run: Run) -> list[Curve]:
    bare, single = run.bare.cpu / run.bare.starts, run.single_bare.median
    crowds = run.crowds
    return [
        Curve("CPU a Start / bare client's", [(one.residents, one.cpu / bare) for one in crowds], table.MOST_CPU),
        Curve("latency / bare client's", [(one.residents, one.latency / single) for one in crowds], table.MOST_LATENCY),
        Curve("resident memory, MiB", [(one.residents, one.memory) for one in crowds], table.MOST_MEMORY),
        Curve("CPU of a restart, s", [(one.residents, one.ready_cpu) for one in crowds], table.MOST_READY_CPU),
    ]
