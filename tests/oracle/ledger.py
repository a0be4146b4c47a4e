"""The ledger as the contract has it, held against what the oracle counts for the same offsets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.model import Log
from tests.oracle.oracle import COUNTS, Expectation, Judgement, count
from tests.oracle.times import format_time, read_time

# Counts of things that cannot happen in these logs: no partition is given up, and nothing is deleted.
NEVER = ("late_idle", "lost")


@dataclass(frozen=True)
class Entry:
    """One partition in one batch; offsets `start` up to, not including, `end`; `high` after the batch."""

    batch: int
    partition: int
    start: int
    end: int
    high: int | None
    counts: Mapping[str, int]


def total_differences(expected: Mapping[str, int], found: Mapping[str, Any], where: str) -> Iterator[str]:
    for name in COUNTS:
        if found.get(name) != expected[name]:
            yield f"{where}: {name} is {found.get(name)} and should be {expected[name]}"
    for name in NEVER:
        if found.get(name, 0) != 0:
            yield f"{where}: {name} is {found[name]} and should be 0"
    yield from equation_differences(found, where)


def equation_differences(found: Mapping[str, Any], where: str) -> Iterator[str]:
    for whole, parts in (
        ("read", ("malformed", "future", "on_time", "late")),
        ("late", ("dropped", "aside", "corrected")),
    ):
        told = [found.get(part) or 0 for part in parts]
        if found.get(whole) != sum(told):
            sums = " + ".join(f"{part} {value}" for part, value in zip(parts, told, strict=True))
            yield f"{where}: the equation does not hold: {whole} {found.get(whole)} = {sums}"


def entry_differences(log: Log, expectation: Expectation, entries: Sequence[Entry]) -> Iterator[str]:
    """Every entry exact for its offsets, every batch once, no offset twice and none left out."""
    judged: defaultdict[int, list[Judgement]] = defaultdict(list)
    for judgement in expectation.judgements:
        judged[judgement.record.partition].append(judgement)
    for number, records in enumerate(log.partitions):
        own = sorted((entry for entry in entries if entry.partition == number), key=lambda entry: entry.batch)
        yield from _gaps(number, own, len(records))
        for entry in own:
            yield from _entry(entry, judged[number])


def batch_ends(entries: Iterable[Entry], partitions: int) -> list[list[int]]:
    """How far each partition had been read after each batch, in the order of the batches."""
    ends, reached = [], [0] * partitions
    by_batch: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_batch[entry.batch].append(entry)
    for batch in sorted(by_batch):
        for entry in by_batch[batch]:
            reached[entry.partition] = entry.end
        ends.append(list(reached))
    return ends


def watermark_differences(expectation: Expectation, found: object) -> Iterator[str]:
    expected = None if expectation.watermark is None else format_time(expectation.watermark)
    if (None if found is None else format_time(read_time(found))) != expected:
        yield f"report: watermark is {found} and should be {expected}"


def _gaps(partition: int, entries: Sequence[Entry], length: int) -> Iterator[str]:
    reached = 0
    batches = [entry.batch for entry in entries]
    if len(set(batches)) != len(batches):
        yield f"ledger: partition {partition} has a batch twice: {batches}"
    for entry in entries:
        if entry.start != reached:
            yield f"ledger: batch {entry.batch} of partition {partition} starts at {entry.start}, not at {reached}"
        reached = entry.end
    if reached != length:
        yield f"ledger: partition {partition} ends at {reached}, not at {length}"


def _entry(entry: Entry, judged: Sequence[Judgement]) -> Iterator[str]:
    where = f"ledger: batch {entry.batch}, partition {entry.partition}"
    yield from total_differences(count(judged[entry.start : entry.end]), entry.counts, where)
    high = max((judgement.event.time for judgement in judged[: entry.end] if judgement.event), default=None)
    if entry.high != high:
        yield f"{where}: high is {_shown(entry.high)} and should be {_shown(high)}"


def _shown(time: int | None) -> str:
    return "nothing" if time is None else format_time(time)
