"""`make demo`, the first of the README's two commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.cluster
def test_the_demo_tells_the_whole_story() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "▸ Done" in shown.stdout
    for phase in ("Gated", "Running", "Succeeded"):
        assert f"llama-s1   {phase}" in shown.stdout
    problems = [line for line in shown.stdout.splitlines() if line.startswith("  - ")]
    assert len(problems) > 5
    assert all(": " in problem and "see the condition" not in problem for problem in problems)
