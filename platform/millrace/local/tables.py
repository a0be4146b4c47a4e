"""What a run looks like: rows become the live table, plain lines and the summary. No terminal, broker or clock here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from millrace.kafka.positions import Lag
from millrace.local.drivers import Failure
from millrace.local.statuses import Counts, JobStatus

STYLES = {"running": "green", "starting": "cyan", "waiting": "yellow", "stopped": "dim", "failed": "bold red"}
LIVE_COLUMNS = ("job", "state", "in", "out", "lag", "behind", "late", "malformed", "future", "batch")
PARTS = ("read", "malformed", "future", "on_time", "late", "dropped", "aside", "corrected")


@dataclass(frozen=True)
class Row:
    """One job at one moment. `lag` is None while it is not known."""

    name: str
    log: Path
    status: JobStatus = field(default_factory=JobStatus)
    lag: Lag | None = None
    failure: Failure | None = None
    ended: bool = False

    @property
    def state(self) -> str:
        if self.failure is not None:
            return "failed"
        return "stopped" if self.ended else self.status.state

    @property
    def trouble(self) -> str | None:
        """A sentence about what is wrong, or None."""
        if self.failure is not None:
            return f"{self.failure.cause}: {self.failure.message} Its log: {self.log}"
        if self.status.cause is not None and not self.ended:
            return f"{self.status.cause}: {self.status.message or ''}".rstrip(": ")
        return None


def live(rows: Sequence[Row], headline: str) -> RenderableType:
    """The table that is drawn over and over, with a line on top and what is wrong below."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in LIVE_COLUMNS:
        table.add_column(title, justify="left" if title in ("job", "state") else "right", no_wrap=title != "job")
    for row in rows:
        table.add_row(row.name, Text(row.state, STYLES.get(row.state, "")), *_figures(row))
    troubles = [Text(f"{row.name}: {row.trouble}", "yellow") for row in rows if row.trouble]
    return Group(Text(headline, "dim"), table, *troubles)


def line(row: Row) -> str:
    """One job as one line, for where there is no terminal to draw on."""
    figures = dict(zip(LIVE_COLUMNS[2:], _figures(row), strict=True))
    parts = [f"{title} {figure}" for title, figure in figures.items() if figure != "-"]
    return f"{row.name} {row.state}: {', '.join(parts) or 'nothing read yet'}"


def summary(rows: Sequence[Row]) -> RenderableType:
    """The ledger's totals per job and source, and what was written per sink."""
    counted = titled("What became of every event", ("job", "source"), [part.replace("_", " ") for part in PARTS])
    written = titled("What was written", ("job", "sink"), ["records"])
    for row in rows:
        for source, counts in _sources(row):
            counted.add_row(row.name, source, *(f"{getattr(counts, part):,}" for part in PARTS))
        for sink, records in row.status.written.items():
            written.add_row(row.name, sink, f"{records:,}")
    return Group(*(table for table in (counted, written) if table.row_count), *_remarks(rows))


def titled(title: str, names: Sequence[str], figures: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for figure in figures:
        table.add_column(figure, justify="right")
    return table


def seconds(value: float) -> str:
    """A length of time as short as it can be said: 0.4 s, 12 s, 3 min."""
    if value < 10:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


def _figures(row: Row) -> list[str]:
    status, counts = row.status, row.status.counts
    return [
        f"{counts.read:,}",
        f"{status.out:,}",
        "-" if row.lag is None else f"{row.lag.records:,}",
        "-" if row.lag is None else seconds(row.lag.seconds),
        f"{counts.late:,}",
        f"{counts.malformed:,}",
        f"{counts.future:,}",
        "-" if status.batch_seconds is None else seconds(status.batch_seconds),
    ]


def _sources(row: Row) -> Iterator[tuple[str, Counts]]:
    for name, source in row.status.sources.items():
        yield name, source.counts


def _remarks(rows: Sequence[Row]) -> Iterator[Text]:
    for row in rows:
        for source, counts in _sources(row):
            if not counts.adds_up:
                yield Text(f"{row.name}: the counts of source {source} do not add up; please report this.", "bold red")
            if counts.lost:
                yield Text(
                    f"{row.name}: {counts.lost:,} records of source {source} were deleted before they were read.", "red"
                )
        if row.trouble:
            yield Text(f"{row.name} {row.state}: {row.trouble}", "bold red")
