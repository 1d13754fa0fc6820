"""What to do next about what keeps a Start from running, or ended it: a sentence, and the command for it. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.enums import Condition, ErrorClass, ErrorKind, Gate
from dispatch_operator.api.kinds import RESOURCES, Kind, RuntimeKind
from dispatch_operator.api.models.start import IMAGE, RUNTIME_REF
from dispatch_operator.checks.compatibility import NAMES_FIT
from dispatch_operator.checks.problems import SEPARATOR
from dispatch_operator.checks.request import FIELDS
from dispatch_operator.checks.runtime import RULES
from dispatch_operator.checks.start import RuntimeReference, reference
from dispatch_operator.plugin.session import Kubectl
from dispatch_operator.reconcile.failure_cause import DID_NOT_RUN, Cause
from dispatch_operator.records.dispatch import DispatchStart

_FIELDS = frozenset(field for field, _ in FIELDS)
_GUARDED = tuple(f"{name}: " for name in (IMAGE, "nodes", "gpusPerNode", "timeLimit"))
"""What guard rails are about."""
_RULES = frozenset((*(rule.id for rule in RULES), NAMES_FIT))
_NAMED = re.compile(
    rf"(?:{'|'.join(map(re.escape, sorted(_FIELDS | _RULES)))}|state|backend|request|spec|[^\s:]+/[^\s:]+): "
)
"""How a problem begins: the field, the rule, the extension that it is about, or the word ``state``."""


RENDER = "kubectl dispatch render -f START.yaml --backend BACKEND.yaml --runtime RUNTIME.yaml"
"""It needs no cluster. What is in capitals is for whoever reads it to fill in."""


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    text: str
    command: str = ""
    """What to run for it; empty when no command does it."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"do": self.text, "command": self.command or None}


