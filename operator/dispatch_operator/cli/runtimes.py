"""The commands about runtimes: `check-runtime` and `adapt-runtime` (docs/contract.md, Command line)."""

from collections.abc import Iterable, Iterator

import click

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.group import API_VERSION, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind, RuntimeKind
from dispatch_operator.checks.compatibility import SHORTER_NAMES, Limit, runtime_limits
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.runtime import runtime_problems
from dispatch_operator.cli.files import backend_of, must_share_no_stdin, read
from dispatch_operator.cli.output import Command, refuse, tell

DEFAULT_GPU_RESOURCE = "nvidia.com/gpu"


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
    must_share_no_stdin(("--filename", runtime_file), ("--backend", backend_file))
    runtime = read(runtime_file, TRAINER_API_VERSION, *RuntimeKind)
    resource = DEFAULT_GPU_RESOURCE
    if backend_file is not None:
        resource = backend_of(backend_file, read(backend_file, API_VERSION, Kind.DISPATCH_BACKEND)).spec.gpu_resource
    limits = runtime_limits(runtime, resource)
    if found := (*runtime_problems(runtime, resource), *_refusing_all(limits)):
        refuse(found, with_remedies=True)
    _note(limits)


def _note(limits: Iterable[Limit]) -> None:
    """Say what a runtime can't be used for, though it keeps the rules."""
    for limit in limits:
        tell(f"note: {limit.name}: {limit.text}")


def _refusing_all(limits: Iterable[Limit]) -> Iterator[Problem]:
    for limit in limits:
        if limit.refuses_all:
            yield Problem(ErrorClass.UNSUPPORTED, limit.name, limit.text, SHORTER_NAMES)
