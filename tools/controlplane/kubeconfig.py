"""Kubeconfig files, with everything inside them."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from controlplane.certificates import KeyPair


def for_certificate(pair: KeyPair) -> dict[str, str]:
    """The user entry for a client certificate."""
    return {
        "client-certificate-data": _base64(pair.certificate.read_bytes()),
        "client-key-data": _base64(pair.key.read_bytes()),
    }


def for_token(token: str) -> dict[str, str]:
    """The user entry for a bearer token."""
    return {"token": token}


def write(path: Path, *, server: str, authority: bytes, user: Mapping[str, str], namespace: str = "default") -> Path:
    """Write a kubeconfig, which is JSON and so YAML too, readable by its owner alone."""
    name = "controlplane"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(authority)}},
        ],
        "users": [{"name": name, "user": dict(user)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2))
    return path


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
