"""What the command line prints, also where that can't be written."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dispatch_operator import __version__
from dispatch_operator.cli.main import main

PROGRAM = [sys.executable, "-m", "dispatch_operator.cli.main"]
CASE = Path(__file__).parents[1] / "data" / "cases"


def render(case: str) -> list[str]:
    files = {part: str(CASE / case / f"{part}.yaml") for part in ("start", "backend", "runtime")}
    return ["render", "-f", files["start"], "--backend", files["backend"], "--runtime", files["runtime"]]


@pytest.mark.parametrize(
    "arguments", [["crds"], render("plain-smallest"), ["--help"], ["--version"], ["render", "--help"]]
)
def test_a_full_disk_is_told_and_is_no_refusal(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "Error: the output can't be written: No space left on device\n")


def test_a_reader_that_went_away_is_no_refusal() -> None:
    running = subprocess.Popen([*PROGRAM, "crds"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout
    running.stdout.close()
    _, told = running.communicate()
    assert (running.returncode, told) == (2, "Error: the output can't be written: Broken pipe\n")


def test_a_refusal_stays_one_when_its_reasons_can_not_be_written() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([*PROGRAM, *render("refused-duration")], stdout=full, stderr=full, check=False)
    assert ended.returncode == 1


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.output) == (0, f"dispatch-operator {__version__}\n")
