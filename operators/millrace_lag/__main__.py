"""`python -m millrace_lag`: the observer as a process. Ends with 0 on SIGTERM or Ctrl-C, with 2 on a mistake."""

import argparse
import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from millrace.commands.options import address, duration, port
from millrace.errors import UserError
from millrace_lag.logins import Logins, from_folders
from millrace_lag.observer import Observer, Settings
from millrace_lag.serving import Server
from millrace_lag.subjects import Subject, read_path

KUBERNETES = "kubernetes"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({"time": self.formatTime(record), "level": record.levelname, "message": record.getMessage()})


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m millrace_lag", description="Tells how far behind every job is.")
    parser.add_argument("--bootstrap", type=address, required=True, help="Kafka cluster of jobs that name none")
    parser.add_argument(
        "--only-bootstrap", action="store_true", help="ask that cluster for every job, as in local mode"
    )
    parser.add_argument("--jobs", required=True, help="a spec file, a folder of them, or the word kubernetes")
    parser.add_argument(
        "--namespace", action="append", default=[], help="in Kubernetes: only this one; may be repeated (default: all)"
    )
    parser.add_argument("--port", type=port, default=9090, help="serve /metrics, /lag and /healthz here; 0 chooses one")
    parser.add_argument("--host", default="", help="serve on this address only (default: all)")
    parser.add_argument("--interval", type=duration, help="time between two polls (default: 5s)")
    parser.add_argument("--exporter-names", action="store_true", help="also use the names of Kafka's own exporters")
    return parser.parse_args(words)


def sources(chosen: argparse.Namespace) -> tuple[Callable[[], tuple[Subject, ...]], Logins]:
    """Where jobs come from, and the credentials of their brokers."""
    if chosen.jobs == KUBERNETES:
        from millrace_lag.clusters import kubernetes_lister, kubernetes_logins  # their client is only there with it

        return kubernetes_lister(chosen.bootstrap, chosen.namespace), kubernetes_logins()
    path, cluster, only = Path(chosen.jobs), chosen.bootstrap, chosen.only_bootstrap
    read_path(path, cluster, only)  # a mistake in a file ends us now, and not silently later
    return lambda: read_path(path, cluster, only), from_folders


def main(words: Sequence[str] | None = None) -> int:
    chosen = arguments(words)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    stop = threading.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: stop.set())
    interval = chosen.interval.total_seconds() if chosen.interval else Settings.interval_seconds
    settings = Settings(interval_seconds=interval, exporter_names=chosen.exporter_names)
    try:
        jobs, logins = sources(chosen)
        with Observer(jobs, settings, logins) as observer, Server(observer, chosen.port, chosen.host) as server:
            logging.getLogger("millrace_lag").info("serving on port %d", server.port)
            stop.wait()
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
