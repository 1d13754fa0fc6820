"""What a request and the runtime that it names must agree on (docs/contract.md, Runtime rules)."""

from collections.abc import Iterator, Mapping
from typing import Any

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.models import StartReading, StartRequest
from dispatch_operator.api.names import object_name
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks import request as fields
from dispatch_operator.checks.json_node import Part
from dispatch_operator.checks.problems import Problem
from dispatch_operator.checks.runtime import Runtime, Texts, rule_problems

NAMES_FIT = "names-fit"
SHORTER_NAMES = "shorten the names of the replicated jobs"
"""The remedy of names-fit."""
LONGEST_HOSTNAME = 57
"""Characters of ``<name>-<replicated job>-<replica>-<index>``; JobSet adds six and allows 63."""

POLICY_ENV: Mapping[str, tuple[str, ...]] = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
    "jax": ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS"),
}
"""The variables that Trainer sets itself, by the runtime's policy."""


def fit_problems(reading: StartReading, raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with a request on a runtime."""
    request = reading.request
    runtime = Runtime(Part(("spec",), raw.get("spec")), gpu_resource="")
    policies = _policies(runtime)
    if request.spec.procs_per_node > 0 and "torch" not in policies:
        text = f"{request.spec.procs_per_node} is only possible on a runtime that states mlPolicy.torch"
        yield Problem(ErrorClass.UNSUPPORTED, "procsPerNode", text)
    for policy in policies:
        for key in sorted(set(POLICY_ENV[policy]) & set(request.spec.env)):
            yield Problem(ErrorClass.INVALID, "env", f"the name {quote(key)} is one that Trainer sets for {policy}")
    if _hostnames_are_known(reading):
        yield from rule_problems(NAMES_FIT, names_fit(request, runtime), SHORTER_NAMES)


def names_fit(request: StartRequest, runtime: Runtime) -> Texts:
    """A longer pod hostname is refused by JobSet after the start."""
    trainer = runtime.trainer
    for job in runtime.jobs():
        is_trainer = trainer is not None and job.path == trainer.path
        pods = request.spec.nodes if is_trainer else job.at("template", "spec", "parallelism").integer(default=1)
        replicas = job.at("replicas").integer(default=1)
        name = object_name(request.job, request.submission)
        hostname = f"{name}-{job.at('name').text()}-{max(replicas - 1, 0)}-{max(pods - 1, 0)}"
        if len(hostname) > LONGEST_HOSTNAME:
            yield (
                f"{job} gives pods the hostname {quote(hostname)}, of {len(hostname)} characters, "
                f"and at most {LONGEST_HOSTNAME} fit"
            )


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
    return tuple(name for name in POLICY_ENV if Part((), policy.get(name)).is_stated)
