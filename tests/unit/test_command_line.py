"""The commands that need no cluster: exit codes and what they print."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dispatch_operator.api.crds import crds
from dispatch_operator.cli.main import main
from support.builders import make_backend, make_runtime, make_start

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "render.yaml"
Object = dict[str, Any]


def command(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin, prog_name="dispatch-operator")


class Files:
    """The three files of a render, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start, self.backend, self.runtime = make_start(), make_backend(), make_runtime()

    def path(self, name: str) -> str:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(getattr(self, name)))
        return str(path)

    def render(self, *more: str) -> Result:
        return command(
            "render",
            "-f",
            self.path("start"),
            "--backend",
            self.path("backend"),
            "--runtime",
            self.path("runtime"),
            *more,
        )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_prints_two_documents(files: Files) -> None:
    result = files.render()
    assert (result.exit_code, result.stderr) == (0, "")
    assert [document["kind"] for document in yaml.safe_load_all(result.stdout)] == ["TrainingRuntime", "TrainJob"]


def test_prints_what_it_printed_before(files: Files) -> None:
    """Every byte, the prologue's too; UPDATE_GOLDEN=1 writes it anew, but not in CI."""
    files.start = make_start(
        command=["python", "train.py", "--note=$(date) costs $$5"],
        env={"SEED": "7", "EMPTY": ""},
        workDir="/workspace",
        gpusPerNode=8,
        timeLimit="1h30m",
    )
    files.start["metadata"]["uid"] = "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"
    printed = files.render().stdout
    if os.environ.get("UPDATE_GOLDEN"):
        assert not os.environ.get("CI")
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(printed)
    assert printed == GOLDEN.read_text()


def test_a_refusal_is_a_line_for_each_problem_with_its_own_class(files: Files) -> None:
    files.start = make_start(nodes=0, env={"A\nB": "x"})
    files.start["spec"]["request"]["spec"]["extensions"]["slurm/P\n\x1b[2J"] = {}
    files.runtime["spec"]["template"]["spec"]["suspend"] = False
    result = files.render()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        'ErrInvalid: env: the name "A\\nB" is not a C identifier: letters, digits and _, not beginning with a digit',
        "ErrInvalid: nodes: must be 1 to 100,000, not 0",
        "ErrUnsupported: slurm/P\\n\\x1b[2J: extension slurm/P\\n\\x1b[2J is not supported on Kubeflow",
        "ErrUnsupported: not-suspended: spec.template.spec.suspend must not be stated, and is false",
    ]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda f: f.backend["spec"].update(state="ReadOnly"), "ErrReadOnly: state: "),
        (lambda f: f.backend["spec"].update(state="Closed"), "ErrUnreachable: state: "),
        (lambda f: f.backend["metadata"].update(name="other"), "ErrUnreachable: state: "),
        (lambda f: f.backend["metadata"].update(namespace="team-b"), "ErrUnreachable: state: "),
        (lambda f: f.start["spec"].update(backend=5), "ErrInvalid: backend: must be a string, not 5"),
        (lambda f: f.start["spec"].update(backend=""), "ErrInvalid: backend: must have at least 1 character"),
        (lambda f: f.start["spec"].update(backend=".."), "ErrInvalid: backend: must be the name of a DispatchBackend"),
        (lambda f: f.runtime["metadata"].update(name="other"), "ErrUnsupported: kubeflow/RuntimeRef: "),
        (lambda f: f.runtime.update(kind="TrainingRuntime"), "ErrUnsupported: kubeflow/RuntimeRef: "),
        (lambda f: f.backend["spec"].update(runtimes=[]), "ErrUnsupported: kubeflow/RuntimeRef: "),
    ],
)
def test_another_backend_or_runtime_is_none(files: Files, change: Any, line: str) -> None:
    change(files)
    files.start["spec"]["request"]["spec"]["procsPerNode"] = 0
    result = files.render()
    assert result.exit_code == 1
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1


def test_a_backend_of_a_wrong_type_hides_nothing_else_that_is_wrong_with_the_request(files: Files) -> None:
    files.start = make_start(nodes=0)
    files.start["spec"]["backend"] = 5
    lines = files.render().stderr.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["backend", "nodes"]


@pytest.mark.parametrize(("namespace", "code"), [("team-a", 0), (None, 0), ("team-b", 1)])
def test_a_namespaced_runtime_must_be_in_the_starts_namespace(files: Files, namespace: str | None, code: int) -> None:
    reference = {"kind": "TrainingRuntime", "name": "torch-dispatch"}
    files.runtime["kind"] = "TrainingRuntime"
    files.runtime["metadata"]["namespace"] = namespace
    files.backend = make_backend(runtimes=[reference])
    files.start["spec"]["request"]["spec"]["extensions"]["kubeflow/RuntimeRef"] = reference
    assert files.render().exit_code == code


def test_a_cluster_wide_runtime_has_no_namespace_to_compare(files: Files) -> None:
    files.runtime["metadata"]["namespace"] = "elsewhere"
    assert files.render().exit_code == 0


