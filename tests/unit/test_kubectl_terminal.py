"""`kubectl dispatch` on a terminal, without its extra, and in the shells that complete it."""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatch_operator.plugin import printing
from support.builders import make_backend, make_runtime, make_start
from support.plugin import World
from support.served import Served

BIN = Path(sys.executable).parent
KUBECTL, BASH = str(shutil.which("kubectl", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")), str(shutil.which("bash"))
STARTS = "/apis/dispatch.phpboyscout.uk/v1alpha1/namespaces/team-a/dispatchstarts"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path).running() as made:
        one, other = make_start(), make_start("mistral-s1")
        made.objects[f"{STARTS}/llama-s1"] = one
        made.objects[STARTS] = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [one, other]}
        yield made


def environment(served: Served, **more: str) -> dict[str, str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "KUBECONFIG": str(served.kubeconfig), "TERM": "xterm-256color", **more}


def on_a_terminal(served: Served, *arguments: str, typed: bytes = b"", **more: str) -> tuple[int, str]:
    """Run the plugin with a terminal of its own; return its exit code and all that the terminal shows."""
    ours, theirs = pty.openpty()
    program = [str(BIN / "kubectl-dispatch"), *arguments]
    env = environment(served, COLUMNS="300", **more)
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as running:
        os.close(theirs)
        os.write(ours, typed)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 65_536)
            except OSError:
                # Linux says so when nobody holds the other end any more.
                break
    os.close(ours)
    return running.returncode, shown.decode()


def test_a_terminal_gets_a_tree_and_colours_and_a_pipe_plain_lines(served: Served) -> None:
    code, shown = on_a_terminal(served, "status", "llama-s1", "-n", "team-a")
    assert code == 0
    assert "└── " in shown
    assert "\x1b[" in shown
    program = [str(BIN / "kubectl-dispatch"), "status", "llama-s1", "-n", "team-a"]
    piped = subprocess.run(program, env=environment(served), capture_output=True, text=True, check=True).stdout
    assert set(piped) & {"\x1b", "└"} == set()
    assert piped.startswith("DispatchStart/llama-s1 Unseen: an operator")


def test_a_terminal_gets_an_explanation_whose_commands_are_whole(served: Served) -> None:
    code, shown = on_a_terminal(served, "explain", "llama-s1", "-n", "team-a")
    assert code == 0
    assert "kubectl get pods -A -l app.kubernetes.io/name=dispatch-operator" in shown
    assert "\x1b[36m" in shown


def test_a_backend_is_checked_on_a_terminal(served: Served) -> None:
    root = "/apis/dispatch.phpboyscout.uk/v1alpha1/namespaces/team-a/dispatchbackends/default"
    served.objects[root] = make_backend()
    served.objects["/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch-dispatch"] = make_runtime()
    code, shown = on_a_terminal(served, "check-backend", "-n", "team-a")
    assert code == 1
    assert "takes no Starts" in shown
    assert "\x1b[32m" in shown


@pytest.mark.parametrize(("typed", "says"), [(b"n\n", "Aborted!"), (b"y\n", "there is no DispatchStart")])
def test_cancelling_is_asked_about_on_a_terminal(served: Served, typed: bytes, says: str) -> None:
    name = "llama-s1" if typed == b"n\n" else "gone"
    code, shown = on_a_terminal(served, "cancel", name, "-n", "team-a", typed=typed)
    assert f"Cancel {name} for good? Its job, if it has one, is stopped, and nothing brings it back [y/N]: " in shown
    assert (code, says in shown) == (1 if typed == b"n\n" else 2, True)
    assert served.asked == [] or typed == b"y\n"


def test_without_rich_a_terminal_gets_plain_lines_and_is_told_what_to_install(served: Served, tmp_path: Path) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise ImportError('not here')")
    code, shown = on_a_terminal(served, "status", "llama-s1", "-n", "team-a", PYTHONPATH=str(tmp_path))
    assert code == 0
    assert "pip install rich brings it" in shown
    assert "\nDispatchStart/llama-s1 Unseen: " in shown.replace("\r", "")


def test_what_a_cluster_says_can_not_change_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    start = make_start()
    ready = {"type": "Ready", "status": "False", "reason": "X", "message": "\x1b[2Jgone", "observedGeneration": 1}
    start["status"] = {"phase": "Failed", "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    world = World()
    world.put(start)
    for is_terminal in (False, True):
        monkeypatch.setattr(printing, "is_terminal", lambda is_terminal=is_terminal: is_terminal)
        assert "\\x1b[2Jgone" in world.ask("status", "llama-s1").stdout


# Completion.


def complete(served: Served, *words: str) -> list[str]:
    """Return what kubectl is told to propose after these words."""
    program = [str(BIN / "kubectl_complete-dispatch"), *words]
    done = subprocess.run(program, env=environment(served), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_kubectl_is_told_what_may_follow(served: Served) -> None:
    assert complete(served, "st") == ["status\tShow a Start and all that belongs to it,...", ":4"]
    assert complete(served, "open", "-n", "team-a", "") == ["llama-s1", "mistral-s1", ":4"]
    assert complete(served, "-n", "team-a", "explain", "ll") == ["llama-s1", ":4"]
    assert complete(served, "status", "x", "--kubeconfig", "") == [":0"]
    assert complete(served, "completion", "z") == ["zsh", ":4"]


def test_a_cluster_that_does_not_answer_proposes_nothing(served: Served) -> None:
    served.lead_to(1)
    assert complete(served, "open", "-n", "team-a", "") == [":4"]


def test_kubectl_itself_completes_by_it(served: Served) -> None:
    done = subprocess.run(
        [KUBECTL, "__complete", "dispatch", "open", "-n", "team-a", "l"],
        env=environment(served),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["llama-s1", ":4"]


def test_kubectl_finds_the_plugin(served: Served) -> None:
    command = [KUBECTL, "dispatch", "status", "llama-s1", "-n", "team-a"]
    done = subprocess.run(command, env=environment(served), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("DispatchStart/llama-s1 Unseen")


def test_bash_completes_by_the_script_that_is_printed(served: Served) -> None:
    script = """
source <(kubectl-dispatch completion bash)
COMP_WORDS=(kubectl-dispatch open -n team-a m) COMP_CWORD=4
_kubectl_dispatch_completion kubectl-dispatch
echo "${COMPREPLY[@]}"
"""
    done = subprocess.run([BASH, "-c", script], env=environment(served), capture_output=True, text=True, check=True)
    assert done.stdout == "mistral-s1\n"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_a_script_that_calls_the_program(served: Served, shell: str) -> None:
    program = [str(BIN / "kubectl-dispatch"), "completion", shell]
    done = subprocess.run(program, env=environment(served), capture_output=True, text=True, check=True)
    assert f"_KUBECTL_DISPATCH_COMPLETE={shell}_complete" in done.stdout
