"""What a runtime must state for a submission to be one run with one outcome (docs/contract.md, Runtime rules)."""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, NamedTuple

import msgspec

from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.group import (
    ANCESTOR_LABEL,
    DISPATCH_ENV,
    GROUP,
    KUEUE_GROUP,
    NODE,
    PODINFO_PATH,
    PODINFO_VOLUME,
    TRAINER_STEP,
)
from dispatch_operator.api.models.start import RUNTIME_REF
from dispatch_operator.api.quoting import escaped, quote
from dispatch_operator.checks.json_node import MOST_LEVELS, JsonNode, WrongShapeError, is_nested_deeper
from dispatch_operator.checks.problems import Problem

INITIALIZER_STEPS = ("dataset-initializer", "model-initializer")
"""Values of Trainer's ancestor label, each also the name of a container that Trainer's webhook asks for."""
POLICIES = ("torch", "jax", "xgboost")
MOST_RESTARTS = 999_999
_POD = ("template", "spec", "template")


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime as the rules see it."""

    spec: JsonNode
    gpu_resource: str
    """The backend's."""

    @property
    def job_set(self) -> JsonNode:
        """The spec of the JobSet template."""
        return self.spec.at("template", "spec")

    def jobs(self) -> Iterator[JsonNode]:
        """Yield the replicated jobs.

        Raises:
            WrongShapeError: they are no list.
        """
        yield from self.job_set.at("replicatedJobs").items()

    @property
    def trainer(self) -> JsonNode | None:
        """The first replicated job that carries the trainer's label, if any."""
        try:
            return next((job for job in self.jobs() if _is_labelled(job)), None)
        except WrongShapeError:
            return None


Texts = Iterator[str]
Rule = Callable[[Runtime], Texts]
TrainerRule = Callable[[JsonNode, Runtime], Texts]


def of_trainer(rule: TrainerRule) -> Rule:
    """Make a rule about the trainer's job one that has nothing to say about a runtime without it."""

    @wraps(rule)
    def checked(runtime: Runtime) -> Texts:
        if (trainer := runtime.trainer) is not None:
            yield from rule(trainer, runtime)

    return checked


def known_policy(runtime: Runtime) -> Texts:
    """Other policies run the command elsewhere, or twice, or joined into one string."""
    policy = runtime.spec.at("mlPolicy")
    if not policy.is_stated:
        yield f"{policy} is required; it may be empty, or hold one of {', '.join(POLICIES)}"
        return
    held = [key for key in policy.names() if key != "numNodes" and policy.at(key).is_stated]
    for key in held:
        if key not in POLICIES:
            yield f"{policy.at(key)} is not supported, only {', '.join(POLICIES)}"
    if len(held) > 1:
        yield f"{policy} holds {escaped(' and '.join(held))}, and only one is possible"
    for key in held:
        policy.at(key).names()


def one_trainer(runtime: Runtime) -> Texts:
    """Trainer puts the command, the image and the environment into the labelled job."""
    labelled = [job for job in runtime.jobs() if _ancestor(job).value == TRAINER_STEP]
    if len(labelled) != 1:
        names = ", ".join(quote(job.at("name").value) for job in labelled) or "none"
        yield (
            f"{runtime.job_set.at('replicatedJobs')} must have one job with the label {ANCESTOR_LABEL}: trainer "
            f"on its template, and has {len(labelled)} ({names})"
        )
    for job in labelled:
        replicas = job.at("replicas")
        if replicas.integer(default=1) != 1:
            yield f"{replicas} must be 1, not {quote(replicas.value)}"


@of_trainer
def node_container(trainer: JsonNode, _: Runtime) -> Texts:
    """Trainer's rendezvous addresses assume these names."""
    name = trainer.at("name")
    if name.value != NODE:
        yield f"{name} must be {NODE}, not {quote(name.value)}"
    containers = trainer.at(*_POD, "spec", "containers")
    if not nodes(trainer):
        yield f"{containers} must have a container named {NODE}"


def stable_dns(runtime: Runtime) -> Texts:
    """The nodes find each other by hostnames that Trainer computes."""
    network = runtime.job_set.at("network")
    if network.at("subdomain").is_stated:
        yield f"{network.at('subdomain')} is stated, and Trainer's addresses assume the default"
    if network.at("enableDNSHostnames").value is False:
        yield f"{network.at('enableDNSHostnames')} is false, and the nodes find each other by hostname"
    if runtime.job_set.at("coordinator").is_stated:
        yield f"{runtime.job_set.at('coordinator')} is stated, and Trainer's addresses assume none"


