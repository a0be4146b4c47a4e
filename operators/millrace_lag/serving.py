"""The observer's HTTP: /metrics for Prometheus, /lag for programs, /healthz for Kubernetes. Reading only."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from millrace_lag.exposition import CONTENT_TYPE
from millrace_lag.observer import Observer
from millrace_lag.snapshots import as_json

JSON = "application/json"


class Server:
    """Context manager: it serves inside. Port 0 chooses a free one."""

    def __init__(self, observer: Observer, port: int, host: str = "") -> None:
        self._http = ThreadingHTTPServer((host, port), _handler(observer))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(observer: Observer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a client that says nothing must not hold a thread for ever

        def do_GET(self) -> None:  # the name is the standard library's
            status, kind, body = _answer(observer, self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A line for each scrape helps nobody."""

    return Handler


def _answer(observer: Observer, path: str) -> tuple[int, str, bytes]:
    if path == "/metrics":
        return 200, CONTENT_TYPE, observer.metrics()
    if path == "/lag":
        return 200, JSON, json.dumps(as_json(observer.views())).encode()
    if path == "/healthz":
        # A broker that is down is for an alert, not for a restart of the observer: it would only forget what it knows.
        return 200, JSON, json.dumps({"troubles": observer.troubles()}).encode()
    return 404, JSON, b'{"message": "There is /metrics, /lag and /healthz."}'
