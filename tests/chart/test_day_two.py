"""Upgrading from 0.1 and uninstalling, on a real API server, with objects in place."""

import json
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Cluster, running
from controlplane.kubectl import KubectlError
from support.builders import NAME, make_backend, make_runtime, make_start
from support.chart import RELEASE, ROOT, Object
from support.install import apply, ensure_namespace
from support.release import Release
from support.service import serving
from support.waiting import throughout, until

CRDS_0_1 = ROOT / "tests" / "data" / "crds-0.1"
SYSTEM, TEAM = "dispatch-system", "team-a"
ENDED: Object = {
    "phase": "Succeeded",
    "observedGeneration": 1,
    "reference": {"name": f"{TEAM}/{NAME}", "uid": "00000000-0000-0000-0000-000000000001"},
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "as 0.1 wrote it",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-11-30T12:00:00Z",
        }
        for kind in ("RequestValid", "Started", "Succeeded", "Ready")
    ],
}
"""What 0.1 wrote of a job that has ended."""
pytestmark = pytest.mark.cluster


class OldCluster:
    """A cluster with a release of 0.1, which had its CRDs in the chart's folder `crds`, and what a team has in it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.release = Release(cluster, SYSTEM, RELEASE)
        for namespace in (SYSTEM, TEAM):
            ensure_namespace(cluster, namespace)
        (folder / "Chart.yaml").write_text(f"{{apiVersion: v2, name: {RELEASE}, version: 0.1.0}}")
        shutil.copytree(CRDS_0_1, folder / "crds")
        Release(cluster, SYSTEM, RELEASE, folder).helm("install")
        forever = make_runtime("forever", pod_annotations={"test.kwok.x-k8s.io/outcome": "run-forever"})
        runtimes = [{"kind": "ClusterTrainingRuntime", "name": name} for name in ("torch-dispatch", "forever")]
        self.apply(make_runtime(), forever, make_backend(runtimes=runtimes, timeouts={"hold": "100ms"}))

    def apply(self, *objects: Object) -> None:
        for obj in objects:
            obj.pop("status", None)
            obj["metadata"].pop("creationTimestamp", None)
            if obj["kind"] != "ClusterTrainingRuntime":
                obj["metadata"]["namespace"] = TEAM
        apply(self.cluster, objects)

    def start(self, name: str, submission: int, runtime: str = "torch-dispatch", gate: str = "Closed") -> None:
        image = {"ref": "registry.example/llama:1"}
        extensions = {"dispatch/Image": image, "kubeflow/RuntimeRef": {"name": runtime}}
        self.apply(make_start(name, submission=submission, gate=gate, extensions=extensions))

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={TEAM}", *arguments)

    def all(self, kind: str) -> dict[str, Object]:
        """Return all objects of a kind by their names."""
        found = json.loads(self.kubectl("get", kind, "--output=json"))["items"]
        return {one["metadata"]["name"]: one for one in found}

    def until_phase(self, name: str, phase: str) -> Object:
        def reached() -> bool:
            return bool(self.all("dispatchstarts")[name]["status"].get("phase") == phase)

        until(f"{name} is {phase}", reached)
        return self.all("dispatchstarts")[name]

    @property
    def account(self) -> Path:
        """A kubeconfig of the release's account."""
        return self.cluster.kubeconfig_for(SYSTEM, RELEASE)

    def may(self) -> bool:
        """Tell whether the account may still do anything."""
        user = f"--as=system:serviceaccount:{SYSTEM}:{RELEASE}"
        try:
            return "yes" in self.kubectl("auth", "can-i", "list", "dispatchstarts", user)
        except KubectlError:
            return False


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldCluster]:
    with running() as cluster:
        yield OldCluster(cluster, tmp_path_factory.mktemp("chart-0.1"))


def stored(obj: Object) -> tuple[Any, ...]:
    """Return what an upgrade of the CRDs must not change; what an absent kind means is written out since then."""
    spec = deepcopy(obj["spec"])
    spec["request"]["spec"]["extensions"]["kubeflow/RuntimeRef"].setdefault("kind", "ClusterTrainingRuntime")
    return obj["metadata"]["uid"], obj["metadata"]["generation"], spec, obj.get("status")


def test_an_upgrade_of_the_crds_changes_no_object_and_the_operator_goes_on_with_them(old: OldCluster) -> None:
    old.start("ended", 1)
    old.start("unseen", 2)
    old.kubectl(
        "patch",
        "dispatchstart",
        "ended",
        "--subresource=status",
        "--type=merge",
        f"--patch={json.dumps({'status': ENDED})}",
    )
    before = {name: stored(one) for name, one in old.all("dispatchstarts").items()}
    assert before["ended"][-1] == ENDED

    # What is in a chart's folder `crds` helm installs, and never upgrades: it is none of its release.
    old.release.helm("upgrade", "--take-ownership", "--force-conflicts")
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        wanted = yaml.safe_load(file.read_text())
        name = wanted["metadata"]["name"]
        held = json.loads(old.cluster.kubectl("get", "crd", name, "--output=json"))
        apply_again = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", f"--filename={file}")
        assert json.loads(old.cluster.kubectl(*apply_again, "--output=json"))["spec"] == held["spec"]
        assert held["status"]["storedVersions"] == ["v1alpha1"]
    assert {name: stored(one) for name, one in old.all("dispatchstarts").items()} == before

    with serving(old.account, "--all-namespaces"):
        old.until_phase("unseen", "Gated")
        old.kubectl("patch", "dispatchstart", "unseen", "--type=merge", '--patch={"spec":{"gate":"Open"}}')
        done = old.until_phase("unseen", "Succeeded")
        # What 0.1 had no field for.
        assert done["status"]["outcome"]["state"] == "Succeeded"
        assert "epoch" in done["status"]
        assert old.all("dispatchstarts")["ended"]["status"]["phase"] == "Succeeded"
    # An ended one never runs again.
    assert list(old.all("trainjobs")) == [NAME.removesuffix("1") + "2"]


def test_what_the_chart_leaves_runs_on_and_can_be_deleted(old: OldCluster) -> None:
    with serving(old.account, "--all-namespaces"):
        old.start("runs", 3, "forever", gate="Open")
        old.start("waits", 4)
        old.until_phase("runs", "Running")
        old.until_phase("waits", "Gated")
    old.release.helm("uninstall")
    until("the account has no rights any more", lambda: not old.may())
    assert {"runs", "waits"} <= set(old.all("dispatchstarts"))
    jobs = old.all("trainjobs")
    running_job, waiting_job = (NAME.removesuffix("1") + number for number in ("3", "4"))
    assert {running_job, waiting_job} <= set(jobs)

    def job_runs() -> bool:
        pods = old.all("pods").values()
        return any(
            pod["status"]["phase"] == "Running" and pod["metadata"]["name"].startswith(running_job) for pod in pods
        )

    throughout("it runs on", job_runs, seconds=2)

    old.kubectl("delete", "dispatchstart", "waits", "--timeout=60s")
    until(
        "the one that waited is collected",
        lambda: waiting_job not in {*old.all("trainjobs"), *old.all("trainingruntimes")},
    )

    old.kubectl("delete", "dispatchstart", "runs", "--cascade=foreground", "--wait=false")
    until("its copy is collected", lambda: running_job not in old.all("trainingruntimes"))
    # The TrainJob may be gone before its copy is; where it is not, it waits for an operator.
    old.release.helm("install")
    with serving(old.account, "--all-namespaces"):
        until(
            "it is collected",
            lambda: "runs" not in old.all("dispatchstarts") and running_job not in old.all("trainjobs"),
        )
