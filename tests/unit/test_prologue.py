"""The prologue, run for real in each shell that an image may have, through Kubernetes' own expansion."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch_operator.api.models import read_backend
from dispatch_operator.render.prologue import prologue
from dispatch_operator.render.terms import terms_of
from support.builders import make_backend, make_runtime, make_start
from support.busybox import busybox
from support.container_expansion import expand
from support.rendering import render_train_job

SHELLS = {"dash": ["dash"], "bash as sh": ["bash"], "busybox": ["busybox", "sh"]}
TERMINATION_LOG = "/dev/termination-log"
NOBODY = 65_534
SECONDS = 60

# Writes what the job's process was given, exactly.
REPORT = """
import json, os, sys
keep = {key: value for key, value in os.environb.items()}
json.dump({
    "pid": os.getpid(), "cwd": os.getcwd(),
    "args": [os.fsencode(item).hex() for item in sys.argv[1:]],
    "env": {key.hex(): value.hex() for key, value in keep.items()},
}, sys.stdout)
"""


@dataclass
class Given:
    """What the job's process was given."""

    pid: int
    cwd: str
    args: list[bytes]
    env: dict[bytes, bytes]

    @classmethod
    def of(cls, out: bytes) -> "Given":
        said = json.loads(out)
        env = {bytes.fromhex(key): bytes.fromhex(value) for key, value in said["env"].items()}
        return cls(said["pid"], said["cwd"], [bytes.fromhex(item) for item in said["args"]], env)


