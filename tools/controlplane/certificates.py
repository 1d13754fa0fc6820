"""A certificate authority of the control plane's own, and the key pairs that it signs."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

from controlplane.ports import LOOPBACK


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into `folder`, and trusts only its own."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA(organization_name="dispatch-operator control plane")
        self._folder = folder
        folder.mkdir()
        self.file = folder / "ca.crt"
        self._authority.cert_pem.write_to_path(self.file)

    @property
    def pem(self) -> bytes:
        """The authority's own certificate."""
        return self._authority.cert_pem.bytes()

    def server(self, name: str) -> KeyPair:
        """A serving certificate for loopback, as `<name>/tls.crt` and `<name>/tls.key`, as controllers expect them."""
        return self._write(name, self._authority.issue_cert(LOOPBACK, "localhost", common_name=name))

    def client(self, user: str, group: str | None = None) -> KeyPair:
        """A client certificate that the API server takes for `user` in `group`."""
        name = user.replace(":", "-")
        # Go refuses a certificate whose list of alternative names is empty.
        return self._write(
            f"{name}-client", self._authority.issue_cert(name, common_name=user, organization_name=group)
        )

    def context(self, client: KeyPair) -> ssl.SSLContext:
        """A TLS context that trusts this authority and presents `client`."""
        context = ssl.create_default_context(cafile=self.file)
        context.load_cert_chain(client.certificate, client.key)
        return context

    def _write(self, name: str, leaf: trustme.LeafCert) -> KeyPair:
        folder = self._folder / name
        folder.mkdir(parents=True)
        pair = KeyPair(folder / "tls.crt", folder / "tls.key")
        leaf.cert_chain_pems[0].write_to_path(pair.certificate)
        leaf.private_key_pem.write_to_path(pair.key)
        return pair
