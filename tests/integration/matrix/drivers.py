"""The job's driver as a process of its own, which may be told to die at a certain line of a certain batch."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millrace.local.processes import Child

CRASH_VARIABLE = "MILLRACE_CRASH_AT"
# Every line of a batch at which dying could lose or double something, in the order in which a batch comes to them.
CRASH_POINTS = (
    "judged",
    "side",
    "sink-begin",
    "sink-before-commit",
    "sink-after-commit",
    "before-ledger",
    "after-ledger",
    "after-position",
)
RUN_SECONDS = 180.0
KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True)
class Driver:
    """A way to run one job again and again in one folder, with its checkpoint, report and logs in there."""

    resource: dict[str, Any]
    bootstrap: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def log(self) -> Path:
        return self.folder / "driver.log"

    def start(self, crash_at: str | None = None, *, until_caught_up: bool = True) -> Child:
        """Start it behind the guard, so that it never outlives the tests."""
        spec = self.folder / "job.yaml"
        spec.write_text(json.dumps(self.resource))  # JSON is YAML too
        files = ["--spec", spec, "--checkpoint", self.checkpoint, "--report", self.folder / "report.json"]
        files += ["--status-file", self.folder / "status.json"]
        command = [sys.executable, "-m", "millrace_jobs", *map(str, files), "--bootstrap", self.bootstrap]
        command += ["--metrics-port", "0", "--master", "local[2]", *(["--until-caught-up"] if until_caught_up else [])]
        command += self.arguments
        environment = {**os.environ, **self.environment, **({CRASH_VARIABLE: crash_at} if crash_at else {})}
        with self.log.open("ab") as log:
            return Child(command, grace_seconds=30, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def run(self, crash_at: str | None = None) -> int:
        """Run it to its end and return its exit code."""
        child = self.start(crash_at)
        try:
            return child.wait(RUN_SECONDS)
        finally:
            child.stop()

    def run_to_the_end(self) -> dict[str, Any]:
        """Run it until it has caught up, and return its report."""
        code = self.run()
        assert code == 0, f"the driver ended with {code}: {self.last_words()}"
        return self.report()

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return report

    def status(self) -> dict[str, Any]:
        """The last status that it wrote, or nothing before the first."""
        try:
            status: dict[str, Any] = json.loads((self.folder / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return status

    def last_words(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