@dataclass
class Shell:
    """A shell that runs containers' commands, with a termination log of its own."""

    words: list[str]
    log: Path

    def command(self, start: dict[str, object], **environment: str) -> tuple[list[bytes], dict[bytes, bytes]]:
        """Return the arguments and the environment that the container's process is started with."""
        trainer = render_train_job(start, terms_of(read_backend(make_backend())), make_runtime()["spec"])["spec"][
            "trainer"
        ]
        known = {"PATH": os.environ["PATH"], "DISPATCH_K8S_RESTART": "0", "DISPATCH_K8S_POD_UID": "pod-uid"}
        env = {key.encode(): value.encode() for key, value in known.items()}
        for entry in trainer["env"]:
            if "valueFrom" not in entry:
                env[entry["name"].encode()] = expand(entry.get("value", ""), known)
        env |= {key.encode(): value.encode() for key, value in environment.items()}
        assert TERMINATION_LOG in trainer["command"][2]
        trainer["command"][2] = trainer["command"][2].replace(TERMINATION_LOG, str(self.log))
        items = [expand(item, {**known, "A": "wrong"}) for item in trainer["command"]]
        assert items[0] == b"/bin/sh"
        return [b"sh" if len(self.words) == 1 else b"busybox", *(w.encode() for w in self.words[1:]), *items[1:]], env

    def run(
        self, start: dict[str, object], *, cwd: Path | None = None, user: int | None = None, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a start's command as a container would."""
        arguments, env = self.command(start, **environment)
        return subprocess.run(
            arguments,
            executable=shutil.which(self.words[0]),
            env=env,
            cwd=cwd,
            user=user,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """Yield a folder that everybody may enter: one test runs its shell as nobody, who can't enter a home's cache."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, open_folder: Path) -> Shell:
    name, *more = SHELLS[request.param]
    found = shutil.copy(busybox(), open_folder / name) if name == "busybox" else shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; Linux distributions have it under this name")
    return Shell([str(found), *more], tmp_path_factory.mktemp("log") / "termination-log")


def reporting(*arguments: str, **request: object) -> dict[str, object]:
    return make_start(command=[sys.executable, "-c", REPORT, *arguments], **request)


def refused(shell: Shell, result: subprocess.CompletedProcess[bytes]) -> str:
    """Return the one-line reason of a refusal."""
    assert (result.returncode, result.stdout) == (125, b"")
    reason = result.stderr.decode()
    assert reason.count("\n") == 1
    assert reason.startswith("dispatch-prologue: ")
    if shell.log.exists():
        assert shell.log.read_text() == reason
    return reason


@pytest.mark.parametrize(
    ("generation", "submission", "restart", "epoch"),
    [
        (18_000_000, 999_999, "999999", "18000000999999999999"),
        (18_000_000, 999_999, "0", "18000000999999000000"),
        (0, 1, "0", "1000000"),
        (0, 1, "7", "1000007"),
        (0, 1, "10", "1000010"),
        (0, 1, "321", "1000321"),
        (0, 1, "4321", "1004321"),
        (0, 1, "54321", "1054321"),
        (3, 12, "100000", "3000012100000"),
    ],
)
def test_exports_the_epoch_to_its_last_digit(
    shell: Shell, generation: int, submission: int, restart: str, epoch: str
) -> None:
    start = reporting(generation=generation, submission=submission, attempt=4)
    given = Given.of(shell.run(start, DISPATCH_K8S_RESTART=restart).stdout)
    assert int(epoch) == (generation * 10**6 + submission) * 10**6 + int(restart)
    assert given.env[b"DISPATCH_EPOCH"] == epoch.encode()
    assert given.env[b"DISPATCH_ATTEMPT_TOKEN"] == b"4-pod-uid"


@pytest.mark.parametrize(
    "restart",
    [
        "",
        "00",
        "01",
        "0000001",
        "1000000",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "0x1",
        "abc",
        " 1",
        "1 ",
        "1\n",
        "\n",
        "*",
        "?",
        "$(id)",
        "\u0661",
    ],
)
def test_refuses_a_restart_that_is_no_count(shell: Shell, restart: str) -> None:
    shell.log.write_text("")
    reason = refused(shell, shell.run(reporting(), DISPATCH_K8S_RESTART=restart))
    assert reason == "dispatch-prologue: DISPATCH_K8S_RESTART is not a number from 0 to 999999\n"


def test_refuses_a_restart_that_is_not_there(shell: Shell) -> None:
    arguments, env = shell.command(reporting())
    del env[b"DISPATCH_K8S_RESTART"]
    result = subprocess.run(
        arguments, executable=shutil.which(shell.words[0]), env=env, capture_output=True, timeout=SECONDS, check=False
    )
    assert "not a number" in refused(shell, result)


def test_enters_the_working_directory(shell: Shell, tmp_path: Path) -> None:
    assert Given.of(shell.run(reporting(workDir=str(tmp_path))).stdout).cwd == str(tmp_path)
    assert Given.of(shell.run(reporting(), cwd=tmp_path).stdout).cwd == str(tmp_path)


@pytest.mark.parametrize(
    "name", ["-", "--", "-P", "-dir", "a b", "a\nb", "*", "$(HOME)", "$$", "~", 'quo"te', "é", "plain", "a/./b"]
)
def test_enters_a_relative_directory_whatever_it_is_called(shell: Shell, tmp_path: Path, name: str) -> None:
    wanted, other = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (wanted, other):
        (folder / name).mkdir(parents=True)
    result = shell.run(reporting(workDir=name, env={"CDPATH": str(other)}), cwd=wanted)
    assert Given.of(result.stdout).cwd == os.path.realpath(wanted / name)
    assert result.stderr == b""


def test_follows_a_link_before_going_up_from_it_as_the_kernel_does(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "inner")
    assert Given.of(shell.run(reporting(workDir=f"{tmp_path}/link/..")).stdout).cwd == str(tmp_path / "real")


@pytest.mark.parametrize("name", ["missing", "file", "missing\nsecret"])
def test_refuses_a_directory_that_is_none(shell: Shell, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    shell.log.write_text("old")
    reason = refused(shell, shell.run(reporting(workDir=str(tmp_path / name))))
    assert reason == "dispatch-prologue: the working directory can not be entered\n"


def test_refuses_a_directory_that_may_not_be_entered(shell: Shell, tmp_path: Path) -> None:
    """Root may enter every directory, so that it is tried as another user."""
    (tmp_path / "closed").mkdir(mode=0)
    shell.log.unlink(missing_ok=True)
    user = None if os.geteuid() else NOBODY
    result = shell.run(reporting(workDir=str(tmp_path / "closed")), user=user, cwd=Path("/"))
    assert "can not be entered" in refused(shell, result)


def test_says_nothing_more_where_there_is_no_termination_log(shell: Shell, tmp_path: Path) -> None:
    shell.log.unlink(missing_ok=True)
    assert "can not be entered" in refused(shell, shell.run(reporting(workDir=str(tmp_path / "missing"))))
    assert not shell.log.exists()


def test_says_nothing_more_where_the_termination_log_can_not_be_written(shell: Shell, tmp_path: Path) -> None:
    shell.log.unlink(missing_ok=True)
    shell.log.mkdir()
    try:
        result = shell.run(reporting(workDir=str(tmp_path / "missing")))
    finally:
        shell.log.rmdir()
    assert "can not be entered" in refused(shell, result)


@pytest.mark.parametrize(
    "item",
    [
        "a b", "a\nb\n", "", "'", '"', "`id`", "$$", "$(A)", "$(DISPATCH_JOB_ID)", "$$$$(A)$", "$HOME ${HOME} $1 $@",
        "*", "?[a-z]", "\\n\\", "~", "-n", "--", "é😀", "$é", "a\tb", "\x01\x1b[0m", "!", "#", ";|&<>(){}", "A=b",
    ],
)  # fmt: skip
def test_an_argument_arrives_byte_for_byte(shell: Shell, item: str) -> None:
    result = shell.run(reporting(item, "last", env={"A": "x", "ITEM": item}))
    given = Given.of(result.stdout)
    assert given.args == [item.encode(), b"last"]
    assert given.env[b"ITEM"] == item.encode()
    assert result.stderr == b""


texts = st.text(
    st.one_of(st.sampled_from("$()' \"\\\n*é"), st.characters(min_codepoint=1, max_codepoint=126)), max_size=20
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(texts, max_size=5), st.dictionaries(st.from_regex("X[A-Za-z0-9_]{0,5}", fullmatch=True), texts, max_size=4)
)
def test_any_arguments_and_environment_arrive_byte_for_byte(
    shell: Shell, items: list[str], env: dict[str, str]
) -> None:
    given = Given.of(shell.run(reporting(*items, env=env)).stdout)
    assert given.args == [item.encode() for item in items]
    for key, value in env.items():
        assert given.env[key.encode()] == value.encode()
    ours = {key for key in given.env if not key.startswith(b"DISPATCH_")} - {b"PATH", b"LC_CTYPE"}
    assert ours - {key.encode() for key in env} <= {b"PWD", b"OLDPWD", b"SHLVL", b"_"}


def test_the_job_keeps_the_process_and_gets_its_signals(shell: Shell) -> None:
    code = "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\nprint(os.getpid(), flush=True)\nsignal.pause()"
    arguments, env = shell.command(make_start(command=[sys.executable, "-c", code]))
    with subprocess.Popen(
        arguments, executable=shutil.which(shell.words[0]), env=env, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 42


def test_the_jobs_exit_code_is_the_containers(shell: Shell) -> None:
    assert shell.run(make_start(command=["sh", "-c", "exit 7"])).returncode == 7
    assert shell.run(make_start(command=["/nowhere/program"])).returncode == 127


@pytest.mark.parametrize("check", [lambda text: expand(text, {"A": "x"}), lambda text: expand(text, garbles=True)])
def test_kubernetes_expansion_leaves_the_text_alone(check: Callable[[str], bytes]) -> None:
    assert check(prologue()) == prologue().encode("ascii")
    assert "$(" not in prologue()
    assert "$$" not in prologue()


def test_the_text_uses_no_variable_but_its_own() -> None:
    used = re.findall(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)", prologue())
    assigned = re.findall(r"(?:^|[ ;)])([A-Za-z_][A-Za-z0-9_]*)=", prologue(), re.MULTILINE)
    assert {"DISPATCH_K8S_RESTART", "DISPATCH_EPOCH"} <= {*used, *assigned}
    assert all(name.startswith("DISPATCH_") for name in [*used, *assigned])