@of_trainer
def no_args(trainer: JsonNode, _: Runtime) -> Texts:
    """Trainer would append them to the job's command."""
    for node in nodes(trainer):
        if node.at("args").is_stated:
            yield f"{node.at('args')} is stated, and Trainer would append it to the job's command"


@of_trainer
def no_pod_retry(trainer: JsonNode, _: Runtime) -> Texts:
    """A retried pod would run twice in one epoch."""
    job, pod = trainer.at("template", "spec"), trainer.at(*_POD, "spec")
    yield from _must_be(job.at("backoffLimit"), 0)
    if job.at("completionMode").is_stated:
        yield from _must_be(job.at("completionMode"), "Indexed")
    for rule in job.at("podFailurePolicy", "rules").items():
        if rule.at("action").value == "Ignore":
            yield f"{rule.at('action')} is Ignore, which runs a failed pod again in the same epoch"
    yield from _must_be(pod.at("restartPolicy"), "Never")
    for container in pod.at("containers").items():
        yield from _not_stated(container.at("restartPolicy"), container.at("restartPolicyRules"))
    for container in pod.at("initContainers").items():
        policy = container.at("restartPolicy")
        if policy.is_stated and policy.value != "Always":
            yield f"{policy} is {quote(policy.value)}, and only Always is possible"
        yield from _not_stated(container.at("restartPolicyRules"))


def recreate_restarts(runtime: Runtime) -> Texts:
    """Only a restart that recreates every job counts in the epoch, which has six digits for it."""
    policy = runtime.job_set.at("failurePolicy")
    if policy.at("restartStrategy").value == "InPlaceRestart":
        yield f"{policy.at('restartStrategy')} is InPlaceRestart, which does not count in the epoch"
    for rule in policy.at("rules").items():
        if rule.at("action").value in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
            yield f"{rule.at('action')} is {rule.at('action').value}, which does not count in the epoch"
    restarts = policy.at("maxRestarts")
    if restarts.integer(default=0) > MOST_RESTARTS:
        yield f"{restarts} must be at most 999,999, not {quote(restarts.value)}"


def success_means_trainer(runtime: Runtime) -> Texts:
    """The TrainJob's success must be the job's."""
    policy = runtime.job_set.at("successPolicy")
    if not policy.is_stated:
        return
    yield from _must_be(policy.at("operator"), "All")
    targets = [target.value for target in policy.at("targetReplicatedJobs").items()]
    trainer = runtime.trainer
    if targets and trainer is not None and trainer.at("name").value not in targets:
        name = quote(trainer.at("name").value)
        yield f"{policy.at('targetReplicatedJobs')} must include the trainer's job {name}, or be empty"


def no_ttl(runtime: Runtime) -> Texts:
    """The outcome must stay readable."""
    yield from _not_stated(runtime.job_set.at("ttlSecondsAfterFinished"))
    for job in runtime.jobs():
        yield from _not_stated(job.at("template", "spec", "ttlSecondsAfterFinished"))


@of_trainer
def no_deadline(trainer: JsonNode, _: Runtime) -> Texts:
    """The limit is the request's."""
    for spec in (trainer.at("template", "spec"), trainer.at(*_POD, "spec")):
        if spec.at("activeDeadlineSeconds").is_stated:
            yield f"{spec.at('activeDeadlineSeconds')} is stated, and the time limit is the request's"


@of_trainer
def no_gpu_resource(trainer: JsonNode, runtime: Runtime) -> Texts:
    """The number is the request's."""
    for node in nodes(trainer):
        for kind in ("requests", "limits"):
            amount = node.at("resources", kind, runtime.gpu_resource)
            if amount.is_stated:
                yield f"{amount} is stated, and the number of GPUs is the request's"


@of_trainer
def no_reserved_env(trainer: JsonNode, _: Runtime) -> Texts:
    """The prologue trusts DISPATCH_ variables."""
    for node in nodes(trainer):
        for entry in node.at("env").items():
            if entry.at("name").text().startswith(DISPATCH_ENV):
                yield f"{entry.at('name')} is {quote(entry.at('name').value)}, and {DISPATCH_ENV} is dispatch's own"
        for source in node.at("envFrom").items():
            prefix = source.at("prefix")
            if prefix.is_stated and _can_be_reserved(prefix.text()):
                yield f"{prefix} is {quote(prefix.value)}, which could make a name beginning {DISPATCH_ENV}"


def no_reserved_keys(runtime: Runtime) -> Texts:
    """Dispatch's keys identify a submission, and Kueue's labels belong to the TrainJob."""
    templates = [runtime.spec.at("template")]
    for job in runtime.jobs():
        templates += [job.at("template"), job.at(*_POD)]
    for template in templates:
        labels, annotations = template.at("metadata", "labels"), template.at("metadata", "annotations")
        for prefix, keys in ((GROUP, labels), (GROUP, annotations), (KUEUE_GROUP, labels)):
            for key in keys.names():
                if key.startswith(f"{prefix}/"):
                    yield f"{keys.at(key)} is stated, and {prefix}/ is reserved"


