"""A burst of Starts on the real control plane: the operator, the bare client, kubectl and the Kubeflow SDK in turn."""

import json
import subprocess
import time
from collections.abc import Iterable
from typing import NamedTuple

from bench.bare import Bare, bare_client
from bench.bodies import train_job_on
from bench.latency import GATED, latency
from bench.process import operator
from bench.starts import ROOT, make_start
from controlplane import Cluster, running

RUNTIME = "torch-dispatch"
SDK = ROOT / ".venv" / "sdk" / "bin" / "python"
FLOOR, SINGLE_FLOOR, OPERATOR, KUBECTL, KUBEFLOW = "floor", "single-floor", "operator", "kubectl", "kubeflow"


class OperatorBurst(NamedTuple):
    """What the operator did."""

    starts: int
    seconds: float
    """From the moment at which everything was listed."""
    cpu: float
    requests: float
    """A Start, Events, lists and watches aside."""


class Bursts(NamedTuple):
    """All that was measured in one run."""

    floor: Bare
    operator: OperatorBurst
    single_floor: Bare
    single: float
    """Seconds at the median of one Start of the operator's."""
    kubectl: float
    """Jobs a second, applied one after the other."""
    sdk: float
    """The same with `train()`; 0 where the SDK is not installed."""


def measure_bursts(count: int, *, singles: int) -> Bursts:
    """Let each start its jobs on one control plane."""
    with running(extra_manifests=sorted((ROOT / "crds").glob("*.yaml"))) as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / "deploy/runtimes/torch-dispatch.yaml"))
        for namespace in (FLOOR, SINGLE_FLOOR, OPERATOR, KUBECTL, KUBEFLOW):
            cluster.kubectl("create", "namespace", namespace)
        _prove(cluster)
        half = count // 2
        # The control plane becomes slower with all that it holds: half of the floor before, and half after.
        _create(cluster, FLOOR, range(1, half + 1))
        before = bare_client(cluster.kubeconfig, FLOOR)
        burst = _operator_burst(cluster, count)
        _create(cluster, FLOOR, range(half + 1, count + 1))
        after = bare_client(cluster.kubeconfig, FLOOR)
        floor = Bare(count, before.seconds + after.seconds, before.cpu + after.cpu, [])
        _create(cluster, SINGLE_FLOOR, range(1, singles + 1))
        single_floor = bare_client(cluster.kubeconfig, SINGLE_FLOOR, at_once=1)
        with operator(cluster.kubeconfig, "--namespace", OPERATOR) as process:
            single = latency(cluster.kubeconfig, process, OPERATOR, range(count + 1, count + 1 + singles))
        return Bursts(floor, burst, single_floor, single, _kubectl(cluster, singles), _sdk(cluster, singles))


def measure_kueue(count: int) -> float:
    """Return the requests a Start of a burst through Kueue."""
    with running(kueue=True, extra_manifests=sorted((ROOT / "crds").glob("*.yaml"))) as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / "deploy/runtimes/torch-dispatch.yaml"))
        cluster.kubectl("create", "namespace", OPERATOR)
        queue = (
            (ROOT / "deploy/samples/kueue/queue.yaml").read_text().replace("namespace: demo", f"namespace: {OPERATOR}")
        )
        cluster.kubectl("create", "--filename=-", input=queue)
        _prove(cluster, "samples/kueue/backend.yaml", "--all-namespaces")
        return _operator_burst(cluster, count, "--all-namespaces").requests


def _prove(cluster: Cluster, backend: str = "samples/backend.yaml", *scope: str) -> None:
    """Let the operator prove its backend."""
    cluster.kubectl("create", "-n", OPERATOR, "-f", str(ROOT / "deploy" / backend))
    with operator(cluster.kubeconfig, *(scope or ("--namespace", OPERATOR))):
        cluster.kubectl("wait", "-n", OPERATOR, "dispatchbackend/default", "--for=condition=Ready", "--timeout=90s")


def _create(cluster: Cluster, namespace: str, numbers: Iterable[int]) -> None:
    items = [make_start(number, namespace) for number in numbers]
    cluster.kubectl("create", "--filename=-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _operator_burst(cluster: Cluster, count: int, *scope: str) -> OperatorBurst:
    """Start an operator before which all DispatchStarts lie, and wait until the last of them is Gated."""
    _create(cluster, OPERATOR, range(1, count + 1))
    asked = _requests(cluster)
    with operator(cluster.kubeconfig, *(scope or ("--namespace", OPERATOR))) as process:
        begun, cpu = time.monotonic(), process.cpu
        process.says(GATED, times=count)
        seconds, cpu = time.monotonic() - begun, process.cpu - cpu
        # What follows the last status belongs to a settled Start, too.
        time.sleep(2.0)
    return OperatorBurst(count, seconds, cpu, (_requests(cluster) - asked) / count)


def _requests(cluster: Cluster) -> int:
    asides = {"events", "leases"}
    return sum(
        request.agent.startswith("dispatch-operator")
        and request.verb not in {"list", "watch"}
        and bool(request.resource)
        and request.resource not in asides
        for request in cluster.requests()
    )


def _kubectl(cluster: Cluster, count: int) -> float:
    """Apply one TrainJob after the other, as a loop in a shell does."""
    begun = time.monotonic()
    for number in range(1, count + 1):
        body = json.dumps(train_job_on(RUNTIME, number))
        cluster.kubectl("apply", "-n", KUBECTL, "--filename=-", input=body)
    return count / (time.monotonic() - begun)


def _sdk(cluster: Cluster, count: int) -> float:
    """Call the Kubeflow SDK's `train()` as often."""
    if not SDK.exists():
        return 0.0
    program = ROOT / "tools" / "bench" / "sdk_train.py"
    command = [str(SDK), str(program), str(cluster.kubeconfig), KUBEFLOW, RUNTIME, str(count)]
    return count / float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
