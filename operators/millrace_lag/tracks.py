"""One job followed over time: memory and a new reading in, new memory and the job's figures out. Pure.

Memory is bounded: a fixed number of samples, and one small entry for each partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from millrace.kafka.commits import Commit
from millrace.kafka.positions import Standing
from millrace.lag import FOREVER, Keep, Log, Partition, Place, Written, age, margin
from millrace_lag.subjects import Subject
from millrace_lag.verdicts import UNSEEN, Sample, Verdict, judge

SAMPLES = 24  # remembered of each job
CYCLES = 3  # a job that does nothing for so many of its own cycles is no longer between two batches
FADE = 0.9  # how much of a long cycle is remembered when the next one is shorter

_NONE: Mapping[Partition, "Trace"] = MappingProxyType({})


@dataclass(frozen=True)
class Loss:
    """What retention took from a job in a partition: `banked` it has skipped already, the rest lies ahead of it."""

    committed: int
    start: int
    banked: int = 0

    @property
    def total(self) -> int:
        return self.banked + max(0, self.start - self.committed)


@dataclass(frozen=True)
class Trace:
    """What is remembered of a partition."""

    position: int
    beyond: bool
    unread_since: float | None
    written: Written | None
    loss: Loss | None


@dataclass(frozen=True)
class PartitionLag:
    """What is said about a partition."""

    place: Place
    seconds: float
    margin_seconds: float
    lost: int


@dataclass(frozen=True)
class JobLag:
    """What is said about a job."""

    partitions: Mapping[Partition, PartitionLag]
    verdict: Verdict
    last_progress: float
    observed: float
    untimed: int = 0

    @property
    def records(self) -> int:
        return sum(one.place.records for one in self.partitions.values())

    @property
    def seconds(self) -> float:
        return max((one.seconds for one in self.partitions.values()), default=0.0)

    @property
    def margin_seconds(self) -> float:
        return min((one.margin_seconds for one in self.partitions.values()), default=float("inf"))

    @property
    def lost(self) -> int:
        return sum(one.lost for one in self.partitions.values())


@dataclass(frozen=True)
class Memory:
    """What is remembered of a job between two readings."""

    traces: Mapping[Partition, Trace] = field(default_factory=lambda: _NONE)
    partitions: Mapping[Partition, PartitionLag] = field(default_factory=lambda: MappingProxyType({}))
    history: tuple[Sample, ...] = ()
    last_progress: float = 0.0
    cycle_seconds: float = 0.0


def follow(memory: Memory, who: Subject, seen: Standing, at: float, keeps: Mapping[str, Keep]) -> tuple[Memory, JobLag]:
    """The next step of a job."""
    traces = {one: _trace(memory.traces.get(one), one, seen, at) for one in seen.places}
    places = {one: _settled(memory.traces.get(one), spot) for one, spot in seen.places.items()}
    sample = _sample(memory, places, traces, at)
    progress, cycle = _progress(memory, seen, sample)
    patience = CYCLES * max(who.trigger_seconds, cycle)
    history = (*memory.history, sample)
    verdict = judge(history, suspended=who.suspended, still_seconds=at - progress, patience_seconds=patience)
    oldest = history[0]
    partitions = {
        one: PartitionLag(
            spot,
            age(at, *_ages(traces[one])) if spot.records else 0.0,
            margin(at, spot, keeps.get(one[0], FOREVER), traces[one].written, _rate(oldest, sample, one)),
            _lost(traces[one]),
        )
        for one, spot in places.items()
    }
    # A partition whose leader does not answer keeps its last figures; one that is gone loses them.
    silent = seen.unanswered & memory.partitions.keys()
    partitions |= {one: memory.partitions[one] for one in silent}
    traces |= {one: memory.traces[one] for one in silent}
    remembered = Memory(traces, partitions, _thinned(memory.history, sample, patience), progress, cycle)
    return remembered, JobLag(partitions, verdict, progress, at, len(seen.untimed))


def blind(last: JobLag, why: str) -> JobLag:
    """The last figures, when nothing new can be had: kept, but no longer judged."""
    return replace(last, verdict=Verdict("unknown", f"The broker cannot be asked: {why}"))


def unseen(at: float) -> JobLag:
    """A job of which nothing is known yet."""
    return JobLag(MappingProxyType({}), UNSEEN, at, 0.0)


def follow_loss(before: Loss | None, commit: Commit | None, log: Log) -> Loss | None:
    """What is lost now. What the job itself wrote down counts when it is more: it sees between readings."""
    if commit is None:
        return before and Loss(log.start, log.start, before.total)
    banked = 0 if before is None else _banked(before, commit, log)
    noted = commit.note.lost if commit.note else 0
    return Loss(commit.offset, log.start, max(banked, noted))


def _banked(before: Loss, commit: Commit, log: Log) -> int:
    if log.start < before.start:  # another log: what was lost of the old one stays lost
        return before.total
    return before.banked + max(0, min(commit.offset, before.start) - before.committed)


def _trace(before: Trace | None, one: Partition, seen: Standing, at: float) -> Trace:
    spot = seen.places[one]
    loss = follow_loss(before.loss if before else None, seen.commits.get(one), spot.log)
    if not spot.records:
        return Trace(spot.position, spot.beyond, None, None, loss)
    written = seen.written.get(one)
    if before is not None and before.position == spot.position and before.unread_since is not None:
        return Trace(spot.position, spot.beyond, before.unread_since, written or before.written, loss)
    # Without its own time the record before it stands in: it is older, so lag is rather too long than too short.
    return Trace(spot.position, spot.beyond, at, written or (before.written if before else None), loss)


def _settled(before: Trace | None, spot: Place) -> Place:
    """Just after a change of leader the end can look too small; only the second such look counts."""
    if spot.beyond and not (before and before.beyond):
        return Place(spot.log.end, spot.log)
    return spot


def _sample(memory: Memory, places: Mapping[Partition, Place], traces: Mapping[Partition, Trace], at: float) -> Sample:
    before = memory.traces
    counts = [spot.records for spot in places.values()]
    back = any(one in before and spot.position < before[one].position for one, spot in places.items())
    return Sample(
        at,
        sum(counts),
        max(counts, default=0),
        {one: spot.position for one, spot in places.items()},
        {one: spot.log.end for one, spot in places.items()},
        gap=sum(spot.gap for spot in places.values()),
        lost=sum(map(_lost, traces.values())),
        back=back or any(spot.beyond for spot in places.values()),
    )


def _progress(memory: Memory, seen: Standing, now: Sample) -> tuple[float, float]:
    """When the job last moved or had nothing to do, and how long it takes from one move to the next."""
    notes = [commit.note for commit in seen.commits.values() if commit.note]
    took = max((one.took for one in notes), default=0.0)
    noted = min(now.at, max((one.at for one in notes), default=0.0))
    if not memory.last_progress:
        first = now.at if now.records == 0 or not noted else noted
        return first, took
    moved = any(
        one in memory.traces and position > memory.traces[one].position for one, position in now.positions.items()
    )
    if moved:
        return max(noted, now.at), max(now.at - memory.last_progress, memory.cycle_seconds * FADE, took)
    if now.records == 0:
        return now.at, memory.cycle_seconds
    return memory.last_progress, memory.cycle_seconds


def _thinned(history: tuple[Sample, ...], now: Sample, patience: float) -> tuple[Sample, ...]:
    """Far enough apart that the samples cover several of the job's cycles, however slow it is."""
    if history and now.at - history[-1].at < CYCLES * patience / SAMPLES:
        return history
    return (*history, now)[-SAMPLES:]


def _ages(trace: Trace) -> tuple[float | None, float | None]:
    return (trace.written.at if trace.written else None), trace.unread_since


def _lost(trace: Trace) -> int:
    return trace.loss.total if trace.loss else 0


def _rate(first: Sample, now: Sample, one: Partition) -> float:
    span = now.at - first.at
    return max(0, now.ends[one] - first.ends.get(one, now.ends[one])) / span if span > 0 else 0.0
