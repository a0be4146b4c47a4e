"""Jobs and logs small enough to work out by hand: times are seconds after START, and every event is one line."""

import json
from collections.abc import Sequence
from typing import Any

from tests.oracle.logs import START
from tests.oracle.model import Job, Log, Policy, Record, WindowType, parse_job
from tests.oracle.oracle import Expectation, expect
from tests.oracle.times import SECOND, format_time

TOPIC = "in"
Event = tuple[float, str | None, int | None]
WINDOWS: dict[WindowType, dict[str, str]] = {
    "tumbling": {"type": "tumbling", "size": "10s"},
    "hopping": {"type": "hopping", "size": "10s", "every": "5s"},
    "session": {"type": "session", "gap": "5s"},
    "sliding": {"type": "sliding", "size": "5s"},
}


def at(seconds: float) -> int:
    return START + round(seconds * SECOND)


def hand_job(
    window: WindowType, policy: Policy = "drop", *, delay: str = "0s", lateness: str = "20s", clocks: bool = False
) -> Job:
    """Keyed by device, with the number of events and the sum of their n. The future begins after a minute."""
    event_time: dict[str, Any] = {"column": "at", "maxFutureSkew": "1m"}
    if clocks:
        event_time["clock"] = {"sent": "sent", "received": "received"}
    schema = "device string, n long, at timestamp" + (", sent timestamp, received timestamp" if clocks else "")
    step = {**WINDOWS[window], "by": ["device"], "aggregates": {"events": "count(*)", "total": "sum(n)"}}
    stragglers = {"delay": delay, "policy": policy, "allowedLateness": lateness}
    key = ["device", "window_start", *(["window_end"] if window == "sliding" else [])]
    spec = {
        "sources": [{"name": "events", "topic": TOPIC, "schema": schema, "eventTime": event_time}],
        "stragglers": stragglers,
        "transform": [{"window": step}],
        "sinks": [{"topic": "out", "key": key}],
    }
    return parse_job({"spec": spec})


def hand_log(*partitions: Sequence[Event | bytes | None]) -> Log:
    """Each event as (seconds, device, n), or the bytes of a value. The log's own time is START throughout."""
    return Log(
        TOPIC,
        tuple(
            tuple(_record(number, offset, event) for offset, event in enumerate(events))
            for number, events in enumerate(partitions)
        ),
    )


def _record(partition: int, offset: int, event: Event | bytes | None) -> Record:
    if isinstance(event, tuple):
        seconds, device, amount = event
        value: bytes | None = json.dumps({"device": device, "n": amount, "at": format_time(at(seconds))}).encode()
        return Record(TOPIC, partition, offset, START, None if device is None else device.encode(), value)
    return Record(TOPIC, partition, offset, START, None, event)


def rows(expectation: Expectation) -> list[tuple[Any, ...]]:
    """The final table as (device, start, end, events, total[, revision]) in seconds, in order."""
    told = []
    for result in expectation.table.values():
        row = result.row
        span = ((row["window_start"] - START) / SECOND, (row["window_end"] - START) / SECOND)
        revision = (row["revision"],) if "revision" in row else ()
        told.append((row["device"], *span, row["events"], row["total"], *revision))
    return sorted(told, key=lambda row: (row[0] or "", *row[1:3]))


def outcome(job: Job, *partitions: Sequence[Event | bytes | None]) -> Expectation:
    return expect(job, hand_log(*partitions))


def verdicts(expectation: Expectation) -> list[str]:
    """Each record's verdict, or for a late one what became of it."""
    return [judgement.outcome or judgement.verdict for judgement in expectation.judgements]
