"""`python image_tree.py VENV ROOT`: put a virtual environment and what it needs of this system below a folder.

What is below ROOT can be the whole of an image: the interpreter with its standard library, the environment, and the
shared libraries of both, each at its own path. There is no shell, no pip and no compiler in it.
"""

import compileall
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

LEFT_OUT = ("__pycache__", "_tkinter*", "config-*", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tests")
LEFT_OUT += ("tkinter", "turtledemo", "venv")
"""Of the standard library: what is for people at a terminal, for builds, or for pip."""
OF_THE_SYSTEM = ("/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/ssl/certs/ca-certificates.crt")
"""Where shared libraries are, how names are looked up, and which authorities are trusted; where the system has them."""
LOADED_LATE = "libgcc_s.so.1"
"""By the C library when a thread ends: no program names it."""


def build(venv: Path, root: Path) -> None:
    """Fill the folder.

    Raises:
        LibraryMissingError: This system lacks a shared library itself.
        CompileError: A module can't be compiled.
    """
    standard = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(standard, below(root, standard), ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copytree(venv, below(root, venv), symlinks=True)
    interpreter = copy_linked(venv / "bin" / "python", root)
    binaries = [interpreter, *root.rglob("*.so"), *root.rglob("*.so.*")]
    for path in {*libraries(binaries), *map(Path, OF_THE_SYSTEM)}:
        if path.exists() and not below(root, path).exists():
            copy(path, root)
    # The base has no bytecode of its own library, and without it every start would compile.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(root, quiet=1, force=True, stripdir=str(root), invalidation_mode=mode, workers=0):
        raise CompileError(f"a module below {root} can't be compiled")


class LibraryMissingError(RuntimeError):
    """A shared library was not found; the message is what ldd said."""


class CompileError(RuntimeError):
    """A module can't be compiled; which one was printed."""


def below(root: Path, path: Path) -> Path:
    """Return where a path of this system is in the folder."""
    return root / path.relative_to("/")


def copy(path: Path, root: Path) -> Path:
    """Copy a file, or what a link leads to, to its own path below the folder."""
    target = below(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)
    return target


def copy_linked(path: Path, root: Path) -> Path:
    """Copy a file and the links that lead to it; return the copy of the file."""
    while path.is_symlink():
        link = below(root, path)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(path.readlink())
        path = path.parent / path.readlink()
    return copy(path, root)


def libraries(binaries: Iterable[Path]) -> Iterator[Path]:
    """Yield the shared libraries that binaries need, the loader too.

    Raises:
        LibraryMissingError: One was not found.
    """
    done = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=True)  # noqa: S607  # The system's.
    if missing := re.findall(r".*not found.*", done.stdout):
        raise LibraryMissingError("\n".join(missing))
    for found in set(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE)):
        path = Path(found)
        yield path
        if path.name.startswith("libc.so"):
            yield path.with_name(LOADED_LATE)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
