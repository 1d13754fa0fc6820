"""The runtimes of deploy/runtimes: each is ready for dispatch, and says what it is."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dispatch_operator.checks.runtime import POLICIES
from dispatch_operator.cli.main import main

FILES = sorted((Path(__file__).parents[2] / "deploy" / "runtimes").glob("*.yaml"))


def test_there_is_one_for_each_policy_and_one_for_none() -> None:
    assert {file.stem for file in FILES} == {f"{policy}-dispatch" for policy in (*POLICIES, "plain")}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_breaks_no_rule_and_bears_the_name_of_its_policy(file: Path) -> None:
    result = CliRunner().invoke(main, ["check-runtime", "-f", str(file)])
    assert (result.exit_code, result.stderr) == (0, "")
    runtime = yaml.safe_load(file.read_text())
    policy = next((name for name in POLICIES if name in runtime["spec"]["mlPolicy"]), "plain")
    assert runtime["metadata"]["name"] == file.stem
    assert runtime["metadata"]["labels"] == {"trainer.kubeflow.org/framework": policy}
