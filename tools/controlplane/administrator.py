"""The administrator's requests without kubectl, a process of which would be most of what a waiting test costs."""

import http.client
import json
import ssl
from collections import deque
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controlplane.certificates import KeyPair

SECONDS = 30
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
Object = dict[str, Any]


class RequestError(RuntimeError):
    """The API server did not answer with what was asked for; the message is its answer."""


class Administrator:
    """Makes requests over connections that are kept, as many as there are threads at a time."""

    def __init__(self, server: str, ca_file: Path, administrator: KeyPair) -> None:
        self._address = urlsplit(server).netloc
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._tls.load_cert_chain(administrator.certificate, administrator.key)
        self._idle: deque[http.client.HTTPSConnection] = deque()
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}

    def get(self, path: str) -> Object:
        """Return what is at a path.

        Raises:
            RequestError: It is not there, or may not be read.
        """
        return self._request("GET", path)

    def apply(self, obj: Object) -> Object:
        """Apply an object server-side, strictly, as kubectl does, and return what is stored.

        Raises:
            RequestError: It is refused, or its kind is not served.
        """
        plural, namespaced = self._resource(obj["apiVersion"], obj["kind"])
        meta = obj["metadata"]
        place = f"/namespaces/{meta.get('namespace', 'default')}" if namespaced else ""
        path = f"{_root(obj['apiVersion'])}{place}/{plural}/{meta['name']}?fieldManager=kubectl&fieldValidation=Strict"
        return self._request("PATCH", path, obj, APPLY)

    def merge(self, path: str, change: Object) -> Object:
        """Merge-patch the object at a path, as kubectl does, and return what is stored.

        Raises:
            RequestError: It is refused, or is not there.
        """
        return self._request("PATCH", f"{path}?fieldManager=kubectl-patch", change, MERGE)

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._paths:
            for served in self.get(_root(api_version))["resources"]:
                if "/" not in served["name"]:
                    self._paths[api_version, served["kind"]] = (served["name"], served["namespaced"])
        try:
            return self._paths[api_version, kind]
        except KeyError:
            raise RequestError(f"{api_version} {kind} is not served") from None

    def _request(self, verb: str, path: str, body: Object | None = None, content_type: str = "") -> Object:
        try:
            answer, content = self._answer(verb, path, body, content_type)
        except (http.client.HTTPException, OSError):
            # The server closes a kept connection when it likes; none of these requests does harm twice.
            answer, content = self._answer(verb, path, body, content_type)
        if answer.status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
            raise RequestError(f"{verb} {path}: {answer.status} {content.decode(errors='replace')}")
        found: Object = json.loads(content)
        return found

    def _answer(
        self, verb: str, path: str, body: Object | None, content_type: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = http.client.HTTPSConnection(self._address, context=self._tls, timeout=SECONDS)
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if content_type else {})
        try:
            connection.request(verb, path, json.dumps(body).encode() if body is not None else None, headers)
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer, content


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