def test_a_namespace_that_a_file_lacks_matches_any_and_is_left_out(files: Files) -> None:
    del files.start["metadata"]["namespace"]
    result = files.render("-o", "json")
    assert result.exit_code == 0
    assert all("namespace" not in item["metadata"] for item in json.loads(result.stdout)["items"])


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        ("start", lambda o: o.update(kind="Pod"), "must be a DispatchStart"),
        ("start", lambda o: o.update(apiVersion="v1"), "must be a DispatchStart"),
        ("backend", lambda o: o.update(kind="DispatchStart"), "must be a DispatchBackend"),
        ("backend", lambda o: o["spec"].update(state="open\n"), "spec.state must be"),
        ("runtime", lambda o: o.update(kind="TrainJob"), "must be a ClusterTrainingRuntime or TrainingRuntime"),
        ("runtime", lambda o: o["metadata"].clear(), "metadata.name must be a string"),
    ],
)
def test_a_file_of_something_else_exits_with_2(files: Files, part: str, change: Any, says: str) -> None:
    change(getattr(files, part))
    result = files.render()
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{part}.json: " in result.stderr
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_file_and_a_duplicate_key_exit_with_2(files: Files, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: 1\na: 2\n")
    for path, says in ((tmp_path / "none.yaml", "can't be read"), (tmp_path / "bad.yaml", ":2:1: duplicate key")):
        result = command(
            "render", "-f", str(path), "--backend", files.path("backend"), "--runtime", files.path("runtime")
        )
        assert result.exit_code == 2
        assert says in result.stderr


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["render", "-f", "-", "--backend", "-", "--runtime", "r.yaml"], "--filename and --backend"),
        (["render", "-f", "-", "--backend", "-", "--runtime", "-"], "--filename and --backend and --runtime"),
        (["check-runtime", "-f", "-", "--backend", "-"], "--filename and --backend"),
    ],
)
def test_standard_input_can_be_one_file_only(arguments: list[str], options: str) -> None:
    result = command(*arguments, stdin="{}")
    assert result.exit_code == 2
    assert f"only one file can be standard input, and {options} are" in result.stderr


def test_an_empty_namespace_matches_any_and_an_empty_uid_is_left_out(files: Files) -> None:
    files.start["metadata"].update(namespace="", uid="")
    files.backend["metadata"]["namespace"] = "team-b"
    result = files.render("-o", "json")
    assert result.exit_code == 0
    for item in json.loads(result.stdout)["items"]:
        assert not {"namespace", "ownerReferences"} & item["metadata"].keys()
        assert "dispatch.phpboyscout.uk/start-uid" not in item["metadata"]["annotations"]


def test_a_missing_option_exits_with_2() -> None:
    assert command("render").exit_code == 2


def test_check_runtime_is_silent_about_a_fit_runtime(files: Files) -> None:
    result = command("check-runtime", "-f", files.path("runtime"))
    assert (result.exit_code, result.output) == (0, "")
    result = command("check-runtime", "-f", "-", stdin=json.dumps(files.runtime))
    assert (result.exit_code, result.output) == (0, "")


