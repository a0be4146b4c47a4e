"""The first half of a batch, run in Spark's tasks: read, decode, judge, count, and put events down as files.

A task sees one or more Kafka partitions, each in offset order. It writes what counts and what goes to a side topic, and
reports accounts and file names; only what is reported to the driver exists. The same records give the same report.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace_jobs.accounts import LATENESS_SECONDS, Account, Counts, Intake, StateFile, add_lists
from millrace_jobs.files import Folder, TableWriter
from millrace_jobs.judging import NEVER, Bools, Judged, JudgeRule, Times, highs_before, judge
from millrace_jobs.records import Decoder
from millrace_jobs.times import iso

REPORT = pa.schema([("report", pa.string())])
SIDE = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", pa.map_(pa.string(), pa.string()))])
TIME, FIRST, LATE = "_time", "_first", "_late"
Role = Literal["malformed", "aside"]
_BOUNDS = (np.array(LATENESS_SECONDS) * 1_000_000).astype(np.int64)


@dataclass(frozen=True)
class SourceRule:
    """How one source is read and judged. `kept` are the columns that later steps need."""

    name: str
    topic: str
    schema: pa.Schema
    kept: tuple[str, ...]
    time: str | None
    sent: str | None
    received: str | None
    max_future_skew: int | None
    judge: JudgeRule

    @property
    def stored(self) -> pa.Schema:
        """The schema of this source's files."""
        window = self.judge.window
        extra = [TIME, *([FIRST] if window and window.is_aligned else []), *([LATE] if self.corrects else [])]
        return pa.schema([*(self.schema.field(name) for name in self.kept), *((name, pa.int64()) for name in extra)])

    @property
    def corrects(self) -> bool:
        return self.judge.window is not None and self.judge.policy == "correct"


@dataclass(frozen=True)
class IntakeRule:
    """One batch's task: where to write, and where each partition stands."""

    folder: Folder
    batch: int
    sources: tuple[SourceRule, ...]
    roles: frozenset[Role]  # the side topics that are declared
    highs: Mapping[tuple[str, int], int]
    floor: int  # the watermark before this batch: nothing may be let into a window that it closed


def reader(rule: IntakeRule) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for Spark's mapInArrow."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(rule)
        for batch in batches:
            for run in _runs(batch):
                task.take(run)
        report = msgspec.json.encode(task.finish()).decode()
        yield pa.RecordBatch.from_pylist([{"report": report}], schema=REPORT)

    return read


def _runs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Pieces of a batch that come from one partition each."""
    partitions = batch.column("partition").to_numpy()
    topics = batch.column("topic").dictionary_encode().indices.to_numpy()
    borders = np.flatnonzero((np.diff(partitions) != 0) | (np.diff(topics) != 0)) + 1
    edges = [0, *borders.tolist(), batch.num_rows]
    for start, end in pairwise(edges):
        if end > start:
            yield batch.slice(start, end - start)


@dataclass
class _Tally:
    """A partition's account while it grows."""

    high: int
    counts: Counts = field(default_factory=Counts)
    first_offset: int | None = None
    last_offset: int = -1
    oldest: int | None = None
    reasons: dict[str, int] = field(default_factory=dict)
    lateness: list[int] = field(default_factory=lambda: [0] * (len(LATENESS_SECONDS) + 1))
    lateness_sum: float = 0.0

    def account(self, topic: str, partition: int) -> Account:
        return Account(
            topic,
            partition,
            self.counts,
            None if self.high == NEVER else self.high,
            self.first_offset or 0,
            self.last_offset,
            self.oldest,
            self.reasons,
            self.lateness,
            self.lateness_sum,
        )


