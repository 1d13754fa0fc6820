"""The chart, as helm renders it."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from controlplane import build_helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart" / "dispatch-operator"
RELEASE = "dispatch-operator"
Object = dict[str, Any]


class HelmError(RuntimeError):
    """Helm failed; the message is what it printed."""


@cache
def _program() -> Path:
    return build_helm()


def helm(
    *arguments: str,
    input: str | None = None,  # noqa: A002 - as subprocess.run calls it.
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run helm, which is built at its first use, and return what it printed.

    Args:
        arguments: Its own.
        input: What it reads.
        environment: Variables besides those of this process, such as a cluster's.

    Raises:
        HelmError: It exited with a status other than 0.
    """
    done = subprocess.run(
        [_program(), *arguments],
        input=input,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise HelmError(done.stdout + done.stderr)
    return done.stdout


def render(
    *arguments: str, namespace: str, release: str = RELEASE, values: Mapping[str, Any] | None = None
) -> list[Object]:
    """Return the objects of a release, in the order in which helm would make them.

    Args:
        arguments: Further ones of `helm template`.
        namespace: The release's.
        release: Its name.
        values: What differs from the chart's own.

    Raises:
        HelmError: The chart refused the values.
    """
    command = ("template", release, str(CHART), f"--namespace={namespace}", "--values=-", *arguments)
    return documents(helm(*command, input=json.dumps(values or {})))


def documents(text: str) -> list[Object]:
    """Return the objects in a stream of YAML documents."""
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """Return the objects of one kind."""
    return [one for one in objects if one["kind"] == kind]