def not_suspended(runtime: Runtime) -> Texts:
    """The gate is the only thing that keeps a started job from running."""
    yield from _not_stated(runtime.job_set.at("suspend"), runtime.job_set.at("managedBy"))
    for job in runtime.jobs():
        spec = job.at("template", "spec")
        yield from _not_stated(spec.at("suspend"), spec.at("managedBy"))


@of_trainer
def podinfo_free(trainer: JsonNode, _: Runtime) -> Texts:
    """Dispatch mounts the pod's labels and annotations there."""
    for volume in trainer.at(*_POD, "spec", "volumes").items():
        if volume.at("name").value == PODINFO_VOLUME:
            yield f"{volume.at('name')} is {PODINFO_VOLUME}, which is dispatch's own"
    for node in nodes(trainer):
        for mount in node.at("volumeMounts").items():
            path = mount.at("mountPath")
            if f"{_cleaned(path.text())}/".startswith(f"{PODINFO_PATH}/"):
                yield f"{path} is {quote(path.value)}, and {PODINFO_PATH} is dispatch's own"


def no_pod_group(runtime: Runtime) -> Texts:
    """Where the PodGroup CRDs are missing, Trainer fails to make the JobSet for ever, and tells it in its log alone."""
    policy = runtime.spec.at("podGroupPolicy")
    if policy.is_stated:
        yield f"{policy} is stated, and where its PodGroup CRDs are missing the job would wait without a word"


def initializer_container(runtime: Runtime) -> Texts:
    """Trainer's webhook judges the copy, also where a label of the source keeps it away from the source."""
    for job in runtime.jobs():
        step = _ancestor(job).value
        if step not in INITIALIZER_STEPS:
            continue
        replicas, containers = job.at("replicas"), job.at(*_POD, "spec", "containers")
        if replicas.integer(default=1) != 1:
            yield f"{replicas} must be 1, not {quote(replicas.value)}"
        if not any(container.at("name").value == step for container in containers.items()):
            yield f"{containers} must have a container named {step}, as the job's label says"


class RuntimeRule(NamedTuple):
    """A runtime rule: how it is checked, why it is there, and what to write in a runtime that breaks it."""

    id: str
    check: Rule
    reason: str
    remedy: str


RULES: tuple[RuntimeRule, ...] = (
    RuntimeRule(
        "known-policy",
        known_policy,
        "Other policies run the command elsewhere, twice, or joined into one string.",
        "write mlPolicy: {numNodes: 1}, with one of torch: {}, jax: {}, xgboost: {} in it or none",
    ),
    RuntimeRule(
        "one-trainer",
        one_trainer,
        "Trainer puts command, image and environment into the labelled job.",
        "put the label on the template of one job, with replicas: 1",
    ),
    RuntimeRule(
        "node-container",
        node_container,
        "Trainer's rendezvous addresses assume these names.",
        "call the job and the container node",
    ),
    RuntimeRule(
        "stable-dns",
        stable_dns,
        "The nodes find each other by hostnames that Trainer computes.",
        "leave network.subdomain, network.enableDNSHostnames and coordinator out",
    ),
    RuntimeRule(
        "no-args",
        no_args,
        "Trainer would append them to the job's command.",
        "remove args, and put them into the request's command",
    ),
    RuntimeRule(
        "no-pod-retry",
        no_pod_retry,
        "A retried pod would run twice in one epoch.",
        "write backoffLimit: 0 and restartPolicy: Never; the JobSet restarts, by failurePolicy.maxRestarts",
    ),
    RuntimeRule(
        "recreate-restarts",
        recreate_restarts,
        "Such restarts do not count in the epoch, which has six digits for them.",
        "state maxRestarts alone, or the strategy Recreate",
    ),
    RuntimeRule(
        "success-means-trainer",
        success_means_trainer,
        "The TrainJob's success must be the job's.",
        "leave successPolicy out",
    ),
    RuntimeRule(
        "no-ttl",
        no_ttl,
        "The outcome must stay readable.",
        "remove ttlSecondsAfterFinished",
    ),
    RuntimeRule(
        "no-deadline",
        no_deadline,
        "The time limit is the request's.",
        "remove activeDeadlineSeconds, and state timeLimit in the request",
    ),
    RuntimeRule(
        "no-gpu-resource",
        no_gpu_resource,
        "The number of GPUs is the request's.",
        "remove it, and state gpusPerNode in the request; keep cpu and memory",
    ),
    RuntimeRule(
        "no-reserved-env",
        no_reserved_env,
        "The prologue trusts these variables.",
        "use other names, and no prefix such as D",
    ),
    RuntimeRule(
        "no-reserved-keys",
        no_reserved_keys,
        "These keys identify a submission, and the queue is the backend's.",
        "remove these labels and annotations",
    ),
    RuntimeRule(
        "not-suspended",
        not_suspended,
        "Only the gate may keep a started job from running.",
        "remove suspend and managedBy",
    ),
    RuntimeRule(
        "podinfo-free",
        podinfo_free,
        "Dispatch mounts the pod's labels and annotations there.",
        "use another name and another path",
    ),
    RuntimeRule(
        "no-pod-group",
        no_pod_group,
        "Without the PodGroup CRDs Trainer makes no JobSet, and the job waits without a word.",
        "remove podGroupPolicy; in Kueue mode all pods of a job are admitted together",
    ),
    RuntimeRule(
        "initializer-container",
        initializer_container,
        "Trainer's webhook denies the copy, also where a label of the source keeps the webhook from the source.",
        "call the container as the label says, with replicas: 1",
    ),
)
"""Every rule that needs no request, in the contract's order; names-fit is in ``checks.compatibility``."""


