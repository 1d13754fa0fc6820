"""`make bench`: the operator against a bare client that makes the fewest requests a correct Start can make.

Both start the same number of jobs on the same control plane, one after the other, in one run. Only their ratio says
something: the machine and the control plane are the limit of both.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from controlplane import Cluster, running
from dispatch_operator.kube.client import Cluster as Api
from dispatch_operator.kube.client import connected
from dispatch_operator.reconcile.ownership import owner_reference
from dispatch_operator.render import read_backend, render_copy, render_train_job, terms_of

ROOT = Path(__file__).parents[1]
STARTS = 200
SIDE_BY_SIDE = 20
CALL_SECONDS = 30.0
DEADLINE_SECONDS = 300.0
POLL_SECONDS = 0.2
NAMESPACES = ("floor", "operator")
Object = dict[str, Any]


def _load(file: str) -> Object:
    loaded: Object = yaml.safe_load((ROOT / "deploy" / file).read_text())
    return loaded


def _starts(namespace: str) -> list[Object]:
    made = []
    for number in range(1, STARTS + 1):
        start = _load("samples/start.yaml")
        start["metadata"] |= {"name": f"start-{number}", "namespace": namespace}
        start["spec"]["request"]["submission"] = number
        made.append(start)
    return made


async def _floor(api: Api) -> float:
    """Start all jobs with the five requests that no correct Start can do without; return the seconds it took."""
    backend = read_backend(_load("samples/backend.yaml"))
    slots = asyncio.Semaphore(SIDE_BY_SIDE)
    begun = time.monotonic()
    await asyncio.gather(*(_bare_start(api, slots, start, backend) for start in _starts("floor")))
    return time.monotonic() - begun


async def _bare_start(api: Api, slots: asyncio.Semaphore, start: Object, backend: Any) -> None:  # noqa: ANN401
    start["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    async with slots:
        runtime = await api.get("ClusterTrainingRuntime", None, "torch-dispatch", timeout=CALL_SECONDS) or {}
        copy = await api.create("TrainingRuntime", "floor", render_copy(start, runtime), timeout=CALL_SECONDS)
        body = render_train_job(start, terms_of(backend), copy["spec"])
        # The garbage collector would take what a DispatchStart that does not exist owns.
        del body["metadata"]["ownerReferences"]
        job = await _created(api, body)
        patch = {"metadata": {"ownerReferences": [owner_reference(job)]}}
        await api.patch("TrainingRuntime", "floor", copy["metadata"]["name"], patch, timeout=CALL_SECONDS)
        await api.get("TrainJob", "floor", job["metadata"]["name"], timeout=CALL_SECONDS)


async def _created(api: Api, body: Object) -> Object:
    while True:
        try:
            return await api.create("TrainJob", "floor", body, timeout=CALL_SECONDS)
        except Exception as error:
            if not getattr(error, "webhook_has_not_seen_the_copy", False):
                raise
            await asyncio.sleep(0.05)


@contextmanager
def _operator_runs(cluster: Cluster) -> Iterator[None]:
    command = [Path(sys.executable).with_name("dispatch-operator"), "run", "--namespace", "operator"]
    with (cluster.logs / "dispatch-operator.log").open("ab") as log:
        process = subprocess.Popen([*command, "--kubeconfig", cluster.kubeconfig], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(CALL_SECONDS)


def _operator(cluster: Cluster) -> float:
    """Start an operator before which all DispatchStarts lie, and return the seconds until the last of them is Gated."""
    with _operator_runs(cluster):
        cluster.kubectl("wait", "-n", "operator", "dispatchbackend/default", "--for=condition=Ready", "--timeout=60s")
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": _starts("operator")})
    cluster.kubectl("create", "--filename=-", input=body)
    begun = time.monotonic()
    with _operator_runs(cluster):
        while time.monotonic() - begun < DEADLINE_SECONDS:
            phases = cluster.kubectl("get", "dstart", "-n", "operator", "-o", "jsonpath={.items[*].status.phase}")
            if Counter(phases.split())["Gated"] == STARTS:
                return time.monotonic() - begun
            time.sleep(POLL_SECONDS)
    raise TimeoutError(f"not all of {STARTS} starts were Gated within {DEADLINE_SECONDS:g} s")


async def _connect_and_measure(kubeconfig: Path) -> float:
    async with connected(str(kubeconfig)) as api:
        return await _floor(api)


def main() -> None:
    """Measure both and print the ratio."""
    with running(extra_manifests=sorted((ROOT / "crds").glob("*.yaml"))) as cluster:
        for namespace in NAMESPACES:
            cluster.kubectl("create", "namespace", namespace)
            cluster.kubectl("apply", "-n", namespace, "-f", str(ROOT / "deploy/samples/backend.yaml"))
        cluster.kubectl("apply", "-f", str(ROOT / "deploy/runtimes/torch-dispatch.yaml"))
        floor = asyncio.run(_connect_and_measure(cluster.kubeconfig))
        operator = _operator(cluster)
        made = [
            request
            for request in cluster.requests()
            if request.agent.startswith("dispatch-operator") and request.namespace == "operator"
        ]
    print(f"{STARTS} starts, {SIDE_BY_SIDE} at a time")
    print(f"  bare client  {STARTS / floor:6.1f} starts/s")
    print(f"  operator     {STARTS / operator:6.1f} starts/s, its start-up included")
    print(f"  ratio        {floor / operator:6.2f} of the floor's throughput")
    print(f"  requests     {len(made) / STARTS:6.2f} a start in its namespace, and one read of the runtime")


if __name__ == "__main__":
    main()
