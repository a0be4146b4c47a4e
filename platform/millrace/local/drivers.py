"""One driver process per job: how it is called, what it says, and how it ended.

The driver is a program of its own (`python -m millrace_jobs`); this module knows its command line, its files and its
exit codes, and nothing of what happens inside.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millrace.local.processes import Child
from millrace.local.state import JobPaths
from millrace.local.statuses import JobStatus, parse_status, read_json
from millrace.resources import StreamJob

PROGRAM = "millrace_jobs"
GRACE_SECONDS = 60.0  # a driver stops at a batch boundary; a batch of a full backlog can take a while
TAIL_BYTES = 65_536


@dataclass(frozen=True)
class DriverSettings:
    """What all drivers of a run share."""

    bootstrap: str
    until_caught_up: bool = False
    python_path: tuple[Path, ...] = ()
    """Folders that `python` steps are looked for in, before anything else."""


@dataclass(frozen=True)
class Failure:
    """Why a driver ended with another exit code than 0."""

    exit_code: int
    cause: str
    message: str


class Driver:
    """The driver of one job."""

    def __init__(self, job: StreamJob, paths: JobPaths, settings: DriverSettings, metrics_port: int) -> None:
        self.job = job
        self.paths = paths
        self._settings = settings
        self._metrics_port = metrics_port
        self._child: Child | None = None

    @property
    def name(self) -> str:
        return f"{self.job.metadata.namespace}/{self.job.metadata.name}"

    def start(self) -> None:
        self.paths.clear()
        self.paths.spec.write_text(self.job.model_dump_json(by_alias=True, exclude_none=True, indent=2))
        with self.paths.log.open("wb") as log:
            self._child = Child(
                driver_command(self.paths, self._settings, self._metrics_port),
                grace_seconds=GRACE_SECONDS,
                stdout=log,
                stderr=log,
                env=driver_environment(os.environ, self._settings.python_path),
            )

    def terminate(self) -> None:
        """Ask it to stop at the next batch boundary; do not wait."""
        if self._child is not None:
            self._child.terminate()

    def kill(self) -> None:
        """End it now, wherever it is. The next run finds the batch unfinished and repeats it."""
        if self._child is not None:
            self._child.kill()

    def hold(self) -> None:
        """Stop it where it is, as if it hung. Stopping or killing it works all the same."""
        if self._child is not None:
            self._child.hold()

    def go_on(self) -> None:
        if self._child is not None:
            self._child.go_on()

    def stop(self) -> None:
        """Ask it to stop and wait until it and all that it started are gone."""
        if self._child is not None:
            self._child.stop()

    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.exit_code()

    def status(self) -> JobStatus:
        return parse_status(read_json(self.paths.status))

    def failure(self) -> Failure | None:
        """None while it runs and after it ended well."""
        code = self.exit_code()
        if not code:
            return None
        said = read_json(self.paths.termination) or last_words(self.paths.log)
        return Failure(
            code,
            cause=said.get("cause") or "DriverDied",
            message=said.get("message") or f"The driver ended with exit code {code} and left no explanation.",
        )


def driver_command(paths: JobPaths, settings: DriverSettings, metrics_port: int) -> list[str]:
    command = [sys.executable, "-P", "-m", PROGRAM]  # -P: what happens to lie in the current folder is none of its code
    for option, value in {
        "--spec": paths.spec,
        "--checkpoint": paths.checkpoint,
        "--bootstrap": settings.bootstrap,
        "--metrics-port": metrics_port,
        "--report": paths.report,
        "--status-file": paths.status,
        "--termination-log": paths.termination,
    }.items():
        command += [option, str(value)]
    return [*command, "--until-caught-up"] if settings.until_caught_up else command


def driver_environment(own: Mapping[str, str], python_path: tuple[Path, ...]) -> dict[str, str]:
    """Our own environment, with the spec's folders first in Python's path: a job's code lies beside its spec."""
    folders = [str(folder.resolve()) for folder in python_path]
    inherited = [own["PYTHONPATH"]] if own.get("PYTHONPATH") else []
    return {**own, "PYTHONPATH": os.pathsep.join([*folders, *inherited])}


def last_words(log: Path) -> Mapping[str, str]:
    """The last line of the log that is an object with a cause; empty when there is none."""
    try:
        tail = log.read_bytes()[-TAIL_BYTES:].decode(errors="replace")
    except FileNotFoundError:
        return {}
    for line in reversed(tail.splitlines()):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("cause"):
            return said
    return {}
