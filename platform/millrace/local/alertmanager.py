"""A real Alertmanager of our own, for tests and the demo: Prometheus sends it alerts, and whoever asks gets them.

It listens on loopback only, forms no cluster, sends nothing on, keeps its data in the folder it is given, and never
outlives the process that started it.
"""

import http.client
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from millrace.local.processes import Child
from millrace.local.prometheus import HOST, STOP_SECONDS, find_program, free_port, get, wait_until_ready

PROGRAM = "prometheus-alertmanager"  # its name in Debian, as its package
# Alerts are asked for, not sent: the one receiver does nothing.
CONFIG = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


@dataclass(frozen=True)
class FiringAlert:
    """One alert that fires now."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    since: datetime


class AlertmanagerError(Exception):
    """Alertmanager refused a question; the text is its own."""


class Alertmanager:
    """Context manager: an Alertmanager that answers inside, and is gone after."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port: int | None = None
        self._child: Child | None = None

    @property
    def address(self) -> str:
        """As HOST:PORT."""
        if self._port is None:
            raise RuntimeError("Alertmanager is not running")
        return f"{HOST}:{self._port}"

    @property
    def log_file(self) -> Path:
        return self._folder / "alertmanager.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and return when it answers."""
        program = find_program(PROGRAM)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "alertmanager.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False))
        self._port = free_port()
        with self.log_file.open("wb") as log:
            self._child = Child(
                [
                    program,
                    f"--config.file={self._folder}/alertmanager.yaml",
                    f"--storage.path={self._folder}/data",
                    f"--web.listen-address={self.address}",
                    "--cluster.listen-address=",  # empty: no second port, and nobody to talk to
                    "--log.level=warn",
                ],
                grace_seconds=STOP_SECONDS,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until_ready(self._child, self.address, self.log_file)
        except BaseException:  # also Ctrl-C: nobody may be left with its process
            self.stop()
            raise

    def stop(self) -> None:
        child, self._child, self._port = self._child, None, None
        if child is not None:
            child.stop()

    def firing(self) -> list[FiringAlert]:
        """Every alert that fires now; what is resolved is not among them."""
        status, body = get(self.address, "/api/v2/alerts")
        if status != http.client.OK:
            raise AlertmanagerError(body.decode(errors="replace"))
        return [parse_alert(one) for one in json.loads(body)]


def parse_alert(said: Mapping[str, Any]) -> FiringAlert:
    return FiringAlert(said["labels"], said["annotations"], datetime.fromisoformat(said["startsAt"]))
