"""The driver's HTTP port: metrics, health and status. Reads the status and nothing else."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

Health = Callable[[], tuple[bool, str]]


@dataclass(frozen=True)
class Pages:
    """What the port shows."""

    registry: CollectorRegistry
    health: Health
    status: Callable[[], dict[str, Any]]


def serve(pages: Pages, port: int, host: str = "0.0.0.0") -> ThreadingHTTPServer:  # noqa: S104 - scraped from outside
    """Serve in the background; `server_port` of the answer is the port that was taken."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = {"/metrics": self._metrics, "/healthz": self._health, "/status": self._status}.get(self.path)
            if page is None:
                return self._answer(404, "text/plain", b"there are /metrics, /healthz and /status\n")
            return page()

        def _metrics(self) -> None:
            self._answer(200, CONTENT_TYPE_LATEST, generate_latest(pages.registry))

        def _health(self) -> None:
            healthy, cause = pages.health()
            self._answer(200 if healthy else 503, "text/plain; charset=utf-8", f"{cause}\n".encode())

        def _status(self) -> None:
            self._answer(200, "application/json", json.dumps(pages.status()).encode())

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A scrape every few seconds is not worth a line."""

    server = ThreadingHTTPServer((host, port), Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
