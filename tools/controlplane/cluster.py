"""A running cluster, as its users see it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controlplane import audit, kubeconfig, kubectl
from controlplane.administrator import Administrator
from controlplane.site import Site


class Cluster:
    """A handle on a running control plane.

    Attributes:
        server: The URL of the API server.
        ca_file: The certificate authority that signed the server's certificate.
        kubeconfig: The administrator's kubeconfig.
        folder: Everything that the cluster keeps; it is removed at the end.
        logs: The folder of the log files, `<program>.log` each.
        audit_log: The API server's audit log, a JSON object per line.
        environment: The variables with which kubectl and client libraries find the cluster as its administrator.
        pids: The process id of each program.
    """

    def __init__(self, site: Site, pids: Mapping[str, int], check: Callable[[], None]) -> None:
        self.server = site.server
        self.ca_file = site.authority.file
        self.kubeconfig = site.kubeconfig
        self.folder = site.folder
        self.logs = site.logs
        self.audit_log = site.audit_log
        self.environment = site.environment
        self.pids = dict(pids)
        self._site = site
        self._check = check
        self._administrator = Administrator(site.server, site.authority.file, site.administrator)

    def check(self) -> None:
        """Return when every program still runs.

        Raises:
            ProcessDiedError: One ended; the message says which, and the end of its log.
        """
        self._check()

    def close(self) -> None:
        """Close the connections that are kept."""
        self._administrator.close()

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # As subprocess.run calls it.
        """Run kubectl as the administrator and return what it printed.

        Raises:
            KubectlError: It failed.
            ProcessDiedError: It failed, and a program of the control plane has ended.
        """
        try:
            return kubectl.run(*arguments, input=input, environment=self.environment)
        except kubectl.KubectlError:
            self._check()
            raise

    def get(self, path: str) -> dict[str, Any]:
        """Read the object or the list at a path of the API, as the administrator.

        Raises:
            RequestError: It is not there.
            ProcessDiedError: A program of the control plane has ended.
        """
        with self._alive():
            return self._administrator.get(path)

    def apply(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Apply an object server-side, strictly, as the administrator, and return what is stored.

        Raises:
            RequestError: It is refused, or its kind is not served.
            ProcessDiedError: A program of the control plane has ended.
        """
        with self._alive():
            return self._administrator.apply(obj)

    def merge(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        """Merge-patch the object at a path of the API, as the administrator, and return what is stored.

        Raises:
            RequestError: It is refused, or is not there.
            ProcessDiedError: A program of the control plane has ended.
        """
        with self._alive():
            return self._administrator.merge(path, change)

    @contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._check()
            raise

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Write a kubeconfig with a fresh token of a service account, which must exist, and return its path."""
        token = self.kubectl("create", "token", service_account, f"--namespace={namespace}", "--duration=24h").strip()
        return kubeconfig.write(
            self.folder / f"{namespace}.{service_account}.kubeconfig",
            server=self.server,
            authority=self._site.authority.pem,
            user=kubeconfig.for_token(token),
            namespace=namespace,
        )

    def requests(self, user: str | None = None) -> Iterator[audit.Request]:
        """The requests that were made so far, all or one user's; see `audit.requests`."""
        return audit.requests(self.audit_log, user)
