"""The arithmetic of lag: pure functions from what the broker said to what it means. No client, no clock of its own.

Rules that hold everywhere: lag is never negative and never NaN; a position before the log's start counts from the
start, and what lies between is lost; seconds are the age of the record at the position, never an interpolation.
"""

import math
from dataclasses import dataclass
from typing import Literal

Partition = tuple[str, int]
"""Topic and number."""

Start = Literal["earliest", "latest"] | float
"""Where a job without any position begins: at an end of the log, or at a time in seconds since 1970."""


@dataclass(frozen=True)
class Log:
    """What a partition holds: offsets from `start` up to, and without, `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Place:
    """Where a job stands in a partition."""

    position: int
    """The next offset it has to read; never outside the log."""
    log: Log
    gap: int = 0
    """Offsets between what it committed and the log's start: deleted before it read them."""
    beyond: bool = False
    """It committed an offset that the log does not have: the topic was made anew, or lost its end."""

    hollow: bool = False
    """No record is left up to the end, only markers of transactions or holes of compaction."""

    @property
    def records(self) -> int:
        """Offsets that are left to read. Holes and markers between records count too."""
        return 0 if self.hollow else self.log.end - self.position


@dataclass(frozen=True)
class Keep:
    """How long a topic keeps records, by its settings; infinite where nothing is deleted."""

    seconds: float = math.inf
    bytes: float = math.inf
    segment_bytes: float = 2.0**30


@dataclass(frozen=True)
class Written:
    """What is known about an unread record: its time in seconds since 1970, and the mean size of those around it."""

    at: float
    record_bytes: float = math.inf


FOREVER = Keep()


def place(committed: int | None, log: Log, begin: int) -> Place:
    """Where a job stands that committed this offset, or, without one, that will begin at `begin`."""
    log = Log(log.start, max(log.start, log.end))
    if committed is None:
        return Place(min(max(begin, log.start), log.end), log)
    if committed > log.end:
        return Place(log.start, log, beyond=True)
    return Place(max(committed, log.start), log, gap=max(0, log.start - committed))


def age(now: float, written: float | None, unread_since: float | None = None) -> float:
    """Seconds since the record was written, or since it was seen to wait: a clock that runs ahead hides no lag."""
    known = [at for at in (written, unread_since) if at is not None]
    return max(0.0, now - min(known)) if known else 0.0


def margin(now: float, spot: Place, keep: Keep, written: Written | None, rate: float = 0.0) -> float:
    """Seconds until retention may delete the oldest unread record; never later than the broker does.

    Kafka deletes whole segments, and a segment by time only when its newest record is old enough, so the record at the
    position lives at least until its own time is up. By size the newest `keep.bytes` stay; `rate`, the records written
    per second, tells when the position will no longer be among them. Nothing unread: what a record written now has.
    """
    oldest = now if spot.records == 0 or written is None else written.at
    record_bytes = math.inf if written is None else written.record_bytes
    return max(0.0, min(oldest + keep.seconds - now, _by_bytes(spot, keep, rate, record_bytes)))


def _by_bytes(spot: Place, keep: Keep, rate: float, record_bytes: float) -> float:
    size = min(record_bytes, _largest_record(spot.log, keep))
    if math.isinf(keep.bytes) or math.isinf(size) or rate <= 0 or size <= 0:
        return math.inf
    return (keep.bytes / size - spot.records) / rate


def _largest_record(log: Log, keep: Keep) -> float:
    """A log that was trimmed before is at most one segment larger than its bound, which bounds the mean record too."""
    if log.start == 0 or log.end == log.start:
        return math.inf
    return (keep.bytes + keep.segment_bytes) / (log.end - log.start)
