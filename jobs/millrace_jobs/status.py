"""What a job says of itself: one snapshot, from which the status file, the report and the metrics are all made."""

import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from millrace import metrics
from millrace.metrics import Histogram
from millrace_jobs.accounts import Counts
from millrace_jobs.failures import Failure
from millrace_jobs.files import Folder
from millrace_jobs.ledger import Entry
from millrace_jobs.plans import JobPlan
from millrace_jobs.times import iso

State = Literal["starting", "running", "waiting", "stopped", "failed"]


@dataclass(frozen=True)
class Snapshot:
    """Everything that is told about a job, at one moment."""

    state: State = "starting"
    failure: Failure | None = None
    entry: Entry | None = None
    batches: int = 0
    durations: Histogram = field(default_factory=lambda: Histogram.empty(metrics.JOB_BATCH_DURATION))
    phases: dict[str, float] = field(default_factory=dict)
    finished_at: float = 0.0
    sink_failures: dict[str, int] = field(default_factory=dict)
    sinks_down: frozenset[str] = frozenset()
    checkpoint_failures: int = 0
    metrics_port: int = 0


class Status:
    """Keeps the snapshot; safe to read from any thread."""

    def __init__(self, plan: JobPlan, file: str | None = None) -> None:
        self._plan, self._file = plan, file
        self._lock = threading.Lock()
        self._now = Snapshot()

    @property
    def now(self) -> Snapshot:
        with self._lock:
            return self._now

    def update(self, **changes: Any) -> None:
        with self._lock:
            self._now = replace(self._now, **changes)
        self._write()

    def batch_done(self, entry: Entry) -> None:
        """A batch is in the ledger."""
        now, seconds = self.now, sum(entry.seconds.values())
        phases = {name: now.phases.get(name, 0.0) + entry.seconds.get(name, 0.0) for name in metrics.BATCH_PHASES}
        self.update(
            state="running",
            failure=None,
            entry=entry,
            batches=now.batches + 1,
            durations=now.durations.observe(metrics.JOB_BATCH_DURATION, seconds),
            phases=phases,
            finished_at=time.time(),
            sinks_down=frozenset(),
        )

    def failed(self, failure: Failure, final: bool) -> None:
        """A batch could not be done; the job waits and tries again, or gives up."""
        now = self.now
        down = {sink.name for sink in self._plan.spec.sinks if _names(failure, sink.name)}
        side = {role for role in self._plan.roles if failure.cause == "SinkUnavailable" and not down}
        failures = {name: now.sink_failures.get(name, 0) + (name in down) for name in self._sink_names()}
        self.update(
            state="failed" if final else "waiting",
            failure=failure,
            sinks_down=frozenset(down | side),
            sink_failures=failures,
            checkpoint_failures=now.checkpoint_failures + (failure.cause == "CheckpointFailing"),
        )

    def as_json(self) -> dict[str, Any]:
        now = self.now
        entry = now.entry
        sources = entry.sources() if entry else {}
        return {
            "namespace": self._plan.namespace,
            "job": self._plan.name,
            "state": now.state,
            "cause": now.failure.cause if now.failure else None,
            "message": now.failure.message if now.failure else None,
            "batch": entry.batch if entry else None,
            "batch_seconds": sum(entry.seconds.values()) if entry else None,
            "batch_phases": entry.seconds if entry else {},
            "watermark": iso(entry.watermark) if entry and entry.watermark is not None else None,
            "metrics_port": now.metrics_port,
            "sources": {
                source.name: {"topic": source.topic, **_counts(sources.get(source.name, Counts()))}
                for source in self._plan.sources
            },
            "sinks": {
                name: {"written": entry.totals.written.get(name, 0) if entry else 0, "up": name not in now.sinks_down}
                for name in self._sink_names()
            },
            "side": {role: entry.totals.side.get(role, 0) if entry else 0 for role in ("malformed", "aside")},
        }

    def _sink_names(self) -> list[str]:
        return [sink.name for sink in self._plan.spec.sinks]

    def _write(self) -> None:
        if self._file is not None:
            folder, _, name = self._file.rpartition("/")
            Folder(folder or ".").write(name, json.dumps(self.as_json()).encode())


def _counts(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in counts.__struct_fields__}


def _names(failure: Failure, sink: str) -> bool:
    return failure.cause == "SinkUnavailable" and f" {sink}:" in f" {failure.message}"
