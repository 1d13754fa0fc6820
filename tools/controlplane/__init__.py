"""An embedded Kubernetes control plane with Kubeflow Trainer, JobSet and Kueue, for tests, benchmarks and the demo.

    from controlplane import running

    with running(kueue=True, extra_manifests=[Path("crds/dispatch.phpboyscout.uk_dispatchstarts.yaml")]) as cluster:
        print(cluster.kubectl("get", "nodes"))

It needs no Docker: real programs, built from Go modules once and cached, listen on loopback, and kwok simulates the
nodes and their pods. How a pod ends is chosen by annotations; `data/stages.yaml` says which.
"""

from controlplane.build import build_helm
from controlplane.cluster import Cluster
from controlplane.lifecycle import ControlPlane, running
from controlplane.processes import ProcessDiedError

__all__ = ["Cluster", "ControlPlane", "ProcessDiedError", "build_helm", "running"]
