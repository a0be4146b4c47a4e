"""What a driver says about its job: the status file, read once and frozen.

A field that is missing counts as zero, so that an older driver can still be shown. Nothing here computes a figure of
its own: all counts are the ledger's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Counts:
    """What became of the records of one source, or of all sources of a job together."""

    read: int = 0
    malformed: int = 0
    future: int = 0
    on_time: int = 0
    late: int = 0
    dropped: int = 0
    aside: int = 0
    corrected: int = 0
    lost: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Counts)))

    @property
    def adds_up(self) -> bool:
        """The ledger's equation: each record has one verdict, each straggler one outcome."""
        return (
            self.read == self.malformed + self.future + self.on_time + self.late
            and self.late == self.dropped + self.aside + self.corrected
        )


@dataclass(frozen=True)
class Source:
    topic: str
    counts: Counts


@dataclass(frozen=True)
class JobStatus:
    """One look at a job."""

    state: str = "starting"
    cause: str | None = None
    message: str | None = None
    batch: int | None = None
    batch_seconds: float | None = None
    metrics_port: int | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    sinks_down: tuple[str, ...] = ()

    @property
    def counts(self) -> Counts:
        return sum((source.counts for source in self.sources.values()), Counts())

    @property
    def out(self) -> int:
        return sum(self.written.values())


def parse_status(said: Mapping[str, Any]) -> JobStatus:
    sinks = said.get("sinks") or {}
    return JobStatus(
        state=said.get("state") or "starting",
        cause=said.get("cause"),
        message=said.get("message"),
        batch=said.get("batch"),
        batch_seconds=said.get("batch_seconds"),
        metrics_port=said.get("metrics_port"),
        sources={name: _source(one) for name, one in (said.get("sources") or {}).items()},
        written={name: sink.get("written") or 0 for name, sink in sinks.items()},
        sinks_down=tuple(name for name, sink in sinks.items() if not sink.get("up", True)),
    )


def read_json(path: Path) -> Mapping[str, Any]:
    """The object in the file; empty while there is none. Drivers replace the file as a whole, so it is never half."""
    try:
        said = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return NOTHING
    return said if isinstance(said, dict) else NOTHING


def _source(said: Mapping[str, Any]) -> Source:
    return Source(said.get("topic") or "", Counts(**{one.name: said.get(one.name) or 0 for one in fields(Counts)}))
