"""A real Prometheus of our own, for tests, previews and the demo: it scrapes what it is told to and holds the rules.

It listens on loopback only, keeps its data in the folder it is given, and never outlives the process that started it.
"""

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import yaml

from millrace.errors import UserError
from millrace.local.processes import Child

HOST = "127.0.0.1"
PROGRAM = "prometheus"
READY_SECONDS = 60.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 30.0


@dataclass(frozen=True)
class Sample:
    """One element of an answer: its labels and its value now."""

    labels: Mapping[str, str]
    value: float


class PrometheusError(Exception):
    """Prometheus refused a question; the text is its own."""


class Prometheus:
    """Context manager: a Prometheus that answers inside, and is gone after. Targets can be told at any time."""

    def __init__(
        self, folder: Path, rules: Sequence[Path] = (), scrape_seconds: int = 1, alertmanager: str | None = None
    ) -> None:
        self._folder = folder
        self._config = configuration(folder / "targets.json", rules, scrape_seconds, alertmanager)
        self._port: int | None = None
        self._child: Child | None = None

    @property
    def address(self) -> str:
        """As HOST:PORT."""
        if self._port is None:
            raise RuntimeError("Prometheus is not running")
        return f"{HOST}:{self._port}"

    @property
    def log_file(self) -> Path:
        return self._folder / "prometheus.log"

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
        self.scrape(())
        (self._folder / "prometheus.yaml").write_text(self._config)
        self._port = free_port()
        with self.log_file.open("wb") as log:
            self._child = Child(
                [
                    program,
                    f"--config.file={self._folder}/prometheus.yaml",
                    f"--storage.tsdb.path={self._folder}/data",
                    f"--web.listen-address={self.address}",
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

    def scrape(self, targets: Iterable[str]) -> None:
        """From now on scrape these, each as HOST:PORT. Replaced as a whole, so that it never reads half a file."""
        path = self._folder / "targets.json"
        path.with_suffix(".new").write_text(json.dumps([{"targets": sorted(targets)}]))
        path.with_suffix(".new").replace(path)

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """The value of an expression, now or at another time; raises PrometheusError with the reason it is refused."""
        data = self._ask("query", {"query": expression} | ({} if at is None else {"time": str(at)}))
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(one["metric"], float(one["value"][1])) for one in data["result"]]

    def firing(self) -> list[Mapping[str, str]]:
        """The labels of every alert that fires now."""
        return [one["labels"] for one in self._ask("alerts", {})["alerts"] if one["state"] == "firing"]

    def rule_faults(self) -> dict[str, str]:
        """Every rule's name with why its last evaluation failed; empty when it did not."""
        rules = [rule for group in self._ask("rules", {})["groups"] for rule in group["rules"]]
        return {rule["name"]: rule.get("lastError", "") for rule in rules}

    def healthy_targets(self) -> set[str]:
        """The addresses whose last scrape succeeded."""
        active = self._ask("targets", {"state": "active"})["activeTargets"]
        return {one["discoveredLabels"]["__address__"] for one in active if one["health"] == "up"}

    def _ask(self, what: str, parameters: Mapping[str, str]) -> Any:
        status, body = get(self.address, f"/api/v1/{what}?{urlencode(parameters)}")
        answer = json.loads(body)
        if status != http.client.OK:
            raise PrometheusError(answer.get("error", body.decode(errors="replace")))
        return answer["data"]


def configuration(targets: Path, rules: Sequence[Path], scrape_seconds: int, alertmanager: str | None) -> str:
    """What Prometheus reads. `honor_labels`, because `job` and `namespace` are the stream job's own."""
    every = f"{scrape_seconds}s"
    config: dict[str, Any] = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [
            {
                "job_name": "millrace",
                "honor_labels": True,
                "file_sd_configs": [{"files": [str(targets.resolve())], "refresh_interval": every}],
            }
        ],
    }
    if alertmanager is not None:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    return yaml.safe_dump(config, sort_keys=False)


def find_program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise UserError(f"'{name}' is missing: run 'platform/tools/ensure prometheus prometheus-alertmanager'.")
    return found


def wait_until_ready(child: Child, address: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if child.exit_code() is not None:
            raise UserError(f"It ended while starting; the reason is in {log}.")
        with contextlib.suppress(OSError):
            if get(address, "/-/ready")[0] == http.client.OK:
                return
        time.sleep(0.05)
    raise UserError(f"It did not answer within {READY_SECONDS:.0f} s; its log is {log}.")


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=ANSWER_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def free_port() -> int:
    with socket.create_server((HOST, 0)) as opened:
        port: int = opened.getsockname()[1]
        return port
