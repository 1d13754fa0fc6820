"""A real HTTP server of a few objects, for a command that reads them, and the kubeconfig that leads to it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Served:
    """An API server of a few objects, and the kubeconfig that leads to it."""

    def __init__(self, folder: Path) -> None:
        self.objects: dict[str, Any] = {}
        self.asked: list[str] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                served.asked.append(path)
                found = served.objects.get(path)
                missing = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}
                body = json.dumps(found or missing).encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.kubeconfig = folder / "kubeconfig"
        self.lead_to(self.server.server_address[1])

    def lead_to(self, port: int) -> None:
        """Write a kubeconfig that leads to a port of this machine."""
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        users = [{"name": "u", "user": {}}]
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": users}
        self.kubeconfig.write_text(json.dumps({**config, "clusters": [cluster], "contexts": [context]}))

    @contextmanager
    def running(self) -> Iterator["Served"]:
        """Serve while the block runs."""
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()