@dataclass(frozen=True)
class Advisor:
    """Knows the Start that is asked about, and writes commands about it."""

    start: DispatchStart
    kubectl: Kubectl

    @property
    def name(self) -> str:
        """The DispatchStart's name."""
        return self.start.metadata.name

    @property
    def may_go_on(self) -> bool:
        """Whether the job may yet be started, or run on: beside another submission of it, both would run."""
        phase = self.start.status.phase
        has_ended = phase is not None and phase.is_end
        return not has_ended and self.start.gate is not Gate.CANCELLED

    def submit_again(self, text: str) -> Step:
        """Say that the same request may be submitted again, under another number; only of what has ended."""
        what = f"{text}, in another DispatchStart with another submission number; its request is in this one"
        return Step(what, self.kubectl("get", "dispatchstart", self.name, "-o", "yaml"))

    def submit_another(self, what: str) -> Iterator[Step]:
        """Say that a request can't be changed, and how a corrected one is tried; what may go on is cancelled first."""
        tried = "Try the file before you apply it, with your files for the words in capitals"
        if self.may_go_on:
            yield Step(
                f"{what}: a request can't be changed, so another DispatchStart must ask. First cancel this one: it may "
                "yet go on, and then both run",
                self.kubectl("dispatch", "cancel", self.name),
            )
            yield Step(f"Then write another DispatchStart with another submission number. {tried}", RENDER)
        else:
            text = f"{what}: a request can't be changed, so write another DispatchStart with another submission number"
            yield Step(f"{text}. {tried}", RENDER)

    def delete_and_submit_again(self) -> Iterator[Step]:
        """Say what is left to do about a job that can't run any more, and has not ended: its request goes with it."""
        yield Step(
            "This job can't run any more. Keep its request for another DispatchStart, with another submission number",
            self.kubectl("get", "dispatchstart", self.name, "-o", "yaml"),
        )
        yield Step("Delete this one, and then submit the other", self.kubectl("delete", "dispatchstart", self.name))

    def of_taken_submission(self) -> Step:
        """Say that the submission's name is another object's: nothing can be mended, another number must do."""
        request = self.start.request
        return self.submit_again(
            f"Submission {request.submission} of the job {request.job} is taken, and this refusal is final: delete "
            "this DispatchStart if you did not mean another submission; otherwise submit it"
        )

    def check_backend(self, text: str) -> Step:
        """Say to look at the backend."""
        return Step(text, self.kubectl("dispatch", "check-backend", self.start.backend or "default"))

    def ask_again(self, text: str = "Nothing is to be done: it goes on by itself. If it lasts, look again") -> Step:
        """Say that nothing is to be done but to look again."""
        return Step(text, self.kubectl("dispatch", "explain", self.name))

    def see_operator(self, text: str) -> Step:
        """Say to see whether an operator runs."""
        return see_operator(text, self.kubectl)

    def logs(self, text: str) -> Step:
        """Say to read what the trainer's pods wrote."""
        return Step(text, self.kubectl("dispatch", "logs", self.name))

    def of_problems(self, problems: Iterable[str], step: str, error_class: str) -> Iterator[Step]:
        """Yield what to do about the problems of a refusal, each thing once."""
        told = tuple(problems)
        names = {problem.partition(": ")[0] for problem in told}
        text = "; ".join(told)
        if error_class == ErrorClass.UNREACHABLE and "state" not in names:
            yield self.ask_again()
        elif step == Condition.REQUEST_VALID:
            yield from self._of_request(told, names, error_class)
        elif "exceeded quota" in text:
            yield Step("A ResourceQuota of the namespace is full: make room, or have it raised", self._describe_quota())
        elif "Kueue does not handle" in text:
            yield Step(
                "Kueue must handle TrainJobs: its configuration must list trainer.kubeflow.org/trainjob among the "
                "frameworks of its integrations",
                self.kubectl("get", "configmaps", "-n", "kueue-system", "-o", "yaml", namespaced=False),
            )
        elif step == Condition.READ_BACK:
            yield Step(
                "Something in the cluster changes TrainJobs as they are stored: find the webhook or policy that does, "
                "and let it leave dispatch's TrainJobs alone",
                self.kubectl("get", "mutatingwebhookconfigurations", namespaced=False),
            )
        elif step == Condition.WORKLOAD_GATED:
            yield self.check_backend("See what of the backend's queue and check is not as it should be")

    def _of_request(self, told: tuple[str, ...], names: set[str], error_class: str) -> Iterator[Step]:
        text = "; ".join(told)
        runtime = reference(self.start.reading)
        if "state" in names and "there is no DispatchBackend" in text:
            listed = self.kubectl("get", "dispatchbackends")
            yield Step("The namespace's admin must create that DispatchBackend. See which there are", listed)
        elif "state" in names:
            yield self.check_backend("See what is wrong with the backend; its admin can change it")
        if names & _RULES:
            yield from self._of_runtime(runtime)
        if RUNTIME_REF in names and "does not exist" in text and runtime:
            yield Step("See which runtimes there are", self._list_runtimes(runtime.kind))
        elif RUNTIME_REF in names:
            yield self.check_backend("See which runtimes the backend lists; its admin may add another")
        others = RUNTIME_REF in names
        if any(problem.startswith(_GUARDED) and "the backend" in problem for problem in told):
            others = True
            yield self.check_backend("See what the backend allows; its admin may allow more")
        of_request = sorted(name for name in names if name in _FIELDS or "/" in name or name in {"request", "spec"})
        if of_request and error_class in {ErrorClass.INVALID, ErrorClass.UNSUPPORTED}:
            yield from self.submit_another(f"{'Otherwise correct' if others else 'Correct'} {', '.join(of_request)}")

    def _of_runtime(self, runtime: RuntimeReference | None) -> Iterator[Step]:
        if runtime is None or runtime.kind not in set(RuntimeKind):
            return
        called = f"{runtime.kind}/{runtime.name}"
        is_shared = runtime.kind == RuntimeKind.CLUSTER_TRAINING_RUNTIME
        yield Step(
            "See what to write in the runtime instead, rule by rule",
            self.kubectl("dispatch", "check-runtime", called, namespaced=not is_shared),
        )
        written = self.kubectl("get", called, "-o", "yaml", namespaced=not is_shared)
        yield Step("Or have a fit one written from it", f"{written} | kubectl dispatch adapt-runtime -f -")

    def _list_runtimes(self, kind: str) -> str:
        known = Kind(kind) if kind in set(RuntimeKind) else Kind.CLUSTER_TRAINING_RUNTIME
        return self.kubectl("get", RESOURCES[known].plural, namespaced=RESOURCES[known].namespaced)

    def of_obstacle(self, cause: Cause) -> Iterator[Step]:
        """Yield what to do about what keeps pods from running."""
        named = re.match(r"pod ([^\s,:]+)", cause.message, re.IGNORECASE)
        pod = cause.pod or (named[1] if named else None)
        if cause.reason == "FailedCreate" or "exceeded quota" in cause.message:
            yield from self._of_pods_that_are_not_made(cause)
            return
        text = _OBSTACLES.get(cause.reason, "See what Kubernetes tells of it")
        image = self.start.request.spec.extensions.image
        text = text.replace("{image}", image.ref if image else "")
        yield Step(text, self._describe_pod(pod) if pod else self._events())
        if cause.reason in _OF_THE_REQUEST:
            yield from self.submit_another("If the image's name is wrong, correct dispatch/Image")

    def _of_pods_that_are_not_made(self, cause: Cause) -> Iterator[Step]:
        if "exceeded quota" in cause.message:
            yield Step("A ResourceQuota of the namespace is full: make room, or have it raised", self._describe_quota())
        elif missing := re.search(r'serviceaccount "([^"]+)" not found', cause.message):
            yield Step(
                f"The runtime's pods need the ServiceAccount {missing[1]}: create it; the pods follow by themselves",
                self.kubectl("create", "serviceaccount", missing[1]),
            )
        else:
            yield Step("The cluster refuses the job's pods, and the message says why", self._events())

    def of_queue(self, message: str, workload: str) -> Iterator[Step]:
        """Yield what to do about a job that Kueue keeps back."""
        if "kubectl delete workload" in message:
            yield Step(
                "Mend what Kueue tells, then have the job queued anew: Kueue makes another Workload",
                self.kubectl("delete", "workload", workload),
            )
            return
        if any(word in message for word in ("does not exist", "is not active", "does not name", "binds the admission")):
            yield self.check_backend("Kueue's set-up is not as the job needs it: see what to mend")
        elif "admission check" in message:
            yield Step("A check of the queue is not Ready: see what its controller says", self._describe(workload))
        else:
            yield Step("Nothing is to be done unless it lasts: it waits for its turn. See the queue", self._queue())
            if workload:
                yield Step("See what Kueue says of this job", self._describe(workload))

    def of_failure(self, cause: str, kind: ErrorKind | None, pod: str | None) -> Iterator[Step]:
        """Yield what to do about a job that failed."""
        if cause in _FAILURES:
            yield Step(_FAILURES[cause])
        if pod:
            yield self.logs("See what the trainer wrote last, while its pods are kept")
        match kind:
            case ErrorKind.USER:
                yield from self.submit_another("Mend the program, the request or the runtime")
            case ErrorKind.SYSTEM:
                yield self.submit_again("It was the node or the cluster: submit it again")
            case _:
                yield from self.submit_another("Find out why before you submit it again")

    def of_no_run(self, obstacle: Cause) -> Iterator[Step]:
        """Yield what to do about a job that its time limit ended before it ran; its pods are being taken away."""
        for step in self.of_obstacle(obstacle):
            is_of_pod = step.command.startswith("kubectl describe pod ")
            yield Step(step.text.partition("; the pod")[0], "" if is_of_pod else step.command)
        yield self.submit_again("The timeLimit passed before it ran: once that is mended, submit it again")

    def _describe_pod(self, pod: str) -> str:
        return self.kubectl("describe", "pod", pod)

    def _describe_quota(self) -> str:
        return self.kubectl("describe", "resourcequota")

    def _describe(self, workload: str) -> str:
        return self.kubectl("describe", "workload", workload)

    def _queue(self) -> str:
        return self.kubectl("get", "localqueues,workloads")

    def _events(self) -> str:
        return self.kubectl("get", "events", "--field-selector", "type=Warning", "--sort-by", ".lastTimestamp")


