"""The structure holds itself: a clock or a client in anything that decides is noticed, in every folder of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "dispatch_operator"
PURE = ("api", "checks", "reconcile", "records", "render")
ALSO_PURE = ("preflight/probe_start.py", "preflight/ulid.py")
CARRIES_OUT = "reconcile/reconciler.py"
INTRUDERS = ("import time", "from dispatch_operator.kube.client import Client")


def pure_modules() -> list[str]:
    """Return the modules that decide, with one that is in no list anywhere: a new one counts from its first day."""
    found = [path for folder in PURE for path in sorted((PACKAGE / folder).rglob("*.py"))]
    names = [str(path.relative_to(PACKAGE)) for path in found]
    return [name for name in (*names, *ALSO_PURE, "reconcile/steps/new.py") if name != CARRIES_OUT]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the check says of a copy in which every module that decides has a clock and a client."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, copy / "dispatch_operator", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name in pure_modules():
        with (copy / "dispatch_operator" / name).open("a") as module:
            module.write("\n" + "\n".join(INTRUDERS) + "\n")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", pure_modules())
def test_a_clock_or_a_client_in_what_decides_is_noticed(told: str, name: str) -> None:
    module = "dispatch_operator." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for intruder in ("time", "dispatch_operator.kube.client"):
        assert re.search(rf"{re.escape(module)} -> {re.escape(intruder)}\b", told), f"{module} may import {intruder}"


def test_the_makefile_asks_for_every_branch_of_just_these_modules() -> None:
    (line,) = re.findall(r"^PURE := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(line.split(",")) == sorted(
        [*(f"*/{folder}/*" for folder in PURE), *(f"*/{name}" for name in ALSO_PURE)]
    )
    (line,) = re.findall(r"^IMPURE := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line == f"*/{CARRIES_OUT}"
