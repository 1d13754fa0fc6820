"""The commands `render` and `crds`, which need no cluster (docs/contract.md, Command line)."""

from collections.abc import Mapping
from typing import Any, cast

import click

from dispatch_operator.api.crds import crds
from dispatch_operator.api.group import API_VERSION, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind, RuntimeKind
from dispatch_operator.api.models import Backend
from dispatch_operator.api.quoting import escaped
from dispatch_operator.checks.backend import backend_problem
from dispatch_operator.checks.request import request_problems
from dispatch_operator.cli.files import UnreadableError, backend_of, must_share_no_stdin, read
from dispatch_operator.cli.output import Command, print_out, refuse
from dispatch_operator.documents import to_json, to_yaml
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.reading import RecordError, read_dispatch_start, read_record
from dispatch_operator.records.trainer import TrainingRuntime
from dispatch_operator.render import problems, render_copy, render_train_job, runtime_reference
from dispatch_operator.render.terms import terms_of

Object = Mapping[str, Any]


@click.command("render", cls=Command)
@click.option("-f", "--filename", "start_file", required=True, metavar="START.yaml", help="The DispatchStart.")
@click.option("--backend", "backend_file", required=True, metavar="BACKEND.yaml", help="Its DispatchBackend.")
@click.option("--runtime", "runtime_file", required=True, metavar="RUNTIME.yaml", help="The runtime that it names.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="Format.")
def render_command(start_file: str, backend_file: str, runtime_file: str, output: str) -> None:
    """Print what a DispatchStart becomes, or why it is refused.

    It makes steps 1 to 4 of a Start without a cluster, exactly as the operator makes them, and prints the two objects
    that the operator would create: the copy of the runtime, and the TrainJob. Whether the backend has proved its
    gates is not looked at.

    Files are YAML or JSON, as for kubectl; "-" is standard input, for one of them. A metadata.namespace or metadata.uid
    that is absent or empty is not known: such a namespace matches any and is left out of what is printed, and without
    the DispatchStart's UID the owner reference and the start-uid annotation are left out.

    \b
    Exit code and what is printed:
      0  the copy and the TrainJob, on standard output
      1  refused: every problem on standard error, a line each, as
         <class>: <name>: <problem>
         where the name is a field, an extension, a rule that runtimes must keep, or "state"
      2  a file can't be read, has a duplicate key, or holds something else; or the output can't be written

    \b
    Examples:
      dispatch-operator render -f start.yaml --backend backend.yaml --runtime runtime.yaml
      kubectl get clustertrainingruntime torch-dispatch -o json |
        dispatch-operator render -f start.yaml --backend backend.yaml --runtime - -o json
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    must_share_no_stdin(("--filename", start_file), ("--backend", backend_file), ("--runtime", runtime_file))
    start_object = read(start_file, API_VERSION, Kind.DISPATCH_START)
    start = read_dispatch_start(start_object)
    backend_object = read(backend_file, API_VERSION, Kind.DISPATCH_BACKEND)
    backend = backend_of(backend_file, backend_object)
    runtime = _runtime(runtime_file)
    if not start.backend:
        refuse(request_problems(start.reading))
    is_named = backend.metadata.name == start.backend and _may_be_together(start_object, backend_object)
    if closed := backend_problem(start.backend, backend if is_named else None):
        refuse([closed])
    found = runtime if _is_named(runtime, start, backend) else None
    if refused := problems(start, backend, found):
        refuse(refused)
    objects = render_copy(start, runtime), render_train_job(start, terms_of(backend), runtime.spec or {})
    print_out(to_json(*objects) if output == "json" else to_yaml(*objects))


@click.command("crds", cls=Command)
def crds_command() -> None:
    """Print the CustomResourceDefinitions of DispatchStart and DispatchBackend.

    \b
    Example:
      dispatch-operator crds | kubectl apply --server-side -f -
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    print_out(to_yaml(*crds()))


def _runtime(source: str) -> TrainingRuntime:
    raw = read(source, TRAINER_API_VERSION, *RuntimeKind)
    try:
        return cast("TrainingRuntime", read_record(Kind(raw["kind"]), raw))
    except RecordError as error:
        raise UnreadableError(escaped(f"{source}: {error}")) from error


def _may_be_together(one: Object, other: Object) -> bool:
    """Whether two objects can be in one namespace; a file that has none may be anywhere."""
    namespaces = one["metadata"].get("namespace"), other["metadata"].get("namespace")
    return None in namespaces or namespaces[0] == namespaces[1]


def _is_named(runtime: TrainingRuntime, start: DispatchStart, backend: Backend) -> bool:
    """Whether a runtime's file is the one that a request names."""
    wanted, meta = runtime_reference(start, backend), runtime.metadata
    if wanted is None or (wanted.kind, wanted.name) != (runtime.KIND, meta.name):
        return False
    if runtime.KIND is Kind.CLUSTER_TRAINING_RUNTIME:
        return True
    return not meta.namespace or not start.metadata.namespace or meta.namespace == start.metadata.namespace
