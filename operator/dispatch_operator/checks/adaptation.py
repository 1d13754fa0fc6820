"""What to change in a runtime for it to keep the rules, as far as that is known (docs/contract.md, Runtime rules)."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.edit import REMOVED, Edit, make
from dispatch_operator.api.group import ANCESTOR_LABEL, GROUP, KUEUE_GROUP, NODE, TRAINER_STEP
from dispatch_operator.api.models.reading import Path, dotted
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks.json_node import MOST_LEVELS, JsonNode, WrongShapeError, is_nested_deeper
from dispatch_operator.checks.runtime import INITIALIZER_STEPS, MOST_RESTARTS, RULES, Runtime, nodes

_JOB = ("template", "spec")
_POD = ("template", "spec", "template", "spec")
_REASONS = {rule.id: rule.reason for rule in RULES}

_RESTARTS = {
    "RestartJob": "RestartJobSet",
    "RestartJobAndIgnoreMaxRestarts": "RestartJobSetAndIgnoreMaxRestarts",
}
"""The action that does the same to every job, and so counts in the epoch."""


_MAX_RESTARTS = "failurePolicy.maxRestarts of the JobSet: how often a failed job is restarted, each time in a new epoch"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a runtime."""

    rule: str
    edit: Edit
    old: Any
    """The value before; None when there was none."""
    choice: str = ""
    """What a person has to choose, or to put elsewhere, where that can't be known."""

    def __str__(self) -> str:
        was = "" if self.old is None else f", was {quote(self.old)}"
        told = "removed" if self.edit.value is REMOVED else f"set to {_shown(self.edit.value)}"
        choice = f"; choose: {self.choice}" if self.choice else ""
        reason = _REASONS[self.rule].removesuffix(".")
        return f"{self.rule}: {dotted(self.edit.path)} {told}{was}; reason: {reason}{choice}"


Changes = Iterator[tuple[Edit, str]]
Mender = Callable[[Runtime], Changes]


def adapted(raw: Mapping[str, Any], gpu_resource: str) -> tuple[dict[str, Any], tuple[Change, ...]]:
    """Return a runtime that breaks fewer rules, and what was changed, in the order to change it in.

    What breaks a rule still is what can't be mended without knowing the program.
    """
    if is_nested_deeper(raw, MOST_LEVELS):
        return dict(raw), ()
    mended = deepcopy(dict(raw))
    changes: list[Change] = []
    # One change can make another visible, such as a label that says which job is the trainer's.
    while found := tuple(_made(mended, gpu_resource)):
        changes += found
    return mended, tuple(changes)


def _made(runtime: dict[str, Any], gpu_resource: str) -> Iterator[Change]:
    """Make each change that can be seen now, and yield it."""
    for rule, mender in _MENDERS:
        for edit, choice in _edits(mender, Runtime(JsonNode(("spec",), runtime.get("spec")), gpu_resource)):
            yield Change(rule, edit, _value_at(runtime, edit.path), choice)
            make(runtime, edit)


def _edits(mender: Mender, runtime: Runtime) -> tuple[tuple[Edit, str], ...]:
    """Return what a mender would change; nothing where a node of a wrong type is in its way."""
    try:
        return tuple(mender(runtime))
    except WrongShapeError:
        return ()


def _known_policy(runtime: Runtime) -> Changes:
    policy = runtime.spec.at("mlPolicy")
    if not policy.is_stated:
        yield _set(policy, {"numNodes": 1}), "add torch: {}, jax: {} or xgboost: {} to it if the program needs one"


def _one_trainer(runtime: Runtime) -> Changes:
    jobs = tuple(runtime.jobs())
    labelled = [job for job in jobs if _label(job).value == TRAINER_STEP]
    if not labelled:
        likely = jobs if len(jobs) == 1 else [job for job in jobs if job.at("name").value == NODE]
        for job in likely[:1]:
            yield _set(_label(job), TRAINER_STEP), "another job, if this is not the one that trains"
    if len(labelled) == 1 and labelled[0].at("replicas").integer(default=1) != 1:
        yield _set(labelled[0].at("replicas"), 1), "nodes in the request, which says how many pods train"