def see_operator(text: str, kubectl: Kubectl) -> Step:
    """Say to see whether an operator runs, in the cluster or by hand."""
    pods = kubectl("get", "pods", "-A", "-l", "app.kubernetes.io/name=dispatch-operator", namespaced=False)
    by_hand = "or, if you run it yourself, see whether `dispatch-operator run` still runs there"
    return Step(f"{text}, {by_hand}. Where this lists no pod, none runs in the cluster", pods)


def kept_back(message: str) -> Cause | None:
    """Return what kept a job from running until its time limit ended it; None when its outcome tells of nothing."""
    _, _, told = message.partition(DID_NOT_RUN)
    reason, _, said = told.partition(": ")
    return Cause(reason, said, ErrorKind.UNKNOWN) if said else None


def split(message: str) -> list[str]:
    """Return the problems of a message, which joins them; a text may itself hold what joins them."""
    found: list[str] = []
    for part in message.split(SEPARATOR):
        if found and not _NAMED.match(part):
            found[-1] += SEPARATOR + part
        else:
            found.append(part)
    return [one for one in found if one]


_OF_THE_REQUEST = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_OBSTACLES: Mapping[str, str] = {
    **dict.fromkeys(
        ("ErrImagePull", "ImagePullBackOff"),
        "The image {image} can't be had: see that its name is right, that its registry answers, and that the pods may "
        "pull it (imagePullSecrets of the runtime's pod or of its ServiceAccount)",
    ),
    "InvalidImageName": "The image's name {image} is none",
    "ErrImageNeverPull": "The runtime's imagePullPolicy is Never, and the node has no image {image}",
    "CreateContainerConfigError": (
        "A Secret or ConfigMap that the runtime names is missing, or lacks a key: create it; the pod follows by itself"
    ),
    "CreateContainerError": "The container can't be made as the runtime says: see its mounts, devices and command",
    "RunContainerError": "The container can't be started: see its mounts and devices, and that the image has /bin/sh",
    "Unschedulable": (
        "No node fits: compare what the pod asks for (GPUs, memory, nodeSelector, tolerations) with the nodes there are"
    ),
    "SchedulingGated": "Another controller gates the pod's scheduling: see which",
    "FailedMount": "A volume of the runtime can't be mounted: see that what it names exists",
    "FailedAttachVolume": "A volume of the runtime can't be attached to the node",
    "FailedScheduling": "No node fits: see what the scheduler says",
}
_FAILURES: Mapping[str, str] = {
    "OOMKilled": "It used more memory than its limit: raise the runtime's limit, or use less, as by smaller batches",
    "WorkDirMissing": "The directory of workDir is not in the container: correct workDir, or mount it in the runtime",
    "DeadlineExceeded": "The request's timeLimit has passed: allow more, or find what took so long",
    "StartError": "The container could not be started: see that the image has /bin/sh",
    "ContainerCannotRun": "The container could not be started: see that the image has /bin/sh",
    "InitContainerFailed": "A container that runs before the trainer's failed: it is the runtime's",
    "OtherContainerFailed": "It was not the trainer's process, but a container of the runtime beside it",
}
