"""The verdict on every record and the final table, computed from a whole log at once.

There are no batches here on purpose: what depends on them cannot even be said.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.oracle.model import Job, Log, Record
from tests.oracle.parsing import Fields, UnparsableError, parse_fields
from tests.oracle.results import Result, results
from tests.oracle.windows import Judged, Outcome, judge_windows

Verdict = Literal["malformed", "future", "late", "on_time"]
COUNTS = ("read", "malformed", "future", "on_time", "late", "dropped", "aside", "corrected", "windows_missed")


@dataclass(frozen=True)
class Judgement:
    """One record's verdict. `reason` for malformed and future; `event` for valid ones."""

    record: Record
    verdict: Verdict
    reason: str | None = None
    event: Judged | None = None

    @property
    def outcome(self) -> Outcome | None:
        return self.event.outcome if self.event else None


@dataclass(frozen=True)
class SideRecord:
    """A record that the malformed or the aside topic must hold; `headers` in their parsed form."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class Expectation:
    """All that a job over this log must end with. A time of None is minus infinity."""

    judgements: tuple[Judgement, ...]
    totals: Mapping[str, int]
    partition_totals: Mapping[int, Mapping[str, int]]
    highs: Mapping[int, int | None]
    watermark: int | None
    table: Mapping[tuple[Any, ...], Result]
    malformed: tuple[SideRecord, ...]
    aside: tuple[SideRecord, ...]


def expect(job: Job, log: Log) -> Expectation:
    """The oracle's answer."""
    by_partition = {number: judge_partition(job, records) for number, records in enumerate(log.partitions)}
    judgements = tuple(judgement for judged in by_partition.values() for judgement in judged)
    highs = {number: _high(judged) for number, judged in by_partition.items()}
    watermark = _watermark(highs.values(), job.delay)
    return Expectation(
        judgements=judgements,
        totals=count(judgements),
        partition_totals={number: count(judged) for number, judged in by_partition.items()},
        highs=highs,
        watermark=watermark,
        table=_table(job, judgements, watermark),
        malformed=tuple(_malformed(judgement) for judgement in judgements if judgement.reason),
        aside=tuple(_aside(judgement.event) for judgement in judgements if judgement.event and _is_aside(judgement)),
    )


def table_at(job: Job, judgements: Iterable[Judgement], ends: Sequence[int]) -> Mapping[tuple[Any, ...], Result]:
    """The table when each partition has been read up to its end: later records change no verdict on earlier ones."""
    read = [one for one in judgements if one.record.offset < ends[one.record.partition]]
    highs = [_high(one for one in read if one.record.partition == number) for number in range(len(ends))]
    return _table(job, read, _watermark(highs, job.delay))


def judge_partition(job: Job, records: Iterable[Record]) -> list[Judgement]:
    """Each record of one partition, in offset order, against the high before it."""
    judgements: list[Judgement] = []
    high: int | None = None
    for record in records:
        judgement = judge(job, record, None if high is None else high - job.delay)
        judgements.append(judgement)
        if judgement.event:
            high = judgement.event.time if high is None else max(high, judgement.event.time)
    return judgements


def judge(job: Job, record: Record, frontier: int | None) -> Judgement:
    try:
        fields = parse_fields(record.value, job.schema)
    except UnparsableError:
        return Judgement(record, "malformed", "unparsable")
    time = _event_time(job, fields)
    if time is None:
        return Judgement(record, "malformed", "no-event-time")
    reference = fields[job.received] if job.received else record.timestamp
    if job.max_future_skew is not None and time > int(reference or 0) + job.max_future_skew:
        return Judgement(record, "future", "future")
    event = judge_windows(job, Judged(record, fields, time, frontier))
    return Judgement(record, "late" if event.missed else "on_time", None, event)


def _event_time(job: Job, fields: Fields) -> int | None:
    """The corrected time, or None where the column or a declared clock is missing."""
    time, clocks = fields[job.event_time], [fields[name] for name in (job.received, job.sent) if name]
    if time is None or None in clocks:
        return None
    received, sent = (int(clock or 0) for clock in clocks) if len(clocks) == 2 else (0, 0)
    return int(time) + received - sent


def count(judgements: Iterable[Judgement]) -> dict[str, int]:
    """The ledger's counts, every name present."""
    counted: Counter[str] = Counter()
    for judgement in judgements:
        counted.update(["read", judgement.verdict, *([judgement.outcome] if judgement.outcome else [])])
        counted["windows_missed"] += len(judgement.event.missed) if judgement.event else 0
    return {name: counted[name] for name in COUNTS}


def _high(judged: Iterable[Judgement]) -> int | None:
    return max((judgement.event.time for judgement in judged if judgement.event), default=None)


def _watermark(highs: Iterable[int | None], delay: int) -> int | None:
    known = list(highs)
    return None if not known or None in known else min(high for high in known if high is not None) - delay


def _table(job: Job, judgements: Iterable[Judgement], watermark: int | None) -> dict[tuple[Any, ...], Result]:
    table: dict[tuple[Any, ...], Result] = {}
    for result in results(job, [judgement.event for judgement in judgements if judgement.event]):
        if watermark is None or result.closes > watermark:
            continue
        if table.setdefault(result.key, result) is not result:
            raise ValueError(f"the sink's key does not tell results apart: {result.key}")
    return table


def _origin(record: Record) -> tuple[tuple[str, str | int], ...]:
    return ("topic", record.topic), ("partition", record.partition), ("offset", record.offset)


def _malformed(judgement: Judgement) -> SideRecord:
    record = judgement.record
    return SideRecord(record.key, record.value, (*_origin(record), ("reason", judgement.reason or "")))


def _is_aside(judgement: Judgement) -> bool:
    return judgement.outcome == "aside"


def _aside(event: Judged) -> SideRecord:
    told = ("late_by_ms", event.late_by // 1_000), ("window_end", event.last_missed)
    return SideRecord(event.record.key, event.record.value, (*_origin(event.record), *told))
