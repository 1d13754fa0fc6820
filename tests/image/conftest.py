"""What the image holds, made by the Dockerfile's own steps."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.chart import ROOT
from support.dockerfile import carry_out, stages


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's virtual environment."""
    build, _ = stages((ROOT / "Dockerfile").read_text())
    folder = tmp_path_factory.mktemp("build")
    made = tmp_path_factory.mktemp("image") / "dispatch-operator"
    # The steps call `python`, and must see nothing of this one's packages.
    fresh = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
    path = f"{fresh / 'bin'}:/usr/bin:/bin"
    carry_out(build, context=ROOT, folder=folder, environment={"VENV": str(made), "PATH": path, "PYTHONPATH": ""})
    return made