def _node_container(runtime: Runtime) -> Changes:
    if (trainer := runtime.trainer) is None:
        return
    names = [job.at("name").value for job in runtime.jobs()]
    old = trainer.at("name")
    if NODE not in names and old.is_stated:
        yield _set(old, NODE), ""
        yield from ((_set(name, NODE), "") for name in _names_of_jobs(runtime) if name.value == old.value)
    containers = tuple(trainer.at(*_POD, "containers").items())
    if len(containers) == 1 and not nodes(trainer):
        name = containers[0].at("name")
        yield _set(name, NODE), ""
        for target in runtime.spec.at("mlPolicy", "torch", "envInjection", "targets").items():
            if target.at("jobName").value in (old.value, NODE):
                injected = (one for one in target.at("containerNames").items() if one.value == name.value)
                yield from ((_set(one, NODE), "") for one in injected)


def _names_of_jobs(runtime: Runtime) -> Iterator[JsonNode]:
    """Yield every place where a replicated job is named by another part."""
    for job in runtime.jobs():
        yield from (dependency.at("name") for dependency in job.at("dependsOn").items())
    yield from runtime.job_set.at("successPolicy", "targetReplicatedJobs").items()
    for rule in runtime.job_set.at("failurePolicy", "rules").items():
        yield from rule.at("targetReplicatedJobs").items()
    for target in runtime.spec.at("mlPolicy", "torch", "envInjection", "targets").items():
        yield target.at("jobName")


def _stable_dns(runtime: Runtime) -> Changes:
    network = runtime.job_set.at("network")
    yield from _removals(network.at("subdomain"), runtime.job_set.at("coordinator"))
    if network.at("enableDNSHostnames").value is False:
        yield _removed(network.at("enableDNSHostnames")), ""


def _no_args(runtime: Runtime) -> Changes:
    for node in _nodes_of(runtime):
        yield from _removals(node.at("args"), choice="what of them belongs into the request's command")


def _no_pod_retry(runtime: Runtime) -> Changes:
    if (trainer := runtime.trainer) is None:
        return
    job, pod = trainer.at(*_JOB), trainer.at(*_POD)
    if job.at("backoffLimit").value != 0 or job.at("backoffLimit").value is False:
        restarts = "" if runtime.job_set.at("failurePolicy", "maxRestarts").is_stated else _MAX_RESTARTS
        yield _set(job.at("backoffLimit"), 0), restarts
    if job.at("completionMode").is_stated and job.at("completionMode").value != "Indexed":
        yield _removed(job.at("completionMode")), ""
    ignoring = [rule for rule in job.at("podFailurePolicy", "rules").items() if rule.at("action").value == "Ignore"]
    # From the last one on, so that the places of the others stay what they are.
    yield from ((_removed(rule), _MAX_RESTARTS) for rule in reversed(ignoring))
    if pod.at("restartPolicy").value != "Never":
        yield _set(pod.at("restartPolicy"), "Never"), ""
    for container in pod.at("containers").items():
        yield from _removals(container.at("restartPolicy"), container.at("restartPolicyRules"))
    for container in pod.at("initContainers").items():
        if container.at("restartPolicy").value != "Always":
            yield from _removals(container.at("restartPolicy"))
        yield from _removals(container.at("restartPolicyRules"))


def _recreate_restarts(runtime: Runtime) -> Changes:
    policy = runtime.job_set.at("failurePolicy")
    if policy.at("restartStrategy").value == "InPlaceRestart":
        yield _removed(policy.at("restartStrategy")), ""
    for rule in policy.at("rules").items():
        for partial, whole in _RESTARTS.items():
            if rule.at("action").value == partial:
                yield _set(rule.at("action"), whole), ""
    if policy.at("maxRestarts").integer(default=0) > MOST_RESTARTS:
        yield _set(policy.at("maxRestarts"), MOST_RESTARTS), ""


def _success_means_trainer(runtime: Runtime) -> Changes:
    policy = runtime.job_set.at("successPolicy")
    targets = [target.value for target in policy.at("targetReplicatedJobs").items()]
    left_out = runtime.trainer is not None and targets and runtime.trainer.at("name").value not in targets
    if policy.is_stated and (policy.at("operator").value != "All" or left_out):
        yield _removed(policy), "the operator All and targets with node, if the job must not wait for every other"


