"""The Kubernetes API as the operator uses it: requests that are bounded in time and fail in one way."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
from kubernetes_asyncio import client, config
from msgspec import json
from yaml import YAMLError

from dispatch_operator import __version__
from dispatch_operator.api.kinds import RESOURCES, Kind
from dispatch_operator.kube.connections import UNLIMITED, Connections
from dispatch_operator.kube.decoding import PAGE_LIMIT, ListPage, Unreadable, WatchEvent, decoded, watch_events
from dispatch_operator.kube.errors import (
    HTTP_UNAUTHORIZED,
    ApiError,
    Effect,
    MalformedAnswerError,
    PageTooLargeError,
    answered,
)
from dispatch_operator.kube.server_clock import ServerClock
from dispatch_operator.metrics import instruments

USER_AGENT = f"dispatch-operator/{__version__}"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
LARGEST_PAGE_BYTES = 8 * 2**20
"""Of a list: what is larger is asked for in smaller pages, so that memory stays bounded."""
CHUNK_BYTES = 2**16
"""Taken at once of what has arrived: after a burst that may be megabytes, which would be held twice."""
UNBOUNDED = aiohttp.ClientTimeout()
"""What bounds a request is its own timeout: aiohttp's of five minutes must not be the shorter one."""
LONGEST_REFUSAL_BYTES = 2**16
"""Read of an answer that says no."""
DEFAULT_NAMESPACE = "default"
Object = dict[str, Any]
T = TypeVar("T")


