"""How a log line looks: text for people, or JSON with the same keys in every line; always one line, and printable."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from dispatch_operator.api.quoting import escaped
from dispatch_operator.kube.log_subject import SUBJECT

ABOUT = ("namespace", "name", "job", "submission")
"""Whom a line is about, as its `extra` or what is being reconciled says; empty where it is about nobody."""


class TextFormatter(logging.Formatter):
    """One line: what others have written into it can't begin another one, or change a terminal."""

    def __init__(self) -> None:
        super().__init__("[%(asctime)s] %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name.
        """Return the line before a traceback."""
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: ANN401, N802 - logging's own.
        """Return a traceback, set in: an error's text can't look like a line of ours either."""
        return "\n".join(f"    {escaped(line)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for what collects logs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON."""
        about = getattr(record, "about", None) or SUBJECT.get()._asdict()
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{key: str(about.get(key, "")) for key in ABOUT},
            "exception": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return json.dumps(line)


class NobodyIsNeeded(logging.Filter):
    """Makes a warning of kopf's errors about requests, which it repeats by itself, and logs in any of its names."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let all pass."""
        repeated = record.name.startswith("kopf.") and record.getMessage().startswith("Request attempt")
        if repeated and record.levelno == logging.ERROR:
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True


def configure(*, as_json: bool, verbose: bool) -> None:
    """Log to standard error.

    Args:
        as_json: Whether a line is JSON.
        verbose: Whether each request that fails is logged too.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    handler.addFilter(NobodyIsNeeded())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    # A line for each task that ends says nothing that the operator's own lines do not.
    logging.getLogger("kopf").setLevel(logging.DEBUG if verbose else logging.WARNING)
    # They tell of each request, or of each connection.
    for name in ("asyncio", "aiohttp", "kubernetes_asyncio", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
