"""Connections to one API server, and requests over them without what kubernetes_asyncio does besides.

The library copies each body and looks for a proxy and a netrc file in a thread at every request, which costs more than
all that is left of it. How it connects, as a kubeconfig or a service account says, stays its own.
"""

import ssl
from pathlib import Path
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
        self._files: tuple[float, ...] = ()
        """When the files of the certificates were written that the session rests on."""
        self._retired: list[aiohttp.ClientSession] = []
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
            self._files, self._session = _written_at(self._configuration), self.session()
        try:
            return await self._session.request(
                method,
                f"{self._configuration.host}{path}{'?' + urlencode(query) if query else ''}",
                headers=headers,
                data=body,
                timeout=bounds,
                proxy_headers=self._configuration.proxy_headers,
                server_hostname=self._configuration.tls_server_name,
            )
        except (ssl.SSLError, aiohttp.ClientSSLError):
            self._retire()
            raise

    def _retire(self) -> None:
        """Have the next request make new connections, when the files of the certificates were rotated."""
        if self._session is not None and self._files != _written_at(self._configuration):
            # What goes on over the old ones ends by itself.
            self._retired.append(self._session)
            self._session = None

    async def aclose(self) -> None:
        """Close all connections."""
        for session in (*self._retired, self._session):
            if session is not None:
                await session.close()


def _written_at(configuration: client.Configuration) -> tuple[float, ...]:
    """Return when the files of a configuration's certificates were written; 0 for one that is not there."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return tuple(path.stat().st_mtime if (path := Path(file)).exists() else 0.0 for file in files if file)


def _proxy_of_environment(server: str) -> str | None:
    """Return the proxy that HTTPS_PROXY and NO_PROXY, or their like, name for a server."""
    url = urlsplit(server)
    return None if not url.hostname or proxy_bypass(url.hostname) else getproxies().get(url.scheme)
