"""The quick start works literally: what its page has in `sh` blocks is carried out, on a cluster with nothing of ours."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import Cluster, running
from support.pages import Page

ROOT = Path(__file__).parents[2]
BLOCKS = [block.text for block in Page(ROOT / "docs" / "quick-start.md").blocks if block.language == "sh"]
ACTIVATION = ". ~/.dispatch/bin/activate\n"
"""What makes the command of step 2 known; here that of this Python is."""


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.mark.cluster
def test_from_an_empty_cluster_to_a_job_that_succeeded(bare: Cluster) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(bare.kubeconfig), "PATH": path}
    operator: subprocess.Popen[bytes] | None = None
    printed: list[str] = []
    try:
        for text in BLOCKS:
            block = text.replace(ACTIVATION, "")
            if block.startswith("dispatch-operator run"):
                operator = subprocess.Popen(["/bin/sh", "-c", f"exec {block}"], cwd=ROOT, env=environment)
                continue
            done = subprocess.run(
                ["/bin/sh", "-ec", block], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            printed.append(done.stdout)
        assert operator is not None
        operator.send_signal(signal.SIGINT)
        assert operator.wait(20) == 0
    finally:
        if operator is not None:
            operator.kill()
    whole = "".join(printed)
    for told in ("hello   Gated", "hello   Succeeded", "nodes: must be 1 to 100,000, not 0", "hello unchanged"):
        assert told in whole, whole
    assert "dispatch" not in bare.kubectl("get", "namespaces,crds,clustertrainingruntimes", "--output=name")
