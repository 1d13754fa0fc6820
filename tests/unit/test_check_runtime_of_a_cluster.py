"""check-runtime with KIND/NAME: a runtime is read live, over real HTTP, and judged as one of a file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dispatch_operator.cli.main import main
from support.builders import make_backend, make_runtime
from support.served import Served

APIS = "/apis/trainer.kubeflow.org/v1alpha1"


def check(served: Served, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["check-runtime", "--kubeconfig", str(served.kubeconfig), *arguments])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path).running() as made:
        yield made


@pytest.mark.parametrize(
    "kind",
    [
        "ClusterTrainingRuntime",
        "clustertrainingruntime",
        "clustertrainingruntimes",
        "clustertrainingruntime.trainer.kubeflow.org",
    ],
)
def test_a_fit_runtime_of_the_cluster_passes(served: Served, kind: str) -> None:
    served.objects[f"{APIS}/clustertrainingruntimes/torch"] = make_runtime("torch")
    result = check(served, f"{kind}/torch")
    assert (result.exit_code, result.output) == (0, "")


def test_a_runtime_of_a_namespace_is_judged_with_the_backends_resource(served: Served, tmp_path: Path) -> None:
    runtime = make_runtime("torch") | {"kind": "TrainingRuntime"}
    runtime["spec"]["podGroupPolicy"] = {"volcano": {}}
    served.objects[f"{APIS}/namespaces/team-a/trainingruntimes/torch"] = runtime
    (tmp_path / "backend.json").write_text(json.dumps(make_backend(gpuResource="google.com/tpu")))
    result = check(served, "TrainingRuntime/torch", "-n", "team-a", "--backend", str(tmp_path / "backend.json"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("ErrUnsupported: no-pod-group: spec.podGroupPolicy is stated")


def test_what_the_cluster_has_not_is_told(served: Served) -> None:
    result = check(served, "ClusterTrainingRuntime/torch")
    assert (result.exit_code, result.stderr) == (2, 'Error: there is no ClusterTrainingRuntime "torch"\n')
    result = check(served, "TrainingRuntime/torch", "-n", "team-a")
    assert (result.exit_code, result.stderr) == (2, 'Error: there is no TrainingRuntime "torch" in team-a\n')


def test_a_context_names_another_cluster_of_the_kubeconfig(served: Served) -> None:
    served.objects[f"{APIS}/clustertrainingruntimes/torch"] = make_runtime("torch")
    config = json.loads(served.kubeconfig.read_text())
    served.kubeconfig.write_text(json.dumps({**config, "current-context": ""}))
    assert check(served, "ClusterTrainingRuntime/torch", "--context", "c").exit_code == 0
    result = check(served, "ClusterTrainingRuntime/torch", "--context", "other")
    assert (result.exit_code, "other" in result.stderr) == (2, True)


def test_a_cluster_that_does_not_answer_is_told(served: Served) -> None:
    served.lead_to(1)
    result = check(served, "ClusterTrainingRuntime/torch")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "ClusterTrainingRuntime torch" in result.stderr
    served.kubeconfig.write_text("{}")
    result = check(served, "ClusterTrainingRuntime/torch")
    assert result.exit_code == 2
    assert "can't be used" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name either a runtime in the cluster, as KIND/NAME, or a file"),
        (["TrainingRuntime/torch"], "say in which namespace the TrainingRuntime is"),
        (["TrainingRuntime/torch", "-n", "Bad Name"], '"Bad Name" is not the name of a namespace'),
        (["TrainingRuntime/torch", "-n", ""], '"" is not the name of a namespace'),
        (["torch"], '"torch" is neither TrainingRuntime/NAME nor ClusterTrainingRuntime/NAME'),
        (["Pod/torch"], '"Pod/torch" is neither'),
        (["ClusterTrainingRuntime/"], '"" is not the name of a ClusterTrainingRuntime'),
        (["ClusterTrainingRuntime/.."], '".." is not the name of a ClusterTrainingRuntime'),
        (["ClusterTrainingRuntime/a/b"], '"a/b" is not the name of a ClusterTrainingRuntime'),
        (["ClusterTrainingRuntime/torch", "-f", "r.yaml"], "name either a runtime"),
        (
            ["-f", "r.yaml", "-n", "team-a"],
            "--namespace, --kubeconfig and --context are about a runtime in the cluster",
        ),
    ],
)
def test_what_can_not_be_meant_is_not_asked_for(served: Served, arguments: list[str], says: str) -> None:
    result = check(served, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert served.asked == []