def test_check_runtime_names_every_broken_rule(files: Files) -> None:
    files.runtime["spec"].pop("mlPolicy")
    node = files.runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    node["resources"] = {"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 1}}
    result = command("check-runtime", "-f", files.path("runtime"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert [line.split(": ")[:2] for line in result.stderr.splitlines()] == [
        ["ErrUnsupported", "known-policy"],
        ["ErrUnsupported", "no-gpu-resource"],
    ]
    assert "limits[nvidia.com/gpu]" in result.stderr
    assert all("; remedy: " in line for line in result.stderr.splitlines())
    assert result.stderr.splitlines()[1].endswith(
        "is stated, and the number of GPUs is the request's; "
        "remedy: remove it, and state gpusPerNode in the request; keep cpu and memory"
    )


def test_check_runtime_notes_which_requests_a_fit_runtime_refuses(files: Files) -> None:
    jobs = files.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    jobs.append({"name": "dataset-initializer", "template": {"spec": {"template": {"spec": {"containers": []}}}}})
    result = command("check-runtime", "-f", files.path("runtime"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "note: names-fit: every request is refused from submission 100 on: "
        'spec.template.spec.replicatedJobs[1].name is "dataset-initializer", which is long\n'
    )
    jobs[1]["name"] = "x" * 30
    result = command("check-runtime", "-f", files.path("runtime"))
    assert result.exit_code == 1
    assert result.stderr.startswith("ErrUnsupported: names-fit: spec.template.spec.replicatedJobs[1].name is ")
    assert result.stderr.endswith("; remedy: shorten the names of the replicated jobs\n")


def test_check_runtime_uses_the_backends_gpu_resource(files: Files) -> None:
    files.backend["spec"]["gpuResource"] = "amd.com/gpu"
    node = files.runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    node["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    result = command("check-runtime", "-f", files.path("runtime"), "--backend", files.path("backend"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("note: gpusPerNode: a request with it is refused: spec.")


RUNTIME = """\
# Ours since 2024.
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: torch, namespace: ""}
spec:
  mlPolicy:
    torch: {}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: trainer
            spec:
              ttlSecondsAfterFinished: 60   # A minute.
              # The pods.
              template:
                spec:
                  containers:
                    - name: node
                      image: "i"   # Replaced.
"""


def test_adapt_runtime_writes_a_fit_runtime_with_its_comments_and_says_what_it_changed(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(RUNTIME)
    result = command("adapt-runtime", "-f", str(tmp_path / "old.yaml"))
    assert result.exit_code == 0
    (tmp_path / "new.yaml").write_text(result.stdout)
    assert command("check-runtime", "-f", str(tmp_path / "new.yaml")).exit_code == 0
    removed = RUNTIME.replace("              ttlSecondsAfterFinished: 60   # A minute.\n", "")
    added = removed.replace("              # The pods.\n", "              backoffLimit: 0\n              # The pods.\n")
    want = added.replace(
        "                  containers:", "                  restartPolicy: Never\n                  containers:"
    )
    assert result.stdout == want
    assert [line.split(": ")[:2] for line in result.stderr.splitlines()] == [
        ["changed", "no-pod-retry"],
        ["changed", "no-pod-retry"],
        ["changed", "no-ttl"],
    ]


def test_adapt_runtime_writes_a_fit_runtime_as_it_is() -> None:
    first = command("adapt-runtime", "-f", "-", stdin=RUNTIME).stdout
    result = command("adapt-runtime", "-f", "-", stdin=first)
    assert (result.exit_code, result.stdout, result.stderr) == (0, first, "")


def test_adapt_runtime_names_what_it_can_not_mend_and_mends_the_rest(files: Files) -> None:
    files.runtime["spec"]["mlPolicy"] = {"mpi": {}}
    files.runtime["spec"]["podGroupPolicy"] = {"volcano": {}}
    result = command("adapt-runtime", "-f", files.path("runtime"))
    assert result.exit_code == 1
    assert "podGroupPolicy" not in yaml.safe_load(result.stdout)["spec"]
    changed, note, refused = result.stderr.splitlines()
    assert changed.startswith("changed: no-pod-group: spec.podGroupPolicy removed, was an object; reason: ")
    assert note == "note: comments and layout of the file are not kept"
    assert refused.startswith("ErrUnsupported: known-policy: spec.mlPolicy.mpi is not supported")


def test_adapt_runtime_keeps_the_meaning_where_it_can_not_keep_the_text() -> None:
    """What an alias stands for can't be changed in one place alone."""
    side = "- name: side\n                      resources: &all {limits: {nvidia.com/gpu: 1, cpu: 2}}\n                    - name: node"
    text = RUNTIME.replace(
        "- name: node\n                      image",
        f"{side}\n                      resources: *all\n                      image",
    )
    result = command("adapt-runtime", "-f", "-", stdin=text)
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == "note: comments and layout of the file are not kept"
    pod = yaml.safe_load(result.stdout)["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    limits = [container["resources"]["limits"] for container in pod["spec"]["containers"]]
    assert limits == [{"nvidia.com/gpu": 1, "cpu": 2}, {"cpu": 2}]


def test_adapt_runtime_reads_as_kubectl_what_its_writer_can_not_read() -> None:
    """A date of no calendar is text."""
    text = RUNTIME.replace('namespace: ""', "annotations: {since: 2024-99-99}")
    result = command("adapt-runtime", "-f", "-", stdin=text)
    assert result.exit_code == 0
    assert 'since: "2024-99-99"' in result.stdout
    assert result.stderr.splitlines()[-1] == "note: comments and layout of the file are not kept"


def test_adapt_runtime_uses_the_backends_gpu_resource(files: Files) -> None:
    files.backend["spec"]["gpuResource"] = "amd.com/gpu"
    node = files.runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    node["resources"] = {"limits": {"amd.com/gpu": 1, "vpc.amazonaws.com/efa": 1}}
    result = command("adapt-runtime", "-f", files.path("runtime"), "--backend", files.path("backend"))
    assert result.exit_code == 0
    assert "vpc.amazonaws.com/efa" in result.stdout
    assert "amd.com/gpu" not in result.stdout


def test_adapt_runtime_exits_with_2_about_what_is_no_runtime() -> None:
    result = command("adapt-runtime", "-f", "-", stdin="a: 1\na: 2\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "duplicate key" in result.stderr


def test_crds_prints_the_crds() -> None:
    result = command("crds")
    assert result.exit_code == 0
    assert tuple(yaml.safe_load_all(result.stdout)) == crds()


@pytest.mark.parametrize("name", ["run", "render", "check-runtime", "adapt-runtime", "crds"])
def test_help_teaches_with_an_example(name: str) -> None:
    result = command(name, "--help")
    assert result.exit_code == 0
    assert f"\n    dispatch-operator {name}" in result.stdout
