"""Connections to one API server, and requests over them without what kubernetes_asyncio does besides.

The library copies each body and looks for a proxy and a netrc file in a thread at every request, which costs more than
all that is left of it. How it connects, as a kubeconfig or a service account says, stays its own.
"""

from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes_asyncio import client
from kubernetes_asyncio.client import rest

UNLIMITED = 0
"""Connections at once."""


class Connections:
    """Keeps connections open between requests; the first request makes the first one."""

    def __init__(self, configuration: client.Configuration, user_agent: str, most: int) -> None:
        """Prepare, for so many connections at once at most."""
        self._configuration = configuration
        self._user_agent = user_agent
        self._most = most
        self._session: aiohttp.ClientSession | None = None
        self._proxy = configuration.proxy or _proxy_of_environment(str(configuration.host))

    def session(self, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
        """Make a session of its own, which is the caller's to close."""
        # The library knows how to make its TLS context; the connector holds it.
        made = rest.RESTClientObject(self._configuration, maxsize=self._most).pool_manager
        connector = made.connector
        made.detach()
        return aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": self._user_agent}, middlewares=middlewares, proxy=self._proxy
        )

    async def request(  # noqa: PLR0913, PLR0917 - one request has this many parts.
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]] | None,
        headers: dict[str, str],
        body: bytes | None,
        bounds: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send a request, and return the answer when it begins."""
        if self._session is None:
            self._session = self.session()
        return await self._session.request(
            method,
            f"{self._configuration.host}{path}{'?' + urlencode(query) if query else ''}",
            headers=headers,
            data=body,
            timeout=bounds,
            proxy_headers=self._configuration.proxy_headers,
            server_hostname=self._configuration.tls_server_name,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


def _proxy_of_environment(server: str) -> str | None:
    """Return the proxy that HTTPS_PROXY and NO_PROXY, or their like, name for a server."""
    url = urlsplit(server)
    return None if not url.hostname or proxy_bypass(url.hostname) else getproxies().get(url.scheme)
