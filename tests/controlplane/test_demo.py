"""`make demo`: the story that it tells, on a control plane of its own and on the cluster that kubectl talks to."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import Cluster, running

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    """A cluster with Trainer and JobSet, and with nothing of ours."""
    with running() as cluster:
        yield cluster


def demo(*arguments: str, answer: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools"), **environment},
        input=answer,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def tells_the_whole_story(shown: subprocess.CompletedProcess[str]) -> None:
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "▸ Done" in shown.stdout
    for phase in ("Gated", "Running", "Succeeded"):
        assert f"hello     {phase}" in shown.stdout
    problems = [line for line in shown.stdout.splitlines() if line.startswith("  - ") and "refused" not in line]
    assert len(problems) > 5
    assert all(": " in problem and "see the condition" not in problem for problem in problems)


def everything(cluster: Cluster) -> set[str]:
    """What the demo might leave behind."""
    found = cluster.kubectl("get", "namespaces,crds,clustertrainingruntimes", "--output=name")
    return set(found.splitlines())


@pytest.mark.cluster
def test_the_demo_tells_the_whole_story() -> None:
    tells_the_whole_story(demo())


@pytest.mark.cluster
def test_on_the_current_cluster_it_asks_and_leaves_nothing_behind(bare: Cluster) -> None:
    before = everything(bare)
    refused = demo("--cluster", "current", answer="n\n", KUBECONFIG=str(bare.kubeconfig))
    assert (refused.returncode, "Aborted" in refused.stderr, everything(bare)) == (1, True, before)
    for told in (bare.server, "the CRDs of DispatchStart", "torch-dispatch", "create the namespace dispatch-demo-"):
        assert told in refused.stdout
    assert "Kubeflow Trainer" not in refused.stdout, "it is there"
    shown = demo("--cluster", "current", answer="y\n", KUBECONFIG=str(bare.kubeconfig))
    shown.stdout = shown.stdout.partition("Go on?")[2]
    tells_the_whole_story(shown)
    assert everything(bare) == before


@pytest.mark.cluster
def test_on_the_current_cluster_it_leaves_alone_what_was_there(bare: Cluster) -> None:
    bare.kubectl("apply", f"--filename={ROOT / 'crds'}", f"--filename={ROOT / 'deploy/runtimes/torch-dispatch.yaml'}")
    before = everything(bare)
    shown = demo("--cluster", "current", answer="y\n", KUBECONFIG=str(bare.kubeconfig))
    assert "which is missing" not in shown.stdout
    shown.stdout = shown.stdout.partition("Go on?")[2]
    tells_the_whole_story(shown)
    assert everything(bare) == before


def test_without_a_cluster_it_says_so(tmp_path: Path) -> None:
    shown = demo("--cluster", "current", answer="y\n", KUBECONFIG=str(tmp_path / "none"))
    assert (shown.returncode, "no cluster to show it on" in shown.stderr) == (1, True)


def test_kueue_is_not_set_up_on_a_cluster_of_others() -> None:
    shown = demo("--cluster", "current", "--kueue")
    assert (shown.returncode, "leave --cluster out" in shown.stderr) == (2, True)