def runtime_problems(raw: Mapping[str, Any], gpu_resource: str) -> Iterator[Problem]:
    """Yield every broken rule of a runtime, each with the path that breaks it.

    A value of a wrong type breaks each rule that has to read it.
    """
    if is_nested_deeper(raw.get("spec"), MOST_LEVELS):
        # Comparing a copy with it, and writing it, would end Python's recursion.
        text = f"spec is nested more than {MOST_LEVELS} levels deep, and can't be copied"
        yield Problem(ErrorClass.UNSUPPORTED, RUNTIME_REF, text)
        return
    spec = raw.get("spec")
    try:
        encoded = msgspec.json.encode(spec)
    except (TypeError, ValueError, OverflowError):
        # A file can hold what JSON can't.
        yield from _broken_rules(spec, gpu_resource)
    else:
        yield from _known_problems(_Spec(encoded, spec), gpu_resource)


@dataclass(frozen=True, slots=True)
class _Spec:
    """A runtime's spec, which a thousand Starts name: equal ones are checked once."""

    text: bytes
    value: Any = field(compare=False)


@lru_cache(maxsize=8)
def _known_problems(spec: _Spec, gpu_resource: str) -> tuple[Problem, ...]:
    return tuple(_broken_rules(spec.value, gpu_resource))


def _broken_rules(spec: Any, gpu_resource: str) -> Iterator[Problem]:  # noqa: ANN401 - any JSON value
    runtime = Runtime(JsonNode(("spec",), spec), gpu_resource)
    for rule in RULES:
        yield from rule_problems(rule.id, rule.check(runtime), rule.remedy)


def rule_problems(rule: str, texts: Texts, remedy: str) -> Iterator[Problem]:
    """Yield what one rule finds, a wrong type included."""
    try:
        for text in texts:
            yield Problem(ErrorClass.UNSUPPORTED, rule, text, remedy)
    except WrongShapeError as error:
        yield Problem(ErrorClass.UNSUPPORTED, rule, str(error), remedy)


def _ancestor(job: JsonNode) -> JsonNode:
    return job.at("template", "metadata", "labels", ANCESTOR_LABEL)


def _is_labelled(job: JsonNode) -> bool:
    try:
        return bool(_ancestor(job).value == TRAINER_STEP)
    except WrongShapeError:
        return False


def nodes(trainer: JsonNode) -> list[JsonNode]:
    """Return the trainer's container; a list, because it may be missing."""
    containers = trainer.at(*_POD, "spec", "containers").items()
    return [container for container in containers if container.at("name").value == NODE]


def _must_be(part: JsonNode, wanted: object) -> Texts:
    """Compare by type too: ``false`` is not 0."""
    if type(part.value) is not type(wanted) or part.value != wanted:
        found = "is not stated" if part.value is None else f"is {quote(part.value)}"
        yield f"{part} {found}, and must be {wanted}"


def _not_stated(*parts: JsonNode) -> Texts:
    yield from (f"{part} must not be stated, and is {quote(part.value)}" for part in parts if part.is_stated)


def _can_be_reserved(prefix: str) -> bool:
    return prefix.startswith(DISPATCH_ENV) or DISPATCH_ENV.startswith(prefix)


def _cleaned(path: str) -> str:
    """Return a mount path as the kubelet sees it, from the root and without ``//``, ``.`` and ``..``."""
    return posixpath.normpath("/" + path.lstrip("/"))
