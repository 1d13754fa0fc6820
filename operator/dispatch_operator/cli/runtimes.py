"""The commands about runtimes: `check-runtime` and `adapt-runtime` (docs/contract.md, Command line)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.group import API_VERSION, TRAINER_API_VERSION
from dispatch_operator.api.kinds import Kind, RuntimeKind
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks.adaptation import Change, adapted
from dispatch_operator.checks.compatibility import SHORTER_NAMES, Limit, runtime_limits
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.runtime import runtime_problems
from dispatch_operator.cli.files import backend_of, from_cluster, must_share_no_stdin, parsed, read, text_of
from dispatch_operator.cli.options import must_be_name, must_be_namespace
from dispatch_operator.cli.output import Command, print_out, refuse, tell
from dispatch_operator.documents import parse_object, to_yaml

DEFAULT_GPU_RESOURCE = "nvidia.com/gpu"


@click.command("check-runtime", cls=Command)
@click.argument("reference", metavar="[KIND/NAME]", required=False)
@click.option("-f", "--filename", "runtime_file", metavar="RUNTIME.yaml", help="The runtime, in a file.")
@click.option("--backend", "backend_file", metavar="BACKEND.yaml", help="The DispatchBackend, for its gpuResource.")
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of a TrainingRuntime in the cluster.")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="The cluster, if not KUBECONFIG's.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig, if not its current one.")
def check_runtime_command(  # noqa: PLR0913 - one argument an option.
    *,
    reference: str | None,
    runtime_file: str | None,
    backend_file: str | None,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Say whether a TrainingRuntime or ClusterTrainingRuntime is fit for Starts, and if not why.

    It is read from a file, or from the cluster when KIND/NAME is given, such as ClusterTrainingRuntime/torch.

    The rules make sure that a submission is one run with one outcome: no pod is retried behind the supervisor's back,
    no outcome is cleaned up before it is read, and nothing of the runtime gets in the request's way. What depends on
    the request, such as names-fit, is checked by "dispatch-operator render"; here notes say which requests are refused.

    Without --backend the GPU resource is nvidia.com/gpu.

    \b
    Exit code and what is printed:
      0  the runtime is fit; perhaps notes on standard error, as note: <rule or field>: <which requests are refused>
      1  every broken rule on standard error, a line each, as
         ErrUnsupported: <rule>: <path and problem>; remedy: <what to write>
      2  a file can't be read, has a duplicate key, or holds something else; or the cluster can't be asked, or has no
         such runtime

    \b
    Examples:
      dispatch-operator check-runtime -f runtime.yaml
      dispatch-operator check-runtime ClusterTrainingRuntime/torch-distributed
      dispatch-operator check-runtime TrainingRuntime/torch -n team-a
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    if (reference is None) == (runtime_file is None):
        raise click.UsageError("name either a runtime in the cluster, as KIND/NAME, or a file, with --filename")
    if runtime_file is not None and any(option is not None for option in (namespace, kubeconfig, context)):
        raise click.UsageError("--namespace, --kubeconfig and --context are about a runtime in the cluster, KIND/NAME")
    must_share_no_stdin(("--filename", runtime_file), ("--backend", backend_file))
    resource = _gpu_resource(backend_file)
    if runtime_file is not None:
        runtime = read(runtime_file, TRAINER_API_VERSION, *RuntimeKind)
    else:
        kind, name = _kind_and_name(str(reference))
        if kind is RuntimeKind.TRAINING_RUNTIME and namespace is None:
            raise click.UsageError("say in which namespace the TrainingRuntime is: --namespace NAME")
        if namespace is not None:
            must_be_namespace(namespace, "--namespace")
        runtime = from_cluster(kubeconfig, context, Kind(kind), namespace, name)
    _verdict(runtime, resource)


def _kind_and_name(reference: str) -> tuple[RuntimeKind, str]:
    """Read a runtime's kind and name, the kind in any case and perhaps with its group, as kubectl has it."""
    kind, _, name = reference.partition("/")
    for known in RuntimeKind:
        if kind.partition(".")[0].lower() in (known.lower(), f"{known.lower()}s"):
            must_be_name(name, "KIND/NAME", f"a {known}")
            return known, name
    raise click.UsageError(f"{quote(reference)} is neither TrainingRuntime/NAME nor ClusterTrainingRuntime/NAME")


@click.command("adapt-runtime", cls=Command)
@click.option("-f", "--filename", "runtime_file", required=True, metavar="RUNTIME.yaml", help="The runtime.")
@click.option("--backend", "backend_file", metavar="BACKEND.yaml", help="The DispatchBackend, for its gpuResource.")
def adapt_runtime_command(runtime_file: str, backend_file: str | None) -> None:
    """Write a runtime that is fit for Starts, made of one that is not.

    Comments and layout are kept as far as YAML's tools can keep them. Every change is listed with its rule and reason,
    and with what to choose where that can't be known. The name is kept too: applied as it is, the result replaces
    the runtime for everybody who uses it; give it another name otherwise.

    \b
    Exit code and what is printed:
      0  the runtime, on standard output; every change on standard error, a line each, as
         changed: <rule>: <path> <change>; reason: <reason>; choose: <what to choose>
      1  the same, and every rule that is still broken, as check-runtime prints it: mend these by hand
      2  a file can't be read, has a duplicate key, or holds something else; or the output can't be written

    \b
    Examples:
      dispatch-operator adapt-runtime -f runtime.yaml > runtime-dispatch.yaml
      kubectl get clustertrainingruntime torch-distributed -o yaml | dispatch-operator adapt-runtime -f -
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    must_share_no_stdin(("--filename", runtime_file), ("--backend", backend_file))
    text = text_of(runtime_file)
    runtime = parsed(runtime_file, text, TRAINER_API_VERSION, *RuntimeKind)
    resource = _gpu_resource(backend_file)
    mended, changes = adapted(runtime, resource)
    written = _with_comments(runtime_file, text, mended, changes) if changes else text
    print_out(to_yaml(mended) if written is None else written)
    for change in changes:
        tell(f"changed: {change}")
    if written is None:
        tell("note: comments and layout of the file are not kept")
    _verdict(mended, resource)


def _with_comments(source: str, text: str, mended: Mapping[str, Any], changes: Sequence[Change]) -> str | None:
    """Return the text of a file with changes made, or None when it can't be kept: it is JSON, or of a rare form."""
    if text.lstrip().startswith("{"):
        return None
    # Needed by this command alone.
    from dispatch_operator.documents.round_trip import rewritten  # noqa: PLC0415

    try:
        written = rewritten(text, [change.edit for change in changes])
        return written if parse_object(source, written, TRAINER_API_VERSION, tuple(RuntimeKind)) == mended else None
    except Exception:  # noqa: BLE001 - what ruamel.yaml can't keep it tells in as many ways as there are.
        return None


def _gpu_resource(backend_file: str | None) -> str:
    if backend_file is None:
        return DEFAULT_GPU_RESOURCE
    return backend_of(backend_file, read(backend_file, API_VERSION, Kind.DISPATCH_BACKEND)).spec.gpu_resource


def _verdict(runtime: Mapping[str, Any], resource: str) -> None:
    """Print every rule that a runtime breaks and exit, or which requests it refuses though it keeps them."""
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