class _Task:
    """What one Spark task holds: decoders, files that are being written, and one tally per partition."""

    def __init__(self, rule: IntakeRule) -> None:
        self._rule = rule
        self._sources = {source.topic: source for source in rule.sources}
        self._decoders: dict[str, Decoder] = {}
        self._events: dict[str, TableWriter] = {}
        self._spans: dict[str, tuple[int, int]] = {}
        self._sides: dict[Role, TableWriter] = {}
        self._tallies: dict[tuple[str, int], _Tally] = {}

    def take(self, run: pa.RecordBatch) -> None:
        """Read, judge, count and put down records of one partition, in offset order."""
        topic, partition = run.column("topic")[0].as_py(), run.column("partition")[0].as_py()
        source = self._sources[topic]
        tally = self._tallies.setdefault((topic, partition), _Tally(self._rule.highs.get((topic, partition), NEVER)))
        _note_offsets(tally, run)
        decoder = self._decoders.setdefault(topic, Decoder(source.schema))
        decoded = decoder.decode(run.column("value"))
        table = pa.RecordBatch.from_arrays(decoded.columns, schema=source.schema)
        times, timeless = _event_times(source, table)
        future = ~decoded.broken & ~timeless & _is_future(source, table, run, times)
        valid = ~(decoded.broken | timeless | future)
        self._refuse(run, tally, decoded.broken, timeless & ~decoded.broken, future)
        self._judge(source, tally, run.filter(valid), table.filter(valid), times[valid])

    def finish(self) -> Intake:
        """Close the files and report."""
        for writer in (*self._events.values(), *self._sides.values()):
            writer.close()
        files = [
            StateFile(source, writer.name, writer.rows, *self._spans[source], writer.bytes)
            for source, writer in self._events.items()
            if writer.rows
        ]
        side = {str(role): [writer.name] for role, writer in self._sides.items() if writer.rows}
        return Intake([tally.account(*of) for of, tally in self._tallies.items()], files, side)

    def _refuse(self, run: pa.RecordBatch, tally: _Tally, broken: Bools, timeless: Bools, future: Bools) -> None:
        for reason, mask in (("unparsable", broken), ("no-event-time", timeless), ("future", future)):
            number = int(mask.sum())
            if not number:
                continue
            tally.counts += (
                Counts(read=number, future=number) if reason == "future" else Counts(read=number, malformed=number)
            )
            tally.reasons[reason] = tally.reasons.get(reason, 0) + number
            if "malformed" in self._rule.roles:
                self._set_aside("malformed", run.filter(mask), [("reason", [reason] * number)])

    def _judge(
        self, source: SourceRule, tally: _Tally, run: pa.RecordBatch, table: pa.RecordBatch, times: Times
    ) -> None:
        if not len(times):
            return
        own = highs_before(times, tally.high) - source.judge.delay
        frontiers = np.maximum(own, self._rule.floor)
        judged = judge(source.judge, times, frontiers)
        idle = judged.late & ~judge(source.judge, times, own).late
        tally.counts += _count(source.judge, judged, idle)
        tally.high = max(tally.high, int(times.max()))
        if judged.late.any():
            self._note_late(source, tally, run, judged, frontiers)
        self._keep(source, tally, table, times, judged)

    def _note_late(
        self, source: SourceRule, tally: _Tally, run: pa.RecordBatch, judged: Judged, frontiers: Times
    ) -> None:
        late = judged.late
        late_by = (frontiers - judged.last_missed)[late]
        buckets = np.bincount(np.searchsorted(_BOUNDS, late_by), minlength=len(_BOUNDS) + 1)
        tally.lateness = add_lists(tally.lateness, buckets.tolist())
        tally.lateness_sum += float(late_by.sum()) / 1e6
        if source.judge.policy == "aside" and "aside" in self._rule.roles:
            told = [
                ("late_by_ms", [str(value // 1000) for value in late_by.tolist()]),
                ("window_end", [iso(value) for value in judged.last_missed[late].tolist()]),
            ]
            self._set_aside("aside", run.filter(late), told)

    def _keep(self, source: SourceRule, tally: _Tally, table: pa.RecordBatch, times: Times, judged: Judged) -> None:
        """Put down the events that count, with what later steps need to know about them."""
        if not judged.counts.any():
            return
        window = source.judge.window
        aligned = window is not None and window.is_aligned
        extra: list[Times] = [times, *([judged.first] if aligned else [])]
        if source.corrects:
            extra.append(judged.last_missed if aligned else judged.late.astype(np.int64))
        columns = [table.column(name) for name in source.kept] + [pa.array(values, pa.int64()) for values in extra]
        kept = pa.RecordBatch.from_arrays(columns, schema=source.stored).filter(judged.counts)
        self._event_writer(source).write(kept)
        counted = times[judged.counts]
        self._widen(source.name, int(counted.min()), int(counted.max()))
        first = int((judged.first if aligned else times)[judged.counts].min())
        tally.oldest = first if tally.oldest is None else min(tally.oldest, first)

    def _event_writer(self, source: SourceRule) -> TableWriter:
        if source.name not in self._events:
            prefix = f"state/{self._rule.batch:012d}-{source.name}"
            self._events[source.name] = TableWriter(self._rule.folder, prefix, source.stored)
        return self._events[source.name]

    def _widen(self, source: str, oldest: int, newest: int) -> None:
        before = self._spans.get(source, (oldest, newest))
        self._spans[source] = (min(before[0], oldest), max(before[1], newest))

    def _set_aside(self, role: Role, run: pa.RecordBatch, told: list[tuple[str, list[str]]]) -> None:
        origin = [(name, run.column(name).cast(pa.string()).to_pylist()) for name in ("topic", "partition", "offset")]
        names, columns_of_text = zip(*origin, *told, strict=True)
        headers = [list(zip(names, texts, strict=True)) for texts in zip(*columns_of_text, strict=True)]
        if role not in self._sides:
            prefix = f"side/{self._rule.batch:012d}-{role}"
            self._sides[role] = TableWriter(self._rule.folder, prefix, SIDE)
        columns = [run.column("key"), run.column("value"), pa.array(headers, SIDE.field("headers").type)]
        self._sides[role].write(pa.RecordBatch.from_arrays(columns, schema=SIDE))


def _note_offsets(tally: _Tally, run: pa.RecordBatch) -> None:
    offsets = run.column("offset").to_numpy()
    # Late is judged in offset order; a plan that shuffled records before us would silently change every verdict.
    if int(offsets[0]) <= tally.last_offset or bool(np.any(np.diff(offsets) <= 0)):
        raise RuntimeError("records of one partition came out of order")
    if tally.first_offset is None:
        tally.first_offset = int(offsets[0])
    tally.last_offset = int(offsets[-1])


def _event_times(source: SourceRule, table: pa.RecordBatch) -> tuple[Times, Bools]:
    """The corrected times, and which rows have none because the column or a declared clock is missing."""
    nothing = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, np.bool_)
    if source.time is None:
        return nothing
    times, timeless = _micros(table, source.time)
    if source.sent is not None and source.received is not None:
        sent, unsent = _micros(table, source.sent)
        received, unreceived = _micros(table, source.received)
        times, timeless = times + received - sent, timeless | unsent | unreceived
    return times, timeless


def _is_future(source: SourceRule, table: pa.RecordBatch, run: pa.RecordBatch, times: Times) -> Bools:
    if source.time is None or source.max_future_skew is None:
        return np.zeros(len(times), np.bool_)
    reference = run.column("timestamp").to_numpy() if source.received is None else _micros(table, source.received)[0]
    return times > reference + source.max_future_skew


def _micros(table: pa.RecordBatch, name: str) -> tuple[Times, Bools]:
    column = table.column(name).cast(pa.int64())
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).to_numpy(), missing


def _count(rule: JudgeRule, judged: Judged, idle: Bools) -> Counts:
    late = int(judged.late.sum())
    corrected = int(judged.corrects.sum()) if rule.policy == "correct" else 0
    aside = late if rule.policy == "aside" else 0
    return Counts(
        read=len(judged.missed),
        on_time=len(judged.missed) - late,
        late=late,
        dropped=late - aside - corrected,
        aside=aside,
        corrected=corrected,
        late_idle=int(idle.sum()),
        windows_missed=int(judged.missed.sum()),
    )
