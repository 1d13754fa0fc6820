"""Reading objects without kubectl, of which a process for each look would be most of what a waiting test costs."""

import http.client
import json
import ssl
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controlplane.certificates import KeyPair

SECONDS = 30


class ReadError(RuntimeError):
    """The API server did not answer with what was asked for; the message is its answer."""


class Reader:
    """Reads as the administrator."""

    def __init__(self, server: str, ca_file: Path, administrator: KeyPair) -> None:
        self._address = urlsplit(server).netloc
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._tls.load_cert_chain(administrator.certificate, administrator.key)

    def get(self, path: str) -> dict[str, Any]:
        """Return what is at a path.

        Raises:
            ReadError: It is not there, or may not be read.
        """
        with closing(http.client.HTTPSConnection(self._address, context=self._tls, timeout=SECONDS)) as connection:
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
        if answer.status != HTTPStatus.OK:
            raise ReadError(f"GET {path}: {answer.status} {body.decode(errors='replace')}")
        found: dict[str, Any] = json.loads(body)
        return found
