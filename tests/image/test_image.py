"""The image, as far as it can be told without a container engine."""

import json
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from controlplane import Cluster, ports
from support.chart import ROOT, of_kind, render
from support.dockerfile import Instruction, carry_out, stages, values
from support.install import install_chart
from support.waiting import until

DOCKERFILE = ROOT / "Dockerfile"
BUILD, FINAL = stages(DOCKERFILE.read_text())
HOME = "/opt/dispatch-operator"
ENVIRONMENT = dict(word.split("=", 1) for one in FINAL if one.keyword == "ENV" for word in one.words)

# Python can tell neither name nor home of a user whom /etc/passwd does not know.
AS_NOBODY_KNOWN = """
import pwd

def unknown(user):
    raise KeyError(user)

pwd.getpwuid = unknown
from dispatch_operator.cli.main import main
main()
"""


def test_the_linter_finds_nothing() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_image_runs_the_command(venv: Path) -> None:
    (entrypoint,) = only(FINAL, "ENTRYPOINT")
    assert "Usage: dispatch-operator" in run(venv / "bin" / entrypoint, *only(FINAL, "CMD"))
    assert "--all-namespaces" in run(venv / "bin" / entrypoint, pod_arguments()[0], "--help")


def test_the_operator_works_on_what_was_installed(venv: Path) -> None:
    assert run(venv / "bin" / "dispatch-operator", "crds").count("kind: CustomResourceDefinition") == 2
    module = run(venv / "bin" / "python", "-c", "import dispatch_operator as it; print(it.__file__)").strip()
    assert venv in Path(module).parents


def test_the_operator_runs_as_the_pod_has_it(cluster: Cluster, venv: Path, tmp_path: Path) -> None:
    namespace = "image"
    kubeconfig = install_chart(cluster, namespace)
    log = tmp_path / "log"
    with ports.reserved(1) as (port,), log.open("w") as output:
        health = f"127.0.0.1:{port}"
        arguments = [word.replace("0.0.0.0:8080", health) for word in pod_arguments(namespace)]
        command = ["-c", AS_NOBODY_KNOWN, *arguments, "--kubeconfig", str(kubeconfig)]
        with subprocess.Popen(
            [venv / "bin" / "python", *command], stdout=output, stderr=output, env=ENVIRONMENT
        ) as operator:
            try:
                url = f"http://{health}/readyz"
                until("it works or has ended", lambda: answer_of(url) == "ok" or operator.poll() is not None)
                operator.terminate()
                assert operator.wait(20) == 0, log.read_text()
            finally:
                operator.kill()
    # Every line is JSON, as the chart asks, and none complains: Kueue's kinds, which this cluster lacks, are waited for.
    assert {json.loads(line)["level"] for line in log.read_text().splitlines()} == {"info"}


def test_nothing_is_installed_but_what_is_pinned(venv: Path) -> None:
    installed = {path.name.partition("-")[0].lower() for path in venv.glob("lib/python*/site-packages/*.dist-info")}
    text = (ROOT / "requirements" / "run.txt").read_text()
    pinned = {line.partition("==")[0].replace("-", "_").lower() for line in text.splitlines() if "==" in line}
    assert "dispatch_operator" in installed
    assert installed - {"dispatch_operator"} <= pinned
    assert not list((venv / "bin").glob("pip*"))


def test_every_package_is_held_to_hashes() -> None:
    for command in values(BUILD, "RUN"):
        installs = [part for part in command.split("&&") if " install " in part]
        assert installs
        assert all(("--require-hashes" in part) or ("--no-index --no-deps" in part) for part in installs)


def test_the_image_is_small_in_rights() -> None:
    (user,) = values(FINAL, "USER")
    (deployment,) = of_kind(render(namespace="any"), "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}" == "65532:65532"
    assert values(FINAL, "RUN") == []
    assert values(FINAL, "COPY") == [f"--from=build {HOME} {HOME}"]


def test_both_stages_have_one_python() -> None:
    # The virtual environment names the interpreter that made it.
    assert [stage[0].words[0] for stage in (BUILD, FINAL)] == ["python:3.13-slim"] * 2
    assert f"VENV={HOME}" in only(BUILD, "ENV")
    assert ENVIRONMENT["PATH"] == f"{HOME}/bin:$PATH"


def test_the_image_bears_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert values(FINAL, "ARG") == [f"VERSION={version}"]


def test_the_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    copied = {word.split("/")[0] for one in BUILD if one.keyword == "COPY" for word in one.words[:-1]}
    assert sorted(rules) == sorted(["*", *(f"!{name}" for name in copied), "**/__pycache__"])


def test_a_dockerfile_is_read_as_docker_reads_it(tmp_path: Path) -> None:
    text = 'FROM base AS one\n# x\nRUN touch \\\n  # y\n  a && \\\n  touch b\nFROM other\nENTRYPOINT ["x", "y z"]\n'
    first, second = stages(text)
    assert values(first, "RUN") == ["touch a && touch b"]
    assert only(second, "ENTRYPOINT") == ["x", "y z"]
    carry_out(first, context=tmp_path, folder=tmp_path, environment={})
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def only(stage: Sequence[Instruction], keyword: str) -> list[str]:
    """Return the words of the one instruction of a kind."""
    (one,) = (one for one in stage if one.keyword == keyword)
    return one.words


def run(*command: str | Path) -> str:
    """Run a command in the image's environment, and return what it printed."""
    return subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout


def pod_arguments(namespace: str = "any") -> list[str]:
    """Return what the chart's pod starts the image with when it is installed into a namespace."""
    (deployment,) = of_kind(render(namespace=namespace), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    arguments: list[str] = container["args"]
    return arguments


def answer_of(url: str) -> str | None:
    """Return the text with which a URL is answered; None when it is not, or not with 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - it is our own.
            text: str = answer.read().decode().strip()
    except OSError:
        return None
    return text
