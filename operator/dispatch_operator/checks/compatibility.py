"""What a request and the runtime that it names must agree on (docs/contract.md, Runtime rules)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.models import StartReading, StartRequest
from dispatch_operator.api.names import MOST_SUBMISSIONS, object_name
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks import request as fields
from dispatch_operator.checks.json_node import JsonNode, WrongShapeError
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.runtime import Runtime, Texts, nodes, rule_problems

NAMES_FIT = "names-fit"
SHORTER_NAMES = "shorten the names of the replicated jobs"
"""The remedy of names-fit."""
LENGTH_OF_A_JOB = 26
LONGEST_HOSTNAME = 57
"""Characters of ``<name>-<replicated job>-<replica>-<index>``; JobSet adds six and allows 63."""

_ACCELERATOR = re.compile(
    r"(?<![a-z])([pv]?gpu|tpus?|npu|hpu|xpu|mlu|dcu|gcu|mig|fpga|gaudi|qaic|i915)(?![a-z])|neuron|ascend"
)
"""Finds, in lower case, the names by which accelerators are known; network devices such as EFA are none."""
POLICY_ENV: Mapping[str, tuple[str, ...]] = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
    "jax": ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS"),
}
"""The variables that Trainer sets itself, by the runtime's policy."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a runtime that keeps every rule can't be used for."""

    name: str
    """The rule or the request's field that such a request is refused by."""
    text: str
    refuses_all: bool = False
    """Whether no request at all fits."""


def fit_problems(reading: StartReading, raw: Mapping[str, Any], gpu_resource: str) -> Iterator[Problem]:
    """Yield what is wrong with a request on a runtime."""
    request = reading.request
    runtime = Runtime(JsonNode(("spec",), raw.get("spec")), gpu_resource)
    policies = _policies(runtime)
    if request.spec.procs_per_node > 0 and "torch" not in policies:
        text = f"{request.spec.procs_per_node} is only possible on a runtime that states mlPolicy.torch"
        yield Problem(ErrorClass.UNSUPPORTED, "procsPerNode", text)
    if request.spec.gpus_per_node > 0:
        yield from _gpu_problems(request, runtime)
    for policy in policies:
        for key in sorted(set(POLICY_ENV[policy]) & set(request.spec.env)):
            yield Problem(ErrorClass.INVALID, "env", f"the name {quote(key)} is one that Trainer sets for {policy}")
    if _hostnames_are_known(reading):
        name = object_name(request.job, request.submission)
        yield from rule_problems(NAMES_FIT, names_fit(name, request.spec.nodes, runtime), SHORTER_NAMES)


def runtime_limits(raw: Mapping[str, Any], gpu_resource: str) -> tuple[Limit, ...]:
    """Return what no request can ask of a runtime; none where its parts have wrong types, which the rules tell."""
    runtime = Runtime(JsonNode(("spec",), raw.get("spec")), gpu_resource)
    try:
        found = [Limit("gpusPerNode", f"a request with it is refused: {text}") for text in rival_devices(runtime)]
        if (text := _uncounted(runtime)) is not None:
            found.append(Limit("procsPerNode", f"a request with gpusPerNode must state it: {text}"))
        return (*found, *_name_limits(runtime))
    except WrongShapeError:
        return ()


def rival_devices(runtime: Runtime) -> Texts:
    """Devices of ``node`` beside the request's: Trainer would drop them, or a pod would ask for both."""
    for node in nodes(runtime.trainer) if runtime.trainer is not None else ():
        claims = node.at("resources", "claims")
        if claims.is_stated:
            yield f"{claims} is stated, and Trainer drops the claims of a job that asks for {runtime.gpu_resource}"
        for kind in ("requests", "limits"):
            amounts = node.at("resources", kind)
            for name in amounts.names():
                is_rival = name != runtime.gpu_resource and _ACCELERATOR.search(name.lower())
                if is_rival and amounts.at(name).is_stated:
                    yield f"{amounts.at(name)} is stated, and a pod would ask for it and for {runtime.gpu_resource}"


def names_fit(name: str, node_count: int, runtime: Runtime) -> Texts:
    """A longer pod hostname is refused by JobSet after the start."""
    for job, suffix in _hostname_suffixes(node_count, runtime):
        if len(hostname := name + suffix) > LONGEST_HOSTNAME:
            yield (
                f"{job} gives pods the hostname {quote(hostname)}, of {len(hostname)} characters, "
                f"and at most {LONGEST_HOSTNAME} fit"
            )


def _hostname_suffixes(node_count: int, runtime: Runtime) -> Iterator[tuple[JsonNode, str]]:
    """Yield each replicated job with what the longest hostname of its pods has after the object's name."""
    trainer = runtime.trainer
    for job in runtime.jobs():
        is_trainer = trainer is not None and job.path == trainer.path
        pods = node_count if is_trainer else job.at("template", "spec", "parallelism").integer(default=1)
        replicas = job.at("replicas").integer(default=1)
        yield job, f"-{job.at('name').text()}-{max(replicas - 1, 0)}-{max(pods - 1, 0)}"


def _name_limits(runtime: Runtime) -> Iterator[Limit]:
    """Yield from which submission on a replicated job's hostnames are too long, with one node."""
    for job, suffix in _hostname_suffixes(1, runtime):
        digits = LONGEST_HOSTNAME - len(object_name("0" * LENGTH_OF_A_JOB, "") + suffix)
        job_name = f"{job.at('name')} is {quote(job.at('name').text())}"
        if digits < 1:
            text = f"{job_name}, which is too long: no hostname fits {LONGEST_HOSTNAME} characters"
            yield Limit(NAMES_FIT, text, refuses_all=True)
        elif 10**digits <= MOST_SUBMISSIONS:
            yield Limit(
                NAMES_FIT, f"every request is refused from submission {10**digits:,} on: {job_name}, which is long"
            )


def _gpu_problems(request: StartRequest, runtime: Runtime) -> Iterator[Problem]:
    try:
        for text in rival_devices(runtime):
            yield Problem(
                ErrorClass.UNSUPPORTED, "gpusPerNode", f"{request.spec.gpus_per_node} is not possible: {text}"
            )
    except WrongShapeError:
        pass  # The rule no-gpu-resource has told it.
    if request.spec.procs_per_node == 0 and (uncounted := _uncounted(runtime)) is not None:
        yield Problem(ErrorClass.UNSUPPORTED, "procsPerNode", f"must be stated with gpusPerNode: {uncounted}")


def _uncounted(runtime: Runtime) -> str | None:
    """Say why Trainer would start one process for any number of GPUs, or None when it would not."""
    if "torch" not in _policies(runtime) or "gpu" in runtime.gpu_resource.lower():
        return None
    return f"Trainer counts what has gpu in its name, and starts 1 process for any number of {runtime.gpu_resource}"


def _hostnames_are_known(reading: StartReading) -> bool:
    """Whether none of the fields that hostnames are made of is refused."""
    places = (("request", "job"), ("request", "submission"), ("request", "spec", "nodes"))
    if any(reading.is_faulty(*place) for place in places):
        return False
    checks = (fields.job, fields.submission, fields.nodes)
    return not any(text for check in checks for text in check(reading.request))


def _policies(runtime: Runtime) -> tuple[str, ...]:
    policy = runtime.spec.value.get("mlPolicy") if isinstance(runtime.spec.value, Mapping) else None
    if not isinstance(policy, Mapping):
        return ()
    return tuple(name for name in POLICY_ENV if JsonNode((), policy.get(name)).is_stated)
