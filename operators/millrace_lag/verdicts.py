"""What a job's recent past says about its lag, without any threshold: a pure function over a short history.

Whether lag is large is for the job's goal to say. Here is decided whether it is under control: a job is fine when it
has read, by now, everything that was there when the history began; else the trend of what is left decides.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal

from millrace.lag import Partition

Name = Literal["ok", "catching-up", "falling-behind", "stalled", "stopped", "rewound", "losing-data", "unknown"]

ENOUGH = 6  # samples; with fewer, not even a steady rise is significant
# Mann and Kendall's test: with no trend at all, a value beyond this comes up once in a hundred times.
SIGNIFICANT = 2.58

REASONS: Mapping[Name, str] = {
    "ok": "KeepsUp",
    "catching-up": "CatchingUp",
    "falling-behind": "FallingBehind",
    "stalled": "Stalled",
    "stopped": "Suspended",
    "rewound": "Rewound",
    "losing-data": "LosingData",
    "unknown": "Unknown",
}
_HEALTHY: Mapping[Name, str] = {"ok": "True", "catching-up": "True", "stopped": "Unknown", "unknown": "Unknown"}


@dataclass(frozen=True)
class Sample:
    """A job at one moment."""

    at: float
    records: int
    """Unread records of all partitions."""
    worst: int
    """Unread records of the partition that has most of them."""
    positions: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    gap: int = 0
    """Records that are deleted and that the job has not skipped yet."""
    lost: int = 0
    """Records lost so far."""
    back: bool = False
    """A position went back since the sample before, or lies beyond the end of the log."""


@dataclass(frozen=True)
class Verdict:
    """What holds now, in a word and in a sentence, and when the job will have caught up."""

    name: Name
    sentence: str
    catch_up_seconds: float = math.inf

    @property
    def reason(self) -> str:
        """For the condition LagHealthy, in CamelCase."""
        return REASONS[self.name]

    @property
    def healthy(self) -> str:
        """The condition's status: True, False or Unknown."""
        return _HEALTHY.get(self.name, "False")


UNSEEN = Verdict("unknown", "The broker has not been asked yet.")


def judge(history: Sequence[Sample], *, suspended: bool, still_seconds: float, patience_seconds: float) -> Verdict:
    """The verdict on a history, oldest first. `still_seconds`: how long the job has had work and has not moved."""
    if not history:
        return UNSEEN
    now, first = history[-1], history[0]
    if now.gap or now.lost > first.lost:
        return Verdict(
            "losing-data", f"Retention deleted {now.gap or now.lost - first.lost} records before it read them."
        )
    if suspended:
        return Verdict("stopped", f"It is suspended, with {now.records} records unread.")
    if now.records == 0:
        return Verdict("ok", "Everything is read.", 0.0)
    if any(sample.back for sample in history):
        return Verdict(
            "rewound", f"Its position went back; {now.records} records are to be read.", _until_done(history)
        )
    if len(history) >= ENOUGH and still_seconds >= patience_seconds and not _moved(history[-ENOUGH], now):
        return Verdict("stalled", f"{now.records} records wait, and it has not moved for {still_seconds:.0f} s.")
    if len(history) > 1 and _has_read(now, first.ends):
        return Verdict("ok", "It keeps up.", 0.0)
    if len(history) < ENOUGH:
        return Verdict("unknown", "It was not observed long enough for a verdict.")
    return _by_trend(history)


def _by_trend(history: Sequence[Sample]) -> Verdict:
    now = history[-1]
    total, worst = trend([one.records for one in history]), trend([one.worst for one in history])
    if total > 0 or worst > 0:
        return Verdict("falling-behind", f"{now.records} records are unread, and they become more.")
    if total < 0:
        left = _until_done(history)
        return Verdict("catching-up", f"{now.records} records are unread; done in about {left:.0f} s.", left)
    return Verdict("ok", f"It reads as fast as records come, {now.records} behind.")


def trend(values: Sequence[int]) -> int:
    """1 when the values rise, -1 when they fall, 0 when neither is certain. A saw has no trend."""
    count = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    if spread == 0 or abs(score) - 1 <= SIGNIFICANT * spread:
        return 0
    return 1 if score > 0 else -1


def _until_done(history: Sequence[Sample]) -> float:
    """Unread records over how fast they become fewer (the median of all slopes); infinite when they do not."""
    slopes = [(b.records - a.records) / (b.at - a.at) for a, b in combinations(history, 2) if b.at > a.at]
    speed = -median(slopes) if slopes else 0.0
    return history[-1].records / speed if speed > 0 else math.inf


def _has_read(now: Sample, ends: Mapping[Partition, int]) -> bool:
    return all(now.positions.get(one, end) >= end for one, end in ends.items())


def _moved(first: Sample, now: Sample) -> bool:
    return any(now.positions.get(one, position) > position for one, position in first.positions.items())
