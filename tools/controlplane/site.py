"""What one control plane consists of: its folder, ports, certificates and programs, and how it differs from others."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from controlplane import kubeconfig
from controlplane.build import Built
from controlplane.certificates import Authority, KeyPair
from controlplane.ports import LOOPBACK
from controlplane.variation import Variation

ADMINISTRATORS = "system:masters"


@dataclass(frozen=True)
class Ports:
    """The loopback ports that servers listen on."""

    COUNT: ClassVar[int] = 6

    etcd: int
    etcd_peer: int
    server: int
    trainer: int
    jobset: int
    kueue: int

    def webhook(self, controller: str) -> int:
        """The port of a controller's webhooks."""
        return {"trainer": self.trainer, "jobset": self.jobset, "kueue": self.kueue}[controller]


@dataclass(frozen=True)
class Site:
    """The surroundings in which the programs are started."""

    folder: Path
    ports: Ports
    authority: Authority
    administrator: KeyPair
    tokens: KeyPair
    kubernetes: Built
    controllers: Built
    variation: Variation

    @classmethod
    def prepare(cls, folder: Path, ports: Ports, kubernetes: Built, controllers: Built, variation: Variation) -> Self:
        """Make the folders, the certificates and the administrator's kubeconfig of a new control plane."""
        authority = Authority(folder / "certificates")
        site = cls(
            folder=folder,
            ports=ports,
            authority=authority,
            administrator=authority.client("admin", ADMINISTRATORS),
            tokens=authority.server("service-account-tokens"),
            kubernetes=kubernetes,
            controllers=controllers,
            variation=variation,
        )
        site.logs.mkdir()
        site.write_kubeconfig("admin", site.administrator)
        return site

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which kubectl and client libraries find this cluster as administrator."""
        # Kubectl caches what a server serves by its address, and another cluster may have had this one's.
        return {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.folder / "kubectl-cache")}

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://{LOOPBACK}:{self.ports.server}"

    @property
    def logs(self) -> Path:
        """The folder of the programs' log files."""
        return self.folder / "logs"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log."""
        return self.logs / "audit.jsonl"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    def home(self, program: str) -> Path:
        """A folder of a program's own; it exists."""
        home = self.folder / program
        home.mkdir(exist_ok=True)
        return home

    def write_kubeconfig(self, name: str, pair: KeyPair) -> Path:
        """Write the kubeconfig `<name>.kubeconfig` of a client certificate."""
        return kubeconfig.write(
            self.folder / f"{name}.kubeconfig",
            server=self.server,
            authority=self.authority.pem,
            user=kubeconfig.for_certificate(pair),
        )

    def issue_kubeconfig(self, name: str, user: str, group: str | None = None) -> Path:
        """Write a kubeconfig for `user`, with a certificate of its own, so that the audit log tells who did what."""
        return self.write_kubeconfig(name, self.authority.client(user, group))
