"""What the image holds, made by the Dockerfile's own steps."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.chart import ROOT
from support.dockerfile import carry_out, stages
from support.image import Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image's files."""
    build, _ = stages((ROOT / "Dockerfile").read_text())
    folder = tmp_path_factory.mktemp("build")
    made = tmp_path_factory.mktemp("image") / "dispatch-operator"
    root = tmp_path_factory.mktemp("root")
    # The steps call `python`, and must see nothing of this one's packages.
    fresh = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
    path = f"{fresh / 'bin'}:/usr/bin:/bin"
    environment = {"VENV": str(made), "ROOT": str(root), "PATH": path, "PYTHONPATH": ""}
    carry_out(build, context=ROOT, folder=folder, environment=environment)
    return Image(root, made)


@pytest.fixture(scope="session")
def venv(image: Image) -> Path:
    """The image's virtual environment."""
    return image.venv
