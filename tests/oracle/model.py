"""What the oracle is given: a log, and a job read once from its spec. No judgement is made here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tests.oracle.times import parse_duration

FieldType = Literal["string", "long", "int", "double", "boolean", "timestamp"]
Policy = Literal["drop", "aside", "correct"]
WindowType = Literal["tumbling", "hopping", "session", "sliding"]

_ALIASES: dict[str, FieldType] = {"bigint": "long", "integer": "int"}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic, as it lies in the log."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # microseconds; Kafka keeps whole milliseconds
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Log:
    """Every partition of one topic in offset order; a partition without records is there too, empty."""

    topic: str
    partitions: tuple[tuple[Record, ...], ...]

    def records(self) -> list[Record]:
        return [record for partition in self.partitions for record in partition]

    def upto(self, ends: Sequence[int]) -> "Log":
        """The log as it was when each partition had been read up to (not including) its end."""
        return Log(self.topic, tuple(records[:end] for records, end in zip(self.partitions, ends, strict=True)))


@dataclass(frozen=True)
class Window:
    """A window step. `size` is the gap for a session; `every` equals `size` except for hopping."""

    type: WindowType
    size: int
    every: int
    by: tuple[str, ...]
    aggregates: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """What of a StreamJob decides about results. All times and durations in microseconds."""

    topic: str
    schema: Mapping[str, FieldType]
    event_time: str
    delay: int
    policy: Policy = "drop"
    allowed_lateness: int = 0
    sent: str | None = None
    received: str | None = None
    max_future_skew: int | None = None
    window: Window | None = None
    sink_key: tuple[str, ...] = field(default=())


def parse_schema(ddl: str) -> dict[str, FieldType]:
    """The declared columns, in order: 'user string, n bigint, at timestamp'."""
    columns: dict[str, FieldType] = {}
    for part in ddl.split(","):
        name, kind = part.split()
        known = _ALIASES.get(kind.lower(), kind.lower())
        if known not in get_args(FieldType):
            raise ValueError(f"the oracle does not know the type {kind!r} of column {name!r}")
        columns[name] = known  # type: ignore[assignment]  # just checked against the literal's members
    return columns


def parse_window(spec: Mapping[str, Any]) -> Window:
    size = parse_duration(spec["gap"] if spec["type"] == "session" else spec["size"])
    every = parse_duration(spec["every"]) if spec["type"] == "hopping" else size
    return Window(spec["type"], size, every, tuple(spec.get("by", ())), dict(spec["aggregates"]))


def parse_job(resource: Mapping[str, Any]) -> Job:
    """A StreamJob resource with one source, at most one window step and one sink."""
    spec = resource["spec"]
    (source,) = spec["sources"]
    steps = [parse_window(step["window"]) for step in spec.get("transform", ()) if "window" in step]
    event_time, stragglers = source["eventTime"], spec["stragglers"]
    clock, skew = event_time.get("clock", {}), event_time.get("maxFutureSkew")
    return Job(
        topic=source["topic"],
        schema=parse_schema(source["schema"]),
        event_time=event_time["column"],
        delay=parse_duration(stragglers["delay"]),
        policy=stragglers.get("policy", "drop"),
        allowed_lateness=parse_duration(stragglers.get("allowedLateness", "0s")),
        sent=clock.get("sent"),
        received=clock.get("received"),
        max_future_skew=None if skew is None else parse_duration(skew),
        window=steps[0] if steps else None,
        sink_key=tuple(spec["sinks"][0]["key"]),
    )
