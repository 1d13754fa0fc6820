"""Building the control plane's programs from Go modules, once, into a cache.

A built set is a folder `<target>-<key>` with `bin` and `manifests`. The key is a hash of what the build depends on, the
folder appears by a rename when it is complete, and a file lock lets one process build while others wait for it.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from controlplane import kubectl, toolchain
from controlplane.progress import run_with_progress, say

MODULES = Path(__file__).parents[1] / "go"

# Kueue refuses a server whose version it can't parse. Without -buildvcs=false, Go would ask git about this repository.
LINKER_FLAGS = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2"
BUILD_FLAGS = ("-buildvcs=false", "-ldflags", LINKER_FLAGS)

# Raise it when what is put into the cache changes in a way that the module files and flags don't show.
RECIPE = 1


@dataclass(frozen=True)
class Manifests:
    """Where a module keeps its CRDs and webhook configurations: folders that kustomize can render."""

    module: str
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """A folder of tools/go, the packages in it to build, and the manifests to keep beside the programs."""

    name: str
    programs: str
    package: str
    manifests: Mapping[str, Manifests] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The Go module."""
        return MODULES / self.name


KUBERNETES = Target("kubernetes", "etcd and Kubernetes", ".")
CONTROLLERS = Target(
    "controllers",
    "Trainer, JobSet, Kueue and kwok",
    "tool",
    {
        "trainer": Manifests("github.com/kubeflow/trainer/v2", ("manifests/base/crds", "manifests/base/webhook")),
        "jobset": Manifests("sigs.k8s.io/jobset", ("config/components/crd", "config/components/webhook")),
        "kueue": Manifests("sigs.k8s.io/kueue", ("config/components/crd", "config/components/webhook")),
    },
)
HELM = Target("helm", "helm", "tool")
KSTATUS = Target("kstatus", "kstatus", ".")


@dataclass(frozen=True)
class Built:
    """A target in the cache."""

    folder: Path

    def program(self, name: str) -> str:
        """The path of a program."""
        return str(self.folder / "bin" / name)

    def manifests(self, name: str) -> list[dict[str, Any]]:
        """The CRDs and webhook configurations of a controller, as its authors publish them."""
        objects: list[dict[str, Any]] = json.loads((self.folder / "manifests" / f"{name}.json").read_text())
        return objects


def build(target: Target, cache: Path | None = None) -> Built:
    """Build a target, or find it built.

    Args:
        target: What to build.
        cache: The folder to keep it in; by default one below `$XDG_CACHE_HOME` or `~/.cache`.

    Raises:
        CommandFailedError: Go failed; the message holds all that it printed.
    """
    cache = cache or default_cache()
    built = Built(cache / f"{target.name}-{key(target)}")
    if built.folder.exists():
        return built
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "build.lock"):
        if not built.folder.exists():
            _build(target, built.folder)
    return built


def build_helm(cache: Path | None = None) -> Path:
    """Build helm, which only the chart's tests need, and return the program."""
    return Path(build(HELM, cache).program("helm"))


def default_cache() -> Path:
    """The cache folder of this user."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "dispatch-operator"


def key(target: Target) -> str:
    """A hash of the module's files, the flags, what is kept, and the platform."""
    digest = hashlib.sha256()
    recipe = (RECIPE, BUILD_FLAGS, target.package, sorted(toolchain.ENVIRONMENT.items()), platform.machine())
    manifests = [(name, source.module, source.folders) for name, source in sorted(target.manifests.items())]
    digest.update(repr((*recipe, manifests)).encode())
    for path in sorted(target.folder.iterdir()):
        if path.name in {"go.mod", "go.sum"} or path.suffix == ".go":
            digest.update(f"\0{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(target: Target, folder: Path) -> None:
    prefix = f".building-{target.name}-"
    # Whoever left these was interrupted: they are written only under the lock that is ours now.
    for leftover in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover)
    go = toolchain.find_or_install(toolchain.wanted_version(target.folder), folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix, ignore_cleanup_errors=True) as temporary:
        unfinished = Path(temporary, "built")
        binaries = unfinished / "bin"
        binaries.mkdir(parents=True)
        run_with_progress(
            f"building {target.programs} (some 10 minutes the first time)",
            [str(go), "build", *BUILD_FLAGS, "-o", f"{binaries}/", target.package],
            environment=toolchain.environment(),
            folder=target.folder,
        )
        (unfinished / "manifests").mkdir()
        for name, source in target.manifests.items():
            objects = _render(_module_folder(go, target, source.module), source.folders)
            (unfinished / "manifests" / f"{name}.json").write_text(json.dumps(objects))
        unfinished.replace(folder)


def _module_folder(go: Path, target: Target, module: str) -> Path:
    done = subprocess.run(  # No shell is involved.
        [go, "list", "-m", "-f", "{{.Dir}}", module],
        capture_output=True,
        text=True,
        check=True,
        env=toolchain.environment(),
        cwd=target.folder,
    )
    return Path(done.stdout.strip())


def _render(module: Path, folders: tuple[str, ...]) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = []
    for folder in folders:
        # From within: kustomize takes a path with github.com in it for a repository to clone.
        rendered = kubectl.run("kustomize", ".", folder=module / folder)
        objects += [document for document in yaml.safe_load_all(rendered) if document]
    return objects


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that builds: it holds {path}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
