"""The commands that need no cluster: ``render``, ``check-runtime`` and ``crds`` (docs/contract.md, Command line)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn, cast

import click

from dispatch_operator.api.crds import crds
from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.group import API_VERSION, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind, RuntimeKind
from dispatch_operator.api.models import Backend, InvalidObject, read_backend
from dispatch_operator.api.quoting import escaped
from dispatch_operator.checks.backend import backend_problem
from dispatch_operator.checks.compatibility import SHORTER_NAMES, Limit, runtime_limits
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.request import request_problems
from dispatch_operator.checks.runtime import runtime_problems
from dispatch_operator.cli.output import Command, print_out
from dispatch_operator.documents import STDIN, DocumentError, read_object, to_json, to_yaml
from dispatch_operator.records.dispatch import DispatchStart
from dispatch_operator.records.reading import RecordError, read_dispatch_start, read_record
from dispatch_operator.records.trainer import TrainingRuntime
from dispatch_operator.render import problems, render_copy, render_train_job, runtime_reference
from dispatch_operator.render.terms import terms_of

REFUSED = 1
UNREADABLE = 2
DEFAULT_GPU_RESOURCE = "nvidia.com/gpu"

Object = Mapping[str, Any]


class UnreadableError(click.ClickException):
    """A file that can't be used."""

    exit_code = UNREADABLE


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
    _must_share_no_stdin(("--filename", start_file), ("--backend", backend_file), ("--runtime", runtime_file))
    start_object = _read(start_file, API_VERSION, Kind.DISPATCH_START)
    start = read_dispatch_start(start_object)
    backend_object = _read(backend_file, API_VERSION, Kind.DISPATCH_BACKEND)
    backend = _backend(backend_file, backend_object)
    runtime = _runtime(runtime_file)
    if not start.backend:
        _refuse(request_problems(start.reading))
    is_named = backend.metadata.name == start.backend and _may_be_together(start_object, backend_object)
    if closed := backend_problem(start.backend, backend if is_named else None):
        _refuse([closed])
    found = runtime if _is_named(runtime, start, backend) else None
    if refused := problems(start, backend, found):
        _refuse(refused)
    objects = render_copy(start, runtime), render_train_job(start, terms_of(backend), runtime.spec or {})
    print_out(to_json(*objects) if output == "json" else to_yaml(*objects))


@click.command("check-runtime", cls=Command)
@click.option("-f", "--filename", "runtime_file", required=True, metavar="RUNTIME.yaml", help="The runtime.")
@click.option("--backend", "backend_file", metavar="BACKEND.yaml", help="The DispatchBackend, for its gpuResource.")
def check_runtime_command(runtime_file: str, backend_file: str | None) -> None:
    """Say whether a TrainingRuntime or ClusterTrainingRuntime is fit for Starts, and if not why.

    The rules make sure that a submission is one run with one outcome: no pod is retried behind the supervisor's back,
    no outcome is cleaned up before it is read, and nothing of the runtime gets in the request's way. What depends on
    the request, such as names-fit, is checked by "dispatch-operator render"; here notes say which requests are refused.

    Without --backend the GPU resource is nvidia.com/gpu.

    \b
    Exit code and what is printed:
      0  the runtime is fit; perhaps notes on standard error, as note: <rule or field>: <which requests are refused>
      1  every broken rule on standard error, a line each, as
         ErrUnsupported: <rule>: <path and problem>; remedy: <what to write>
      2  a file can't be read, has a duplicate key, or holds something else; or the output can't be written

    \b
    Examples:
      dispatch-operator check-runtime -f runtime.yaml
      kubectl get clustertrainingruntime torch-dispatch -o yaml | dispatch-operator check-runtime -f -
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    _must_share_no_stdin(("--filename", runtime_file), ("--backend", backend_file))
    runtime = _read(runtime_file, TRAINER_API_VERSION, *RuntimeKind)
    resource = DEFAULT_GPU_RESOURCE
    if backend_file is not None:
        resource = _backend(backend_file, _read(backend_file, API_VERSION, Kind.DISPATCH_BACKEND)).spec.gpu_resource
    limits = runtime_limits(runtime, resource)
    if found := (*runtime_problems(runtime, resource), *_refusing_all(limits)):
        _refuse(found, with_remedies=True)
    _note(limits)


@click.command("crds", cls=Command)
def crds_command() -> None:
    """Print the CustomResourceDefinitions of DispatchStart and DispatchBackend.

    \b
    Example:
      dispatch-operator crds | kubectl apply --server-side -f -
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    print_out(to_yaml(*crds()))


def _must_share_no_stdin(*sources: tuple[str, str | None]) -> None:
    if len(options := [option for option, source in sources if source == STDIN]) > 1:
        raise click.UsageError(f"only one file can be standard input, and {' and '.join(options)} are")


def _read(source: str, api_version: str, *kinds: str) -> dict[str, Any]:
    try:
        return read_object(source, api_version, kinds)
    except DocumentError as error:
        raise UnreadableError(escaped(str(error))) from error


def _backend(source: str, raw: Object) -> Backend:
    try:
        return read_backend(raw)
    except InvalidObject as error:
        raise UnreadableError(escaped(f"{source}: {error}")) from error


def _runtime(source: str) -> TrainingRuntime:
    raw = _read(source, TRAINER_API_VERSION, *RuntimeKind)
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


def _note(limits: Iterable[Limit]) -> None:
    """Say what a runtime can't be used for, though it keeps the rules."""
    for limit in limits:
        click.echo(escaped(f"note: {limit.name}: {limit.text}"), err=True)


def _refusing_all(limits: Iterable[Limit]) -> Iterator[Problem]:
    for limit in limits:
        if limit.refuses_all:
            yield Problem(ErrorClass.UNSUPPORTED, limit.name, limit.text, SHORTER_NAMES)


def _refuse(found: Iterable[Problem], *, with_remedies: bool = False) -> NoReturn:
    """Print problems and exit, with the verdict's code even where the problems can't be written."""
    with suppress(OSError):
        for problem in found:
            remedy = f"; remedy: {problem.remedy}" if with_remedies else ""
            click.echo(escaped(f"{problem.error_class}: {problem}{remedy}"), err=True)
    raise SystemExit(REFUSED)
