"""Reading from the API server without the start of a kubectl each time, for polling."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

TIMEOUT_SECONDS = 5


class Api:
    """Makes GET requests as the administrator."""

    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context

    def get(self, path: str, accept: str = "application/json") -> Any:  # noqa: ANN401  # It is any JSON value.
        """The JSON that is served at `path`.

        Raises:
            OSError: There is no answer, or one that is an error.
        """
        return json.loads(self.text(path, accept))

    def text(self, path: str, accept: str = "*/*") -> str:
        """The text that is served at `path`.

        Raises:
            OSError: There is no answer, or one that is an error.
        """
        request = urllib.request.Request(self._server + path, headers={"Accept": accept})  # noqa: S310  # It is https.
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=self._context) as answer:  # noqa: S310
            content: bytes = answer.read()
        return content.decode()


def describe(error: OSError) -> str:
    """What an error of a request says, with the body of an answer."""
    if isinstance(error, urllib.error.HTTPError):
        with error:
            return f"HTTP {error.code}: {error.read().decode(errors='replace')[-500:]}"
    return str(error)
