"""What `millrace lag` prints. Pure: figures in, a table out."""

import math
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from rich.table import Table

from millrace.units import format_duration
from millrace_lag.tracks import JobLag

STYLES = {"ok": "green", "catching-up": "yellow", "stopped": "dim", "unknown": "dim"}


def jobs_table(jobs: Iterable[Mapping[str, Any]], now: float | None = None) -> Table:
    """One row for each job, from the observer's JSON."""
    table = _table("job", "unread", "behind", "margin", "lost", "last progress", "verdict", "")
    for one in jobs:
        ago = None if not one["lastProgress"] else (time.time() if now is None else now) - one["lastProgress"]
        verdict = one["verdict"]
        table.add_row(
            f"{one['namespace']}/{one['job']}",
            f"{one['lagRecords']:,}",
            span(one["lagSeconds"]),
            span(one["retentionMarginSeconds"]),
            f"{one['recordsLost']:,}",
            "" if ago is None else f"{span(ago)} ago",
            f"[{STYLES.get(verdict, 'bold red')}]{verdict}[/]",
            ("stale: " if one["stale"] else "") + one["message"],
        )
    return table


def partitions_table(job: JobLag) -> Table:
    """One row for each partition of a job."""
    table = _table("topic", "partition", "position", "start", "end", "unread", "behind", "margin", "lost")
    for (topic, number), one in sorted(job.partitions.items()):
        spot = one.place
        offsets = map(str, (number, spot.position, spot.log.start, spot.log.end))
        table.add_row(
            topic, *offsets, f"{spot.records:,}", span(one.seconds), span(one.margin_seconds), f"{one.lost:,}"
        )
    return table


def span(seconds: float | None) -> str:
    """A time as people read it: no more than its two largest units."""
    if seconds is None or math.isinf(seconds):
        return "no end"
    if seconds < 10:
        return f"{seconds:.1f}s"
    unit = next(size for size in (86400, 3600, 60, 1) if seconds >= size)
    finer = {86400: 3600, 3600: 60}.get(unit, 1)
    return format_duration(timedelta(seconds=int(seconds // finer * finer)))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        left = name in ("job", "topic", "verdict", "")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    return table