class Client:
    """Requests to one API server; each is bounded in time, and fails only with ApiError."""

    def __init__(self, api: client.ApiClient, namespace: str = DEFAULT_NAMESPACE) -> None:
        self.api = api
        """The library's client, for what the library does by itself."""
        self.namespace = namespace
        """The namespace that a kubeconfig's context names, for those who name none."""
        self.authorized = True
        """False while the API server does not accept the credentials."""
        self.clock = ServerClock()
        """The API server's."""
        self._requests = Connections(api.configuration, USER_AGENT, UNLIMITED)
        self._streams = Connections(api.configuration, USER_AGENT, UNLIMITED)
        """Lists and watches must not wait for each other's connections: a watch keeps its own, and there are many."""

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self.api.configuration.host)

    def session(self) -> aiohttp.ClientSession:
        """Return a session for kopf, with the credentials of this client, which it reads anew for each request."""
        configuration = self.api.configuration

        async def authorize(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            if key := await configuration.get_api_key_with_prefix("BearerToken"):
                request.headers["Authorization"] = key
            try:
                return await handler(request)
            except Exception as error:
                if session.closed:
                    # Another request was refused, and kopf logs in anew; it knows this error, and no other, for that.
                    raise RuntimeError("Session is closed") from error
                raise

        session = self._streams.session(authorize)
        return session

    async def get(self, kind: Kind, namespace: str | None, name: str, *, timeout: float) -> Object | None:
        """Read one object live; None when it does not exist.

        Raises:
            ApiError: The request failed; a kind that is not served counts as a failure, not as absence.
        """
        try:
            return await self._request("get", "GET", kind, namespace, name, timeout=timeout)
        except ApiError as error:
            if error.not_found and error.reason == "NotFound":
                return None
            raise

    async def select(  # noqa: PLR0913 - a list has this many parts.
        self,
        kind: Kind,
        namespace: str | None,
        *,
        timeout: float,
        read: Callable[[Object], T],
        most: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        """List objects of one namespace, or of all, by selectors, in pages; a job may have ten thousand pods.

        Args:
            kind: What objects.
            namespace: None for all.
            timeout: Seconds for each page.
            read: What is kept of each object, one after the other.
            most: Objects after which no further page is asked for.
            label_selector: Which objects; empty for all.
            field_selector: Which objects; empty for all.

        Raises:
            ApiError: A page could not be had.
        """
        found: list[T] = []
        limit, token = min(PAGE_LIMIT, most), ""
        while True:
            try:
                page = await self.list_page(
                    kind,
                    namespace,
                    timeout=timeout,
                    limit=limit,
                    continue_token=token,
                    label_selector=label_selector,
                    field_selector=field_selector,
                )
                for obj in page:
                    # One that can't be decoded must not hide the others.
                    if not isinstance(obj, Unreadable):
                        found.append(read(obj))
                    # A whole page takes longer than the event loop may be blocked.
                    await asyncio.sleep(0)
            except PageTooLargeError:
                if limit == 1:
                    raise
                limit = max(limit // 8, 1)
                continue
            except MalformedAnswerError as error:
                raise ApiError("list", kind, Effect.UNANSWERED, str(error)) from error
            token = page.continue_token
            if not token or len(found) >= most:
                return tuple(found)

    async def list_page(  # noqa: PLR0913 - a page has this many parts.
        self,
        kind: Kind,
        namespace: str | None,
        *,
        timeout: float,
        limit: int,
        continue_token: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> ListPage:
        """Return a page of the objects of one namespace, or of all.

        Args:
            kind: What objects.
            namespace: None for all.
            timeout: Seconds for all of it.
            limit: The most objects of a page.
            continue_token: Of the page before; empty for the first.
            label_selector: Which objects; empty for all.
            field_selector: Which objects; empty for all.
            metadata_only: Whether to leave out all but the objects' metadata.

        Raises:
            ApiError: The request failed.
            PageTooLargeError: The page holds more than LARGEST_PAGE_BYTES.
            MalformedAnswerError: The answer is no text.
        """
        query = {
            "limit": str(limit),
            "continue": continue_token,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        accept = METADATA_LIST if metadata_only else JSON
        body = bytearray()
        async with self._stream(
            "list", kind, namespace, query, accept=accept, answer_within=timeout, end_within=timeout
        ) as content:
            async for chunk in content.iter_chunked(CHUNK_BYTES):
                body += chunk
                if len(body) > LARGEST_PAGE_BYTES:
                    raise PageTooLargeError("list", kind, Effect.DEFINITE, f"{limit} objects are too many bytes")
        return ListPage(bytes(body))

    @asynccontextmanager
    async def watch(  # noqa: PLR0913 - a watch has this many parts.
        self,
        kind: Kind,
        namespace: str | None,
        *,
        timeout: float,
        resource_version: str,
        seconds: int,
        grace: float,
        silent_for: float,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Watch the objects of one namespace, or of all; entered when the API server has begun to answer.

        Args:
            kind: What objects.
            namespace: None for all.
            timeout: Seconds until the answer begins.
            resource_version: What to watch from.
            seconds: When the API server is to end the watch.
            grace: Seconds to wait beyond that before the connection counts as lost.
            silent_for: Seconds without a byte after which the connection counts as lost.
            label_selector: Which objects; empty for all.
            field_selector: Which objects; empty for all.
            metadata_only: Whether to leave out all but the objects' metadata.

        Raises:
            ApiError: The request failed, or its answer broke off.
            MalformedAnswerError: The answer is no watch.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        accept = METADATA if metadata_only else JSON
        async with (
            self._stream(
                "watch",
                kind,
                namespace,
                query,
                accept=accept,
                answer_within=timeout,
                end_within=seconds + grace,
                silent_for=silent_for,
            ) as content,
            aclosing(watch_events(content.iter_chunked(CHUNK_BYTES))) as events,
        ):
            yield events

    @asynccontextmanager
    async def log(  # noqa: PLR0913 - a log has this many parts.
        self, namespace: str, pod: str, *, timeout: float, container: str, follow: bool = False, tail: int | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read what a container has written, as it comes; entered when the API server has begun to answer.

        Args:
            namespace: The pod's.
            pod: Its name.
            timeout: Seconds until the answer begins.
            container: Its name.
            follow: Whether to go on until the container ends.
            tail: How many of the last lines; None for all that is kept.

        Raises:
            ApiError: The request failed, as that of a container that has not begun, or its answer broke off.
        """
        query = {
            "container": container,
            "follow": "true" if follow else "",
            "tailLines": "" if tail is None else str(tail),
        }
        async with self._stream(
            "log", Kind.POD, namespace, query, accept="*/*", answer_within=timeout, end_within=None, of=(pod, "log")
        ) as content:
            yield content.iter_any()

    @asynccontextmanager
    async def _stream(  # noqa: PLR0913 - one request has this many parts.
        self,
        verb: str,
        kind: Kind,
        namespace: str | None,
        query: Mapping[str, str],
        *,
        accept: str,
        answer_within: float,
        end_within: float | None,
        silent_for: float | None = None,
        of: tuple[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Get a collection, or a part of one object, as a stream of bytes: the library would keep the whole answer."""
        path, target = _collection(kind, namespace, of[0] if of else "")
        path += f"/{quote(of[0], safe='')}/{of[1]}" if of else ""
        bounds = aiohttp.ClientTimeout(total=end_within, sock_read=silent_for)
        response: aiohttp.ClientResponse | None = None
        try:
            with instruments.request(verb, kind):
                async with asyncio.timeout(answer_within):
                    response = await self._send(
                        self._streams,
                        "GET",
                        path,
                        query=[(key, value) for key, value in query.items() if value],
                        headers={"Accept": accept},
                        bounds=bounds,
                    )
                    if not response.ok:
                        refusal = await response.content.read(LONGEST_REFUSAL_BYTES)
                        retry_after = response.headers.get("Retry-After")
                        raise answered(verb, target, response.status, _text(refusal), retry_after)
            yield response.content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise from_exception(verb, target, error) from error
        finally:
            if response is not None:
                # What was not read to its end can't be used for another request.
                response.close()

    async def _send(  # noqa: PLR0913 - one request has this many parts.
        self,
        connections: Connections,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None,
        headers: dict[str, str],
        bounds: aiohttp.ClientTimeout,
        body: bytes | None = None,
    ) -> aiohttp.ClientResponse:
        """Send a request with the credentials as they are now, and return the answer when it begins."""
        await self.api.update_params_for_auth(headers, [], ["BearerToken"])
        response = await connections.request(method, path, query, headers, body, bounds)
        self.authorized = response.status != HTTP_UNAUTHORIZED
        return response

    async def aclose(self) -> None:
        """Close the connections; those of the library's client are its own."""
        await self._requests.aclose()
        await self._streams.aclose()

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any], *, timeout: float) -> Object:
        """Create one object and return what was stored."""
        return await self._request("create", "POST", kind, namespace, None, timeout=timeout, body=body)

    async def patch(  # noqa: PLR0913 - a patch has this many parts.
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        timeout: float,
        subresource: str = "",
    ) -> Object:
        """Merge-patch one object; ``metadata.uid`` and ``metadata.resourceVersion`` in it are preconditions."""
        return await self._request(
            "patch", "PATCH", kind, namespace, name, timeout=timeout, body=body, subresource=subresource
        )

    async def apply_status(  # noqa: PLR0913 - an apply has this many parts.
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any],
        *,
        timeout: float,
        field_manager: str,
    ) -> Object:
        """Apply a part of an object's status server-side, taking over just the fields that the body names."""
        return await self._request(
            "apply",
            "PATCH",
            kind,
            namespace,
            name,
            timeout=timeout,
            body=body,
            query=[("fieldManager", field_manager), ("force", "true")],
            subresource="status",
            content_type=APPLY_PATCH,
        )

    async def delete(  # noqa: PLR0913 - a delete has this many parts.
        self, kind: Kind, namespace: str, name: str, *, timeout: float, uid: str, resource_version: str | None = None
    ) -> None:
        """Delete one object if it is still the one of that UID (and resourceVersion)."""
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        await self._request(
            "delete",
            "DELETE",
            kind,
            namespace,
            name,
            timeout=timeout,
            body={
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": preconditions,
                "propagationPolicy": "Background",
            },
        )

    async def _request(  # noqa: PLR0913 - one request has this many parts.
        self,
        verb: str,
        method: str,
        kind: Kind,
        namespace: str | None,
        name: str | None,
        *,
        timeout: float,
        body: Mapping[str, Any] | None = None,
        query: list[tuple[str, str]] | None = None,
        subresource: str = "",
        content_type: str | None = None,
    ) -> Object:
        path, target = _collection(kind, namespace, name or _name_of(body))
        path += (f"/{quote(name, safe='')}" if name else "") + (f"/{subresource}" if subresource else "")
        with instruments.request(verb, kind):
            return await self._call(
                verb, method, path, target, timeout=timeout, body=body, query=query, content_type=content_type
            )

    async def served(self, *, timeout: float) -> Mapping[str, str]:
        """Return the API versions that the API server serves, each with the hash of all that it serves as that.

        Every authenticated account may ask this (`system:discovery`).
        """
        index = await self._call("get", "GET", "/openapi/v3", "the index of served APIs", timeout=timeout)
        return {
            path.removeprefix("apis/"): str(entry.get("serverRelativeURL")).partition("?hash=")[2]
            for path, entry in index["paths"].items()
            if path.startswith("apis/")
        }

    async def schemas(self, api: str, served_hash: str, *, timeout: float) -> Object:
        """Return the OpenAPI v3 document of one API version, a megabyte or so of it."""
        path = f"/openapi/v3/apis/{api}"
        return await self._call(
            "get", "GET", path, f"the schemas of {api}", timeout=timeout, query=[("hash", served_hash)]
        )

    async def _call(  # noqa: PLR0913 - one request has this many parts.
        self,
        verb: str,
        method: str,
        path: str,
        target: str,
        *,
        timeout: float,
        body: Mapping[str, Any] | None = None,
        query: list[tuple[str, str]] | None = None,
        content_type: str | None = None,
    ) -> Object:
        headers = {"Accept": JSON}
        if body is not None:
            headers["Content-Type"] = content_type or (MERGE_PATCH if method == "PATCH" else JSON)
        sent = self.clock.monotonic()
        try:
            async with asyncio.timeout(timeout):
                response = await self._send(
                    self._requests,
                    method,
                    path,
                    query=query,
                    headers=headers,
                    bounds=UNBOUNDED,
                    body=None if body is None else json.encode(body),
                )
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise from_exception(verb, target, error) from error
        self.clock.hear(response.headers.get("Date"), sent)
        if not response.ok:
            raise answered(verb, target, response.status, _text(content), response.headers.get("Retry-After"))
        answer = _json(content)
        if not isinstance(answer, dict):
            raise ApiError(verb, target, Effect.UNANSWERED, "the answer was cut off or is not a JSON object")
        return answer


def _collection(kind: Kind, namespace: str | None, name: str = "") -> tuple[str, str]:
    """Return the path of a kind's objects, and what an error calls them, or the one of a name."""
    resource = RESOURCES[kind]
    scope = namespace if resource.namespaced else None
    path = resource.path(quote(scope, safe="") if scope else None)
    return path, f"{kind} {'/'.join(part for part in (scope, name) if part)}".rstrip()


def from_exception(verb: str, target: str, error: Exception) -> ApiError:
    """Turn what aiohttp raises into an ApiError (docs/contract.md, API answers)."""
    match error:
        case aiohttp.ClientConnectorError() | ssl.SSLError() | aiohttp.ClientSSLError() | ConnectionRefusedError():
            outcome, message = Effect.NOTHING_HAPPENED, str(error)
        case TimeoutError():
            outcome, message = Effect.UNANSWERED, "no answer in time"
        case _:
            outcome, message = Effect.UNANSWERED, str(error) or type(error).__name__
    return ApiError(verb, target, outcome, message)


def _name_of(body: Mapping[str, Any] | None) -> str:
    return str(((body or {}).get("metadata") or {}).get("name") or "")


def _text(body: bytes) -> str:
    return body.decode(errors="replace")


def _json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Decode an answer; None when it is no JSON."""
    try:
        return decoded(body)
    except ValueError:
        return None


class NoClusterError(Exception):
    """There is nothing to connect to: no usable kubeconfig, and no service account."""


def in_cluster(kubeconfig: str | None) -> bool:
    """Tell whether the pod's service account is to be used: no kubeconfig was named, and this is a pod."""
    return not kubeconfig and "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ


@asynccontextmanager
async def connected(kubeconfig: str | None, context: str | None = None) -> AsyncIterator[Client]:
    """Connect with a kubeconfig file, or as the pod's service account when there is none.

    Args:
        kubeconfig: Path of the file; None for KUBECONFIG, the usual place, or the in-cluster account.
        context: The context of the kubeconfig; None for its current one.

    Raises:
        NoClusterError: No usable configuration was found.
    """
    configuration = client.Configuration()
    # The work queues bound what goes on at once. By a bound here the Lease, and the calls of one namespace, would wait
    # for connections on which calls of another are not answered; and what has waited counts as sent.
    configuration.connection_pool_maxsize = UNLIMITED
    # A resent create could be carried out twice unseen; every retry is the reconciler's.
    configuration.retries = False
    namespace = None
    try:
        if in_cluster(kubeconfig) and context is None:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            loaded = await config.load_kube_config(
                config_file=kubeconfig, context=context, client_configuration=configuration
            )
            namespace = (loaded.current_context or {}).get("context", {}).get("namespace")
    except (config.ConfigException, YAMLError, OSError, ValueError, TypeError, KeyError) as error:
        # A file that is no kubeconfig fails in as many ways as there are parts of it.
        raise NoClusterError(f"{kubeconfig or 'the kubeconfig'} can't be used: {error}") from error
    async with client.ApiClient(configuration) as api:
        api.user_agent = USER_AGENT
        async with aclosing(Client(api, namespace or DEFAULT_NAMESPACE)) as made:
            yield made
