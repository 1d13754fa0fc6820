"""The image, as far as it can be told without a container engine."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from controlplane import Cluster, ports
from support.chart import ROOT, of_kind, render
from support.dockerfile import Instruction, carry_out, stages, values
from support.image import Image
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
    installed = installed_in(venv)
    text = (ROOT / "requirements" / "run.txt").read_text()
    pinned = {line.partition("==")[0].replace("-", "_").lower() for line in text.splitlines() if "==" in line}
    assert "dispatch_operator" in installed
    assert installed - {"dispatch_operator"} <= pinned
    assert not list((venv / "bin").glob("pip*"))


def test_every_package_is_held_to_hashes() -> None:
    for command in values(BUILD, "RUN"):
        installs = [part for part in command.split("&&") if "pip" in part and " install " in part]
        assert installs or "image_tree.py" in command
        assert all(("--require-hashes" in part) or ("--no-index --no-deps" in part) for part in installs)


def test_the_image_is_small_in_rights() -> None:
    (user,) = values(FINAL, "USER")
    (deployment,) = of_kind(render(namespace="any"), "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}" == "65532:65532"
    assert values(FINAL, "RUN") == []
    assert values(FINAL, "COPY") == ["--from=build /image /"]


def test_the_image_is_the_tree_that_the_build_makes() -> None:
    assert FINAL[0].words == ["scratch"]
    assert {f"VENV={HOME}", "ROOT=/image"} <= set(only(BUILD, "ENV"))
    assert ENVIRONMENT["PATH"] == f"{HOME}/bin"


def test_the_image_holds_no_shell_no_pip_and_no_compiler_and_is_small(image: Image) -> None:
    files = [path for path in image.root.rglob("*") if path.is_file() and not path.is_symlink()]
    unwanted = re.compile(
        r"(ba|da|z|k|c)?sh|busybox|pip[\d.]*|ensurepip|.*-?(gcc|g\+\+|clang|cc|ld)(-[\d.]+)?|make|apt.*|curl|perl.*"
    )
    assert [
        path
        for path in image.root.rglob("*")
        if unwanted.fullmatch(path.name) and "dispatch_operator" not in path.parts
    ] == []
    assert sum(path.stat().st_size for path in files) < 250_000_000
    assert [path for path in files if path.stat().st_mode & 0o6000] == []


def test_the_image_runs_where_nothing_else_is(image: Image) -> None:
    started = inside(image, image.venv / "bin" / "dispatch-operator", "--help")
    assert (started.returncode, started.stderr) == (0, "")
    everything = "import dispatch_operator.cli.run as it, ssl; print(it.__file__, len(ssl.create_default_context().get_ca_certs()))"
    module, authorities = inside(image, image.venv / "bin" / "python", "-c", everything).stdout.split()
    assert Path(module).is_relative_to(image.venv)
    assert int(authorities) > 0
    runtime = (ROOT / "deploy" / "runtimes" / "torch-dispatch.yaml").read_text()
    checked = inside(image, image.venv / "bin" / "dispatch-operator", "check-runtime", "-f", "-", given=runtime)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_nothing_of_it_is_compiled_at_a_start(image: Image) -> None:
    for source in image.root.rglob("*.py"):
        assert list(source.parent.glob(f"__pycache__/{source.stem}.*.pyc")), source


def test_the_image_says_what_it_is_and_where_it_comes_from() -> None:
    labels = [word.partition("=") for word in only(FINAL, "LABEL")]
    known = {"BASE", "VERSION", "REVISION", "SOURCE"}
    assert {value.removeprefix("$") for _, _, value in labels if value.startswith("$")} == known
    assert {word.partition("=")[0] for word in values(FINAL, "ARG")} == known
    prefix = "org.opencontainers.image."
    wanted = {"title", "description", "licenses", "base.name", "revision", "source", "version"}
    assert {key.removeprefix(prefix) for key, _, _ in labels} == wanted


def test_the_image_bears_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"VERSION={version}" in values(FINAL, "ARG")


def test_a_release_names_its_base_by_digest() -> None:
    refused = make("image")
    assert (refused.returncode, "names no digest" in refused.stderr, refused.stdout) == (2, True, "")
    base = f"python:3.13-slim@sha256:{'0' * 64}"
    shown = make("--dry-run", "image", f"BASE={base}", "IMAGE=registry.example/dispatch-operator:0.1.0").stdout
    for wanted in (f"BASE={base} ", "--platform linux/amd64,linux/arm64 ", "--provenance=mode=max ", "--sbom=true "):
        assert wanted in shown


def test_the_list_of_its_packages_holds_what_is_installed(venv: Path, tmp_path: Path) -> None:
    shown = make("--dry-run", "sbom").stdout
    (command,) = re.findall(r"\S+cyclonedx-py .*?\S+/python$", shown.replace("\\\n", " "), re.MULTILINE)
    written = tmp_path / "sbom.json"
    words = shlex.split(command.replace("build/sbom.cdx.json", str(written)))
    subprocess.run([*words[:-1], venv / "bin" / "python"], cwd=ROOT, check=True, capture_output=True)
    listed = {re.sub("[-.]", "_", one["name"]).lower(): one for one in json.loads(written.read_text())["components"]}
    assert installed_in(venv) - {"dispatch_operator"} <= set(listed)
    assert [name for name, one in listed.items() if not one.get("licenses")] == []


def test_the_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    words = {word for one in BUILD if one.keyword == "COPY" for word in one.words[:-1]}
    copied = {word if word.startswith("tools/") else word.split("/")[0] for word in words}
    assert sorted(rules) == sorted(["*", *(f"!{name}" for name in copied), "**/__pycache__"])


def test_a_dockerfile_is_read_as_docker_reads_it(tmp_path: Path) -> None:
    text = 'FROM base AS one\n# x\nRUN touch \\\n  # y\n  a && \\\n  touch b\nFROM other\nENTRYPOINT ["x", "y z"]\n'
    first, second = stages(text)
    assert values(first, "RUN") == ["touch a && touch b"]
    assert only(second, "ENTRYPOINT") == ["x", "y z"]
    carry_out(first, context=tmp_path, folder=tmp_path, environment={})
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def installed_in(venv: Path) -> set[str]:
    """Return the names of the packages of an environment."""
    return {path.name.partition("-")[0].lower() for path in venv.glob("lib/python*/site-packages/*.dist-info")}


def inside(image: Image, *command: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with the image's files as all that there is."""
    words = ["unshare", "--map-root-user", "chroot", image.root, *command]
    return subprocess.run(
        words, input=given, env={**ENVIRONMENT, "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )


def make(*words: str) -> subprocess.CompletedProcess[str]:
    """Run make at the root of the repository, as nobody's child: a make that runs the tests hands its flags on."""
    own = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    return subprocess.run(
        [shutil.which("make") or "make", *words], cwd=ROOT, env=own, capture_output=True, text=True, check=False
    )


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
