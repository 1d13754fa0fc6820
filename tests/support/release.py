"""A release of the chart on a cluster, by helm's own commands."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane import Cluster
from support.chart import CHART, helm

STAYS = {"podAnnotations": {"test.kwok.x-k8s.io/outcome": "run-forever"}}
"""Kwok lets a pod succeed after a second unless it is told otherwise."""


@dataclass(frozen=True)
class Release:
    """One release, which may not be there yet."""

    cluster: Cluster
    namespace: str
    name: str
    chart: Path = CHART

    def helm(self, command: str, *arguments: str, **values: Any) -> str:
        """Run one of helm's commands on it, wait for what it makes, and return what was printed.

        Raises:
            HelmError: It failed.
        """
        chart = [str(self.chart), "--values=-"] if command in {"install", "upgrade"} else []
        where = f"--namespace={self.namespace}"
        waits = ["--wait"] if command != "test" else []
        home = {"HELM_CACHE_HOME": str(self.cluster.folder / "helm-cache")}
        return helm(
            command,
            self.name,
            *chart,
            where,
            *waits,
            *arguments,
            input=json.dumps({**STAYS, **values}),
            environment={**self.cluster.environment, **home},
        )
