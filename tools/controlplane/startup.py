"""The order in which a control plane comes up."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controlplane import kubectl, manifests, programs, readiness
from controlplane.api import Api
from controlplane.processes import Processes
from controlplane.site import Site
from controlplane.waiting import Condition, Waiter

STEP_SECONDS = 90
CONTROLLERS = {"trainer": programs.trainer, "jobset": programs.jobset, "kueue": programs.kueue}


@dataclass(frozen=True)
class Startup:
    """Brings up the programs of a site, of which `controllers` are to be part."""

    site: Site
    processes: Processes
    waiter: Waiter
    controllers: Sequence[str]
    extra_manifests: Sequence[Path]

    def run(self) -> None:
        """Start everything, in parallel where possible, and return when all of it does its work.

        Raises:
            NotInTimeError: A step took too long.
            ProcessDiedError: A program ended.
            KubectlError: An object was refused.
            StoppedError: It is not wanted any more.
        """
        site = self.site
        api = Api(site.server, site.authority.context(site.administrator))
        self._start_server(api)
        self._install_crds(api)
        for controller in self.controllers:
            self.processes.start(CONTROLLERS[controller](site))
        self._install_extra_manifests(api)
        # Garbage collection looks for new kinds only every half a minute: it starts when all kinds are there.
        self.processes.start(programs.kube_controller_manager(site))
        self._apply(manifests.webhooks(site, self.controllers))
        self._wait_for_the_rest(api)

    def _start_server(self, api: Api) -> None:
        self.processes.start(programs.etcd(self.site))
        self.processes.start(programs.kube_apiserver(self.site))
        self._until("the API server is ready", readiness.server_ready(api))

    def _install_crds(self, api: Api) -> None:
        self._apply(manifests.crds(self.site, self.controllers) + manifests.namespaces(self.controllers))
        self._kubectl("apply", "--server-side", "--validate=false", "-f", str(programs.DATA / "nodes.yaml"))
        self.processes.start(programs.kube_scheduler(self.site))
        self.processes.start(programs.kwok(self.site))
        self._until("the CRDs are served", readiness.crds_served(api))

    def _install_extra_manifests(self, api: Api) -> None:
        if self.extra_manifests:
            files = [f"--filename={path}" for path in self.extra_manifests]
            self._kubectl("apply", "--server-side", *files)
            self._until("the CRDs of the extra manifests are served", readiness.crds_served(api))

    def _wait_for_the_rest(self, api: Api) -> None:
        namespaces = ["default", *(manifests.NAMESPACES[controller] for controller in self.controllers)]
        self._until("the controller manager creates service accounts", readiness.accounts_created(api, namespaces))
        self._until("the simulated nodes are ready", readiness.nodes_ready(api))
        for controller in self.controllers:
            self._until(f"the webhooks of {controller} answer", readiness.webhook_answers(self.site, controller))

    def _until(self, what: str, condition: Condition) -> None:
        self.waiter.until(what, condition, seconds=STEP_SECONDS)

    def _apply(self, objects: list[manifests.Manifest]) -> None:
        self._kubectl("apply", "--server-side", "--validate=false", "-f", "-", input=manifests.as_list(objects))

    def _kubectl(self, *arguments: str, input: str | None = None) -> None:  # noqa: A002  # As subprocess.run calls it.
        kubectl.run(*arguments, input=input, environment=self.site.environment)
