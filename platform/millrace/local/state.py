"""The folder that a local run keeps its state in: who may use it, and where everything in it lies.

One run at a time, and one Kafka cluster for as long as the folder lives: a checkpoint holds offsets, which mean nothing
on another cluster. Nothing here looks into a checkpoint.
"""

import fcntl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from millrace.errors import UserError
from millrace.naming import job_key


@dataclass(frozen=True)
class JobPaths:
    """Where the files of one job lie. The checkpoint is the driver's own; the rest is ours."""

    checkpoint: Path
    spec: Path
    log: Path
    status: Path
    report: Path
    termination: Path

    def clear(self) -> None:
        """Forget what an earlier run said, so that nobody takes it for this one's word."""
        self.spec.parent.mkdir(parents=True, exist_ok=True)
        for path in (self.status, self.report, self.termination):
            path.unlink(missing_ok=True)


class StateFolder:
    """Context manager: the folder is ours alone inside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._lock = (self.root / "lock").open("wb")
        except OSError as error:
            raise UserError(
                f"The folder {self.root} cannot be used for state ({error.strerror}): choose another one with --state."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise UserError(
                f"Another run is using the folder {self.root}: stop it, or choose another folder with --state."
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.close()

    @property
    def broker(self) -> Path:
        return self.root / "broker"

    def job(self, namespace: str, name: str) -> JobPaths:
        identity = job_key(namespace, name)
        run = self.root / "runs" / identity
        return JobPaths(
            checkpoint=self.root / "jobs" / identity,
            spec=run / "spec.yaml",
            log=run / "driver.log",
            status=run / "status.json",
            report=run / "report.json",
            termination=run / "termination.json",
        )

    def belongs_to(self, cluster: str) -> None:
        """Tie the folder to a Kafka cluster, or refuse it when it belongs to another one."""
        note = self.root / "cluster"
        known = note.read_text().strip() if note.exists() else cluster
        if known != cluster:
            raise UserError(
                f"The state in {self.root} belongs to another Kafka cluster ({known}, this one is {cluster}): "
                "go back to that cluster, or choose another folder with --state."
            )
        note.write_text(cluster + "\n")
