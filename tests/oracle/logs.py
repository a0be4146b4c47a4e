"""Awkward logs from a seed: stragglers at every distance, bridged sessions, borders, defects, clocks that are off.

The same plan gives the same bytes. What each record deserves is not decided here but by the oracle.
"""

import random
from dataclasses import dataclass, field
from itertools import cycle

from tests.oracle.model import Job, Log, Record, Window
from tests.oracle.payloads import CLOCK_DEFECTS, DEFECTS, encode, valid_fields
from tests.oracle.times import MILLISECOND, SECOND, parse_time

START = parse_time("2026-01-01T00:00:00Z")


@dataclass(frozen=True)
class LogPlan:
    """What a log is to be like. `unit` is the smallest step of time: 1 asks for bare microseconds."""

    seed: int
    partitions: int = 4
    records: int = 900
    devices: int = 9
    seconds: int = 300
    unit: int = MILLISECOND
    ahead: int = 0  # how far the last partition runs ahead of the others, in microseconds
    keyed: bool = False  # a device lives in one partition only, instead of in all of them
    defects: tuple[str, ...] = tuple(DEFECTS)


@dataclass
class _Writer:
    """A log being written, with what is needed to aim at the frontier of each partition."""

    job: Job
    plan: LogPlan
    rng: random.Random
    window: Window
    written: list[list[Record]] = field(default_factory=list)
    highs: dict[int, int] = field(default_factory=dict)
    recent: list[tuple[int, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # In turn, not at random: every defect is in every log that is long enough.
        self.defects = cycle(self.plan.defects + (tuple(CLOCK_DEFECTS) if self.job.received else ()))

    def append(self, partition: int, now: int, key: str | None, value: bytes | None) -> None:
        offset, stamp = len(self.written[partition]), now - now % MILLISECOND
        name = None if key is None else key.encode()
        self.written[partition].append(Record(self.job.topic, partition, offset, stamp, name, value))

    def event(self, partition: int, now: int, device: str | None, time: int) -> None:
        """A valid event at exactly this corrected time."""
        fields = valid_fields(self.rng, device, time, now if self.job.received else None)
        self.append(partition, now, device, encode(self.rng, fields))
        self.highs[partition] = max(self.highs.get(partition, time), time)
        self.recent = [*self.recent[-200:], (time, device)]

    def defect(self, partition: int, now: int, device: str | None, name: str) -> None:
        fields = valid_fields(self.rng, device, now, now if self.job.received else None)
        _, spoil = (DEFECTS | CLOCK_DEFECTS)[name]
        self.append(partition, now, device, spoil(fields))

    def future(self, partition: int, now: int, device: str | None, beyond: int) -> None:
        """An event `beyond` what the skew allows; its time must not move any high."""
        reference = now if self.job.received else now - now % MILLISECOND
        time = reference + (self.job.max_future_skew or 0) + beyond
        if beyond <= 0:
            self.event(partition, now, device, time)
            return
        fields = valid_fields(self.rng, device, time, now if self.job.received else None)
        self.append(partition, now, device, encode(self.rng, fields))


def make_log(job: Job, plan: LogPlan) -> Log:
    """A log for a windowed job: openers in every partition, the body, and two flushes with stragglers between."""
    if job.window is None:
        raise ValueError("a log is made for a job with a window: its borders are what the log aims at")
    rng = random.Random(plan.seed)
    writer = _Writer(job, plan, rng, job.window, [[] for _ in range(plan.partitions)])
    _open(writer)
    step = plan.seconds * SECOND // plan.records
    for number in range(plan.records):
        _body(writer, START + number * step)
    _flush(writer)
    return Log(job.topic, tuple(tuple(records) for records in writer.written))


def _lead(writer: _Writer, partition: int) -> int:
    return writer.plan.ahead if partition == writer.plan.partitions - 1 else 0


def _device(writer: _Writer, partition: int) -> str | None:
    owned = [n for n in range(writer.plan.devices) if not writer.plan.keyed or n % writer.plan.partitions == partition]
    # One device in the spread logs has no name: null is a key like any other.
    chosen = writer.rng.choice(owned) if owned else None
    return None if chosen is None or (chosen == 0 and not writer.plan.keyed) else f"d{chosen}"


def _open(writer: _Writer) -> None:
    """Every partition has a valid event early, one of them only after something malformed."""
    writer.defect(0, START, "d1", "truncated")
    for partition in range(writer.plan.partitions):
        now = START + _lead(writer, partition)
        writer.event(partition, now, _device(writer, partition), now)


def _body(writer: _Writer, true_time: int) -> None:
    rng, unit = writer.rng, writer.plan.unit
    partition = rng.randrange(writer.plan.partitions)
    now, device = true_time + _lead(writer, partition), _device(writer, partition)
    now -= now % unit
    dice = rng.random()
    if dice < 0.06:
        writer.defect(partition, now, device, next(writer.defects))
    elif dice < 0.09:
        writer.future(partition, now, device, rng.choice((0, unit, SECOND, 86_400 * SECOND)))
    elif dice < 0.45:
        writer.event(partition, now, device, now)
    else:
        time, device = _aim(writer, partition, now, device)
        writer.event(partition, now, device, time - time % unit)


def _aim(writer: _Writer, partition: int, now: int, device: str | None) -> tuple[int, str | None]:
    """A time that is awkward for this window, never later than the future bound allows."""
    if writer.rng.random() < 0.25:
        time, other = _beside_another(writer)
        device = device if writer.plan.keyed else other
    else:
        time = writer.rng.choice((_near_frontier, _disorder, _border))(writer, partition, now)
    # Half the bound is left free: the log's own timestamp is cut to milliseconds.
    return min(time, now + (writer.job.max_future_skew or 2 * SECOND) // 2), device


def _near_frontier(writer: _Writer, partition: int, now: int) -> int:
    """At the limit of late, or of what `correct` still lets in, give or take one step; or well inside or beyond."""
    rng, window, unit = writer.rng, writer.window, writer.plan.unit
    frontier = writer.highs[partition] - writer.job.delay
    shift = {"session": window.size, "sliding": 0}.get(window.type, rng.randrange(0, window.size + 1))
    late = writer.job.allowed_lateness or 20 * SECOND
    distance = rng.choice((0, 0, late, late, late // 2, rng.randrange(late), 2 * late, late + window.size))
    return frontier - shift - distance + rng.choice((-unit, 0, unit))


def _disorder(writer: _Writer, partition: int, now: int) -> int:
    """Out of order but within the delay, so on time."""
    return writer.highs[partition] - writer.rng.randrange(writer.job.delay)


def _border(writer: _Writer, partition: int, now: int) -> int:
    """On a window's border, or such that the frontier lands on one."""
    rng, every = writer.rng, writer.window.every
    border = now - now % every + rng.choice((0, 0, -every, writer.job.delay - every))
    return border + rng.choice((-writer.plan.unit, 0, 0, writer.plan.unit))


def _beside_another(writer: _Writer) -> tuple[int, str | None]:
    """At the same time as an event of the key, or one window from it: joins, bridges or just misses it."""
    rng, size, unit = writer.rng, writer.window.size, writer.plan.unit
    time, device = rng.choice(writer.recent)
    away = rng.choice((0, 0, size, -size, size // 2, -size // 2))
    return time + away + rng.choice((-unit, 0, 0, unit)), device


def _flush(writer: _Writer) -> None:
    """Close every window of the body, send stragglers after that, then close what they made."""
    window, job, plan = writer.window, writer.job, writer.plan
    reach = job.delay + 2 * window.size + SECOND
    first = max(writer.highs.values()) + reach
    for partition in range(plan.partitions):
        writer.event(partition, first, "flush", first + partition * plan.unit)
    for number in range(6 * plan.partitions):
        partition = number % plan.partitions
        time = _near_frontier(writer, partition, first)
        writer.event(partition, first, _device(writer, partition), time - time % plan.unit)
    last = first + reach + job.allowed_lateness + window.size
    for partition in range(plan.partitions):
        writer.event(partition, last, "flush", last + partition * SECOND)