def _no_ttl(runtime: Runtime) -> Changes:
    yield from _removals(runtime.job_set.at("ttlSecondsAfterFinished"))
    for job in runtime.jobs():
        yield from _removals(job.at(*_JOB, "ttlSecondsAfterFinished"))


def _no_deadline(runtime: Runtime) -> Changes:
    if (trainer := runtime.trainer) is not None:
        for spec in (trainer.at(*_JOB), trainer.at(*_POD)):
            yield from _removals(spec.at("activeDeadlineSeconds"), choice="timeLimit in the request")


def _no_gpu_resource(runtime: Runtime) -> Changes:
    for node in _nodes_of(runtime):
        for kind in ("requests", "limits"):
            amount = node.at("resources", kind, runtime.gpu_resource)
            yield from _removals(amount, choice="gpusPerNode in the request")


def _no_reserved_keys(runtime: Runtime) -> Changes:
    templates = [runtime.spec.at("template")]
    for job in runtime.jobs():
        templates += [job.at("template"), job.at("template", "spec", "template")]
    for template in templates:
        labels, annotations = template.at("metadata", "labels"), template.at("metadata", "annotations")
        for prefix, keys in ((GROUP, labels), (GROUP, annotations), (KUEUE_GROUP, labels)):
            for key in keys.names():
                if key.startswith(f"{prefix}/"):
                    queue = "kueue.queue of the DispatchBackend" if prefix == KUEUE_GROUP else ""
                    yield _removed(keys.at(key)), queue


def _not_suspended(runtime: Runtime) -> Changes:
    yield from _removals(runtime.job_set.at("suspend"), runtime.job_set.at("managedBy"))
    for job in runtime.jobs():
        yield from _removals(job.at(*_JOB, "suspend"), job.at(*_JOB, "managedBy"))


def _no_pod_group(runtime: Runtime) -> Changes:
    yield from _removals(
        runtime.spec.at("podGroupPolicy"), choice="a backend in Kueue mode, if pods must start together"
    )


def _initializer_container(runtime: Runtime) -> Changes:
    for job in runtime.jobs():
        step = _label(job).value
        if step not in INITIALIZER_STEPS:
            continue
        if job.at("replicas").integer(default=1) != 1:
            yield _set(job.at("replicas"), 1), ""
        containers = tuple(job.at(*_POD, "containers").items())
        if len(containers) == 1 and containers[0].at("name").value != step:
            yield _set(containers[0].at("name"), step), ""


_MENDERS: tuple[tuple[str, Mender], ...] = (
    ("known-policy", _known_policy),
    ("one-trainer", _one_trainer),
    ("node-container", _node_container),
    ("stable-dns", _stable_dns),
    ("no-args", _no_args),
    ("no-pod-retry", _no_pod_retry),
    ("recreate-restarts", _recreate_restarts),
    ("success-means-trainer", _success_means_trainer),
    ("no-ttl", _no_ttl),
    ("no-deadline", _no_deadline),
    ("no-gpu-resource", _no_gpu_resource),
    ("no-reserved-keys", _no_reserved_keys),
    ("not-suspended", _not_suspended),
    ("no-pod-group", _no_pod_group),
    ("initializer-container", _initializer_container),
)
"""By rule; what breaks no-reserved-env and podinfo-free is named elsewhere in the program, and is left to people."""


def _label(job: JsonNode) -> JsonNode:
    return job.at("template", "metadata", "labels", ANCESTOR_LABEL)


def _nodes_of(runtime: Runtime) -> list[JsonNode]:
    return nodes(runtime.trainer) if runtime.trainer is not None else []


def _set(part: JsonNode, value: object) -> Edit:
    return Edit(part.path, value)


def _removed(part: JsonNode) -> Edit:
    return Edit(part.path, REMOVED)


def _removals(*parts: JsonNode, choice: str = "") -> Changes:
    yield from ((_removed(part), choice) for part in parts if part.is_stated)


def _value_at(tree: Any, path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a path leads to, None when that is missing."""
    for step in path:
        if tree is not None:
            tree = tree.get(step) if isinstance(tree, Mapping) else tree[step]
    return tree


def _shown(value: object) -> str:
    return "{numNodes: 1}" if isinstance(value, dict) else str(value)
